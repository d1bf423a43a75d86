// Package house has the tests of the layout: who imports whom, the width of lines, and links between
// documents.
package house

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

var tree = os.DirFS("../..")

// isProgram reports whether a file is part of the program: Go, but no test, example or check.
func isProgram(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") &&
		!strings.HasPrefix(name, "examples/") && !strings.HasPrefix(name, ".ci/")
}

// TestImports checks the imports of each file against a list: packages of this module, and those packages
// of the standard library that only some may know. A file has the list of the longest path that it begins
// with.
func TestImports(t *testing.T) {
	const module = "example.com/events"
	standard := []string{"flag", "net/http", "net/http/httptest", "os", "testing"}
	allowed := map[string]string{
		"cmd/":                 "events os",
		"main.go":              "cli httpapi jsondb operator testdouble webui net/http os",
		"api.go":               "cli httpapi jsondb operator schema strict net/http os",
		"auth.go":              "httpapi jsondb schema strict net/http",
		"store.go":             "httpapi jsondb schema strict",
		"eventstest/":          "events httpapi testdouble net/http testing",
		"internal/operator/":   "cli httpapi strict net/http os",
		"internal/testdouble/": "httpapi schema strict net/http",
		"internal/cli/":        "flag os",
		"internal/webui/":      "net/http",
		"internal/httpapi/":    "strict net/http",
		"internal/jsondb/":     "commitlog os",
		"internal/commitlog/":  "os",
		"internal/schema/":     "strict",
		"internal/strict/":     "",
	}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !isProgram(name) {
			return err
		}
		room := ""
		for prefix := range allowed {
			if strings.HasPrefix(name, prefix) && len(prefix) > len(room) {
				room = prefix
			}
		}
		if room == "" {
			t.Errorf("%s has no list of imports", name)
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			first, _, _ := strings.Cut(imported, "/")
			own := imported == module || strings.HasPrefix(imported, module+"/")
			if strings.Contains(first, ".") && !own {
				t.Errorf("%s imports %s, which isn't in the standard library", name, imported)
			}
			short := imported
			if own {
				short = path.Base(imported)
			}
			if (own || slices.Contains(standard, imported)) &&
				!slices.Contains(strings.Fields(allowed[room]), short) {
				t.Errorf("%s imports %s, which isn't in its list", name, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

const maxColumns = 110 // of a line; a tab counts as four

// TestWidth checks the width of the lines of the program and the documents. Rows of tables may be wider.
func TestWidth(t *testing.T) {
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		document := strings.HasSuffix(name, ".md") && !strings.Contains(name, "node_modules/")
		if err != nil || !isProgram(name) && !document {
			return err
		}
		text, err := fs.ReadFile(tree, name)
		for i, line := range strings.Split(string(text), "\n") {
			columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			if columns > maxColumns && !(document && strings.HasPrefix(line, "|")) {
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
	code := regexp.MustCompile("(?s)```.*?```")
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	noAnchor := regexp.MustCompile("[^a-z0-9 _-]")
	link := regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	texts := map[string]string{}            // of the documents, without their code
	anchors := map[string]map[string]bool{} // of the headings of each
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".md") || strings.Contains(name, "node_modules/") {
			return err
		}
		text, err := fs.ReadFile(tree, name)
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
			_, err := fs.Stat(tree, file)
			if err != nil || anchor != "" && !anchors[file][anchor] {
				t.Errorf("%s links to %s#%s, which is not there", name, found[1], anchor)
			}
		}
	}
}
