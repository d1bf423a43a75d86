package events_test

import (
	"go/parser"
	"go/token"
	"io/fs"
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
		"main.go":              rooms("command", "greeting", "offline", "operator", "testdouble", "webui", "strict", "form", "answer", "rows"),
		"adapters.go":          forServer + rooms("answer", "httpapi", "jsondb", "schema", "strict"),
		"api.go":               forServer + rooms("httpapi", "jsondb"),
		"auth.go":              forServer + rooms("httpapi", "jsondb", "schema", "strict"),
		"store.go":             forServer + http + " " + rooms("httpapi", "jsondb", "schema", "strict"),
		"cmd/":                 "flag " + http + " " + rooms(),
		"internal/strict/":     root + " " + forServer + http + " " + rooms(),
		"internal/form/":       root + " " + forServer + http + " " + rooms("strict"),
		"internal/recordfile/": root + " flag " + http + " " + rooms(),
		"internal/jsondb/":     root + " flag " + http + " " + rooms("commitlog"),
		"internal/commitlog/":  root + " flag " + http + " " + rooms(),
		"internal/rows/":       root + " " + forServer + http + " " + rooms("strict", "recordfile"),
		"internal/httpapi/":    root + " " + forServer + rooms("strict"),
		"internal/schema/":     root + " " + forServer + http + " " + rooms("strict"),
		"internal/answer/":     root + " " + forServer + rooms("strict"),
		"internal/cli/":        root + " " + http + " " + rooms(),
		"internal/webui/":      root + " " + forServer + rooms(),
		"internal/greeting/":   root + " " + forServer + http + " " + rooms("command"),
		"internal/offline/":    root + " " + http + " " + rooms("command", "jsondb", "operator", "rows"),
		"internal/command/":    root + " " + rooms("answer", "strict"),
		"internal/operator/":   root + " os " + rooms("answer", "command", "strict"),
		"internal/testdouble/": root + " " + forServer + rooms("httpapi", "schema", "strict"),
		"eventstest/":          forServer + rooms("httpapi", "testdouble"),
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

// TestWidth holds the width of the program's lines, without tests, examples and .ci.
func TestWidth(t *testing.T) {
	t.Parallel()
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
			strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, ".ci/") {
			return err
		}
		text, err := os.ReadFile(name)
		for i, line := range strings.Split(string(text), "\n") {
			columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			if columns > maxColumns {
				t.Errorf("%s:%d has %d columns, want at most %d", name, i+1, columns, maxColumns)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
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
	for name, text := range texts {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			file, anchor := name, found[2]
			if found[1] != "" {
				file = path.Join(path.Dir(name), found[1])
			}
			if strings.Contains(found[1], "://") {
				continue
			}
			_, err := os.Stat(file)
			if err != nil || anchor != "" && !anchors[file][anchor] {
				t.Errorf("%s links to %s#%s, which is not there", name, found[1], anchor)
			}
		}
	}
}
