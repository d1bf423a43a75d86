package events_test

import (
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHouse holds who may import what: arrows between the rooms run one way, and
// a room knows nothing of what it has no business with. Each file is matched by
// the longest of the paths below that begins its own.
func TestHouse(t *testing.T) {
	t.Parallel()
	const (
		root      = "example.com/events"
		http      = "net/http"
		forServer = "os flag " // what knows neither files nor flags
	)
	// rooms are all rooms but these.
	rooms := func(but ...string) (all string) {
		entries, err := os.ReadDir("internal")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() && !slices.Contains(but, e.Name()) {
				all += root + "/internal/" + e.Name() + " "
			}
		}
		return all
	}
	forbidden := map[string]string{
		"main.go":              rooms("command", "greeting", "offline", "operator", "double", "pages", "strict", "form", "answer", "rows"),
		"api.go":               forServer + rooms("answer", "form", "rows", "strict"),
		"auth.go":              forServer + rooms("answer", "form", "rows", "strict"),
		"store.go":             forServer + http + " " + rooms("form", "rows", "strict"),
		"cmd/":                 "flag " + http + " " + rooms(),
		"internal/strict/":     root + " " + forServer + http + " " + rooms(),
		"internal/form/":       root + " " + forServer + http + " " + rooms("strict"),
		"internal/recordfile/": root + " flag " + http + " " + rooms(),
		"internal/commitlog/":  root + " flag " + http + " " + rooms(),
		"internal/rows/":       root + " " + forServer + http + " " + rooms("strict", "recordfile"),
		"internal/httpapi/":    root + " " + forServer + rooms("strict"),
		"internal/schema/":     root + " " + forServer + http + " " + rooms("strict"),
		"internal/answer/":     root + " " + forServer + rooms("strict"),
		"internal/pages/":      root + " " + forServer + rooms(),
		"internal/greeting/":   root + " " + forServer + http + " " + rooms("command"),
		"internal/offline/":    root + " " + http + " " + rooms("command", "operator", "rows"),
		"internal/command/":    root + " " + rooms("answer", "strict"),
		"internal/operator/":   root + " os " + rooms("answer", "command", "strict"),
		"internal/double/":     root + " " + forServer + rooms("answer", "form", "operator", "strict"),
		"eventstest/":          forServer + rooms("answer", "double"),
	}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		if strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, ".ci/") { // not of the program
			return nil
		}
		place := ""
		for begin := range forbidden {
			if strings.HasPrefix(name, begin) && len(begin) > len(place) {
				place = begin
			}
		}
		if place == "" {
			t.Errorf("%s has no rule: which room is it in?", name)
			return nil
		}
		banned := strings.Fields(forbidden[place])
		if place != "eventstest/" {
			banned = append(banned, "testing", "net/http/httptest")
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range file.Imports {
			imported, _ := strconv.Unquote(i.Path.Value)
			if slices.Contains(banned, imported) {
				t.Errorf("%s imports %s", name, imported)
			}
			first, _, _ := strings.Cut(imported, "/")
			if strings.Contains(first, ".") && !strings.HasPrefix(imported, root) {
				t.Errorf("%s imports %s, which is not of the standard library", name, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

const maxColumns = 110 // of a line; a tab counts as four

// size is that of some code: its tokens, and the lines on which a token begins.
type size struct{ tokens, lines int }

func (s size) density() float64 { return float64(s.tokens) / float64(s.lines) }

// TestSize holds the width of the program's lines, without tests, examples and .ci, and prints
// its size and density, which have no limits. Tokens are those of go/scanner, without comments
// and without the semicolons that it inserts at the ends of lines.
func TestSize(t *testing.T) {
	t.Parallel()
	var program size
	packages := map[string]*size{}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
			strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, ".ci/") {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			if columns > maxColumns {
				t.Errorf("%s:%d has %d columns, want at most %d", name, i+1, columns, maxColumns)
			}
		}
		file := sizeOf(text)
		if packages[path.Dir(name)] == nil {
			packages[path.Dir(name)] = &size{}
		}
		for _, s := range []*size{&program, packages[path.Dir(name)]} {
			s.tokens += file.tokens
			s.lines += file.lines
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		s := packages[dir]
		t.Logf("%-22s %6d tokens, %.2f a line", dir, s.tokens, s.density())
	}
	t.Logf("%-22s %6d tokens, %.2f a line", "the program", program.tokens, program.density())
}

// TestNothingLoose holds that each file under internal/ is in a room.
func TestNothingLoose(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("internal")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			t.Errorf("internal/%s is in no room", e.Name())
		}
	}
}

// sizeOf is the size of a file.
func sizeOf(text []byte) (s size) {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var scan scanner.Scanner
	scan.Init(file, text, nil, 0)
	last := 0 // the last line on which a token began
	for {
		at, tok, literal := scan.Scan()
		if tok == token.EOF {
			return s
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		s.tokens++
		if line := file.Line(at); line != last {
			s.lines++
			last = line
		}
	}
}

// Each table of a document is one when it is rendered, and not a paragraph with bars in it.
func TestTables(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{ // the first line that is wrong, or 0
		"| a | b |\n|---|---|\n| 1 | `x \\| y` |": 0,
		"  | a |\n  |:-:|\n\nText | with a bar":   0,
		"```\n| a |\n```\nText":                   0,
		"a | b\n\n| a | b |\n|---|\n":             4,
		"| a |\n\n|---|\n":                        1,
		"| a |\n|---|\n| 1 | 2 |":                 3,
		"\nText\n| a |\n|---|":                    3,
		"\n\nText | a | b | |---|---| | 1 | 2 |":  3,
	} {
		if got := brokenTable(text); got != want {
			t.Errorf("brokenTable(%q) = %d, want %d", text, got, want)
		}
	}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".md") || strings.Contains(name, "node_modules/") {
			return err
		}
		text, err := os.ReadFile(name)
		if line := brokenTable(string(text)); line > 0 {
			t.Errorf("%s:%d: this is not a table when it is rendered: it needs an empty line above it, a "+
				"delimiter row, and rows with as many cells", name, line)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// brokenTable returns the number of the first line of a Markdown text that looks like one of a
// table and is not rendered as one, or 0.
func brokenTable(text string) int {
	delimiter := regexp.MustCompile(`^(\|\s*:?-+:?\s*)+\|$`)
	inCode := false
	above := "" // the line above, if it is not one of a table
	var table []string
	// A last empty line ends a table at the end.
	for i, line := range strings.Split(text+"\n", "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			inCode = !inCode
		}
		switch {
		case inCode:
		case strings.HasPrefix(line, "|"):
			table = append(table, line)
			cells := strings.Count(line, "|") - strings.Count(line, `\|`)
			header := strings.Count(table[0], "|") - strings.Count(table[0], `\|`)
			isDelimiter := delimiter.MatchString(line)
			if above != "" || cells != header || isDelimiter != (len(table) == 2) {
				return i + 1
			}
			continue
		case len(table) == 1: // its header row is alone
			return i
		case strings.Contains(line, "|--"):
			return i + 1
		}
		above, table = line, nil
	}
	return 0
}

// TestLinks: each link of a document to a file or to a heading leads there.
func TestLinks(t *testing.T) {
	t.Parallel()
	code := regexp.MustCompile("(?s)```.*?```")
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	noAnchor := regexp.MustCompile("[^a-z0-9 _-]")
	link := regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	texts := map[string]string{}            // of the documents, without their code
	anchors := map[string]map[string]bool{} // of the headings of each
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".md") || strings.Contains(name, "node_modules/") {
			return err
		}
		text, err := os.ReadFile(name)
		texts[name] = code.ReplaceAllString(string(text), "")
		anchors[name] = map[string]bool{"": true}
		for _, found := range heading.FindAllStringSubmatch(texts[name], -1) {
			anchor := noAnchor.ReplaceAllString(strings.ToLower(found[1]), "")
			anchors[name][strings.ReplaceAll(anchor, " ", "-")] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for name, text := range texts {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			file, anchor := name, found[2]
			if found[1] != "" {
				file = path.Join(path.Dir(name), found[1])
			}
			if strings.Contains(found[1], "://") {
				continue
			}
			links++
			_, err := os.Stat(file)
			if err != nil || anchor != "" && !anchors[file][anchor] {
				t.Errorf("%s links to %s#%s, which is not there", name, found[1], anchor)
			}
		}
	}
	if links < 50 {
		t.Errorf("the documents have %d links: this tests nothing", links)
	}
}
