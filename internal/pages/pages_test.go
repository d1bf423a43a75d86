package pages

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxScript  = 560 // lines of the scripts of both pages
	maxColumns = 110 // of a line of a script
)

// unsafe matches what would let a text of a stranger become a part of the page, or keep a key.
var unsafe = regexp.MustCompile(`(inner|outer)HTML|insertAdjacent|document\.write|eval\(|Storage|cookie`)

// The scripts are written to be read: few lines, and none that is long.
func TestScripts(t *testing.T) {
	t.Parallel()
	total := 0
	for name, file := range map[string]string{"reference.html": referenceHTML, "inspector.html": inspectorHTML} {
		_, script, _ := strings.Cut(file, "<script>")
		script, _, found := strings.Cut(script, "</script>")
		if !found {
			t.Errorf("%s has no script", name)
		}
		for line := range strings.Lines(strings.TrimSpace(script)) {
			total++
			columns := utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))
			if columns > maxColumns {
				t.Errorf("%s has a line of %d columns, want at most %d: %s", name, columns, maxColumns, line)
			}
		}
		if found := unsafe.FindString(file); found != "" {
			t.Errorf("%s uses %s", name, found)
		}
	}
	t.Logf("the scripts have %d of %d lines", total, maxScript)
	if total > maxScript {
		t.Errorf("the scripts have %d lines, want at most %d", total, maxScript)
	}
}
