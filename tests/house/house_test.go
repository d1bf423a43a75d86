// Package house has the tests of the layout: who imports whom, the width of lines, and links between
// documents.
package house

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

var tree = os.DirFS("../..")

// isProgram reports whether a file is part of the program or a package of its own for tests, but no test,
// example or check.
func isProgram(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") &&
		!strings.HasPrefix(name, "examples/") && !strings.HasPrefix(name, ".ci/")
}

// TestImports checks the imports of each file against a list: packages of this module, and those packages
// of the standard library that only some may know. A file has the list of the longest path that it begins
// with.
func TestImports(t *testing.T) {
	const module = "example.com/events"
	restricted := []string{"flag", "net/http", "net/http/httptest", "os", "testing"}
	allowed := map[string]string{
		"cmd/":        "events os",
		"main.go":     "cli httpapi jsondb operator testdouble webui flag net/http os",
		"api.go":      "httpapi jsondb operator schema strict testdouble net/http os",
		"auth.go":     "httpapi jsondb schema strict net/http",
		"store.go":    "httpapi jsondb schema strict",
		"eventstest/": "events httpapi testdouble net/http testing",
		"internal/apitest/": "events eventstest httpapi strict testdouble " +
			"net/http net/http/httptest testing",
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
			t.Errorf("%s: got no list of imports, want one above", name)
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
			short := imported
			if strings.HasPrefix(imported+"/", module+"/") {
				short = path.Base(imported)
			} else if !slices.Contains(restricted, imported) && isStandard(imported) {
				continue
			}
			if !slices.Contains(strings.Fields(allowed[room]), short) {
				t.Errorf("%s: got import %s, want only %s and other standard packages",
					name, imported, allowed[room])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// isStandard reports whether a package is in the standard library.
func isStandard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".") // not a domain
}

const maxColumns = 110 // of a line; a tab counts as four

// isDocument reports whether a file is a document.
func isDocument(name string) bool {
	return strings.HasSuffix(name, ".md") && !strings.Contains(name, "node_modules/")
}

// TestWidth checks the width of the lines of all Go files and documents. Rows of tables may be wider.
func TestWidth(t *testing.T) {
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") && !isDocument(name) {
			return err
		}
		text, err := fs.ReadFile(tree, name)
		for i, line := range strings.Split(string(text), "\n") {
			if isDocument(name) && strings.HasPrefix(line, "|") {
				continue
			}
			columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			if columns > maxColumns {
				t.Errorf("%s:%d: got %d columns, want at most %d", name, i+1, columns, maxColumns)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// document is what TestLinks looks at in a document.
type document struct {
	anchors []string // of the headings
	links   []string // targets, with anchors
}

// readDocument reads a document without its code blocks.
func readDocument(text string) (d document) {
	code := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			code = !code
		}
		if code {
			continue
		}
		heading := strings.TrimLeft(line, "#")
		if heading != line {
			d.anchors = append(d.anchors, anchor(strings.TrimSpace(heading)))
		}
		_, rest, found := strings.Cut(line, "](")
		for found {
			target, _, _ := strings.Cut(rest, ")")
			d.links = append(d.links, target)
			_, rest, found = strings.Cut(rest, "](")
		}
	}
	return d
}

// anchor returns the anchor of a heading: in lower case, with dashes for spaces and without punctuation.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return -1
	}, strings.ToLower(heading))
}

// TestLinks: each link of a document to a file or to a heading leads there.
func TestLinks(t *testing.T) {
	documents := map[string]document{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !isDocument(name) {
			return err
		}
		text, err := fs.ReadFile(tree, name)
		documents[name] = readDocument(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range documents {
		for _, link := range d.links {
			if strings.Contains(link, "://") {
				continue
			}
			file, heading, _ := strings.Cut(link, "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			_, err := fs.Stat(tree, target)
			if err != nil {
				t.Errorf("%s: link to %s: got %v, want a file", name, link, err)
				continue
			}
			if heading == "" {
				continue
			}
			if !slices.Contains(documents[target].anchors, heading) {
				t.Errorf("%s: link to %s: got headings %q, want that one",
					name, link, documents[target].anchors)
			}
		}
	}
}
