module example.com/mine

go 1.26.0

require example.com/events v0.0.0

replace example.com/events => ../..
