# Draws speed.svg from speed.dat: gnuplot speed.gp
set terminal svg size 600,230 font "sans-serif,13"
set output "speed.svg"
gray = "#888888" # readable on light and dark pages
set title "CPU time of a request (microseconds)" textcolor rgb gray
set border 1 linecolor rgb gray
set style fill solid
set boxwidth 0.3
unset key
set xrange [0:80]
set yrange [3.6:-0.6]
set xtics nomirror textcolor rgb gray
set ytics scale 0 nomirror textcolor rgb gray
set grid xtics linecolor rgb gray linewidth 0.3
plot "speed.dat" using ($2/2):0:($2/2):(0.3):ytic(1) with boxxyerror linecolor rgb "#3b82c4", \
     "" using ($2+1):0:2 with labels left textcolor rgb gray
