package events_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
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
		"main.go":              rooms("command", "operator", "double", "strict", "form", "answer", "rows"),
		"api.go":               forServer + rooms("answer", "form", "rows", "strict"),
		"auth.go":              forServer + rooms("answer", "form", "rows", "strict"),
		"store.go":             forServer + http + " " + rooms("form", "rows", "strict"),
		"cmd/":                 "flag " + http + " " + rooms(),
		"internal/strict/":     root + " " + forServer + http + " " + rooms(),
		"internal/form/":       root + " " + forServer + http + " " + rooms("strict"),
		"internal/recordfile/": root + " flag " + http + " " + rooms(),
		"internal/rows/":       root + " " + forServer + http + " " + rooms("strict", "recordfile"),
		"internal/answer/":     root + " " + forServer + rooms("strict"),
		"internal/command/":    root + " " + rooms("answer", "strict"),
		"internal/operator/":   root + " os " + rooms("answer", "command", "strict"),
		"internal/double/":     root + " " + forServer + rooms("answer", "form", "operator", "strict"),
		"eventstest/":          forServer + rooms("double"),
	}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		if strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, ".ci/") { // not of the program
			return nil
		}
		place := ""
		for path := range forbidden {
			if strings.HasPrefix(name, path) && len(path) > len(place) {
				place = path
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

// TestSize holds the size that CONTRIBUTING.md promises: no line of the program
// over 110 columns, of which a tab counts as four; and no file at the top over
// 950 lines.
func TestSize(t *testing.T) {
	t.Parallel()
	code := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
			strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, ".ci/") {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		lines := strings.Split(string(text), "\n")
		for i, line := range lines {
			if columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); columns > 110 {
				t.Errorf("%s:%d has %d columns, want at most 110", name, i+1, columns)
			}
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				code++
			}
		}
		if !strings.Contains(name, "/") && len(lines)-1 > 950 {
			t.Errorf("%s has %d lines, want at most 950", name, len(lines)-1)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the program has %d lines of code", code)
}
