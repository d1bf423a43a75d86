// Command plot prints a picture of the first table of a Markdown file, in SVG: a bar for the
// ratio in each row, and a line at 1, which is what the row compares with.
//
//	go run .ci/plot.go docs/speed.md >docs/speed.svg
//
// The table has the columns "what", "ratio" and "better". A ratio is a number, or a range such
// as "0.90 to 1.05", of which the bar ends in the middle. CI fails if the picture is not the one
// of the table.
package main

import (
	"fmt"
	"html"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Sizes in pixels.
const (
	width     = 720
	top       = 34 // above the first row
	rowHeight = 44
	scale     = 340 // of a ratio of 1
	barHeight = 14
)

const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img">
<title>The ratios of the table, as bars</title>
<style>
text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #1d2126; }
.more { fill: #0a58a8; } .less { fill: #9a6700; } line { stroke: #59616b; stroke-dasharray: 3 3; opacity: .6; }
@media (prefers-color-scheme: dark) {
  text { fill: #e4e7eb; } .more { fill: #83bbf5; } .less { fill: #d9a441; } line { stroke: #a1a9b4; }
}
</style>
<rect class="more" x="0" y="4" width="14" height="14"/><text x="20" y="16">more is better</text>
<rect class="less" x="130" y="4" width="14" height="14"/><text x="150" y="16">less is better</text>
<line x1="%[3]d" y1="4" x2="%[3]d" y2="%[2]d"/><text x="%[4]d" y="16">1: the same as what it is compared with</text>
`

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = plot(string(text))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func plot(markdown string) error {
	rows := table(markdown)
	if len(rows) < 2 {
		return fmt.Errorf("there is no table")
	}
	what := slices.Index(rows[0], "what")
	ratio := slices.Index(rows[0], "ratio")
	better := slices.Index(rows[0], "better")
	if what < 0 || ratio < 0 || better < 0 {
		return fmt.Errorf("the table lacks a column: %q", rows[0])
	}
	rows = rows[2:] // the second is the line below the heads
	fmt.Printf(head, width, top+rowHeight*len(rows), scale, scale+8)
	for i, row := range rows {
		size, err := middle(row[ratio])
		if err != nil {
			return fmt.Errorf("%s: %w", row[what], err)
		}
		y := top + rowHeight*i
		label := html.EscapeString(strings.ReplaceAll(row[what], "`", ""))
		fmt.Printf("<text x=\"0\" y=\"%d\">%s</text>\n", y+14, label)
		fmt.Printf("<rect class=\"%s\" x=\"0\" y=\"%d\" width=\"%.0f\" height=\"%d\"/>",
			row[better], y+20, size*scale, barHeight)
		fmt.Printf("<text x=\"%.0f\" y=\"%d\">%s</text>\n", size*scale+6, y+32, row[ratio])
	}
	fmt.Println("</svg>")
	return nil
}

// table returns the cells of the first table, with its heads and the line below them.
func table(markdown string) (rows [][]string) {
	for line := range strings.Lines(markdown) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if rows != nil {
				break
			}
			continue
		}
		var row []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			row = append(row, strings.TrimSpace(cell))
		}
		rows = append(rows, row)
	}
	return rows
}

// middle is a number, or the middle of a range.
func middle(ratio string) (float64, error) {
	from, to, isRange := strings.Cut(ratio, " to ")
	least, err := strconv.ParseFloat(from, 64)
	if err != nil || !isRange {
		return least, err
	}
	most, err := strconv.ParseFloat(to, 64)
	return (least + most) / 2, err
}
