// Package layout tests which packages import which.
package layout

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
		"main.go":     "cli httpapi jsondb operator testdouble strict webui flag net/http os",
		"api.go":      "httpapi jsondb operator schema strict testdouble net/http os",
		"auth.go":     "httpapi jsondb schema strict net/http",
		"store.go":    "jsondb schema strict",
		"eventstest/": "events httpapi testdouble net/http testing",
		"internal/apitest/": "events eventstest httpapi strict testdouble " +
			"net/http net/http/httptest os testing",
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
		longest := ""
		for prefix := range allowed {
			if strings.HasPrefix(name, prefix) && len(prefix) > len(longest) {
				longest = prefix
			}
		}
		if longest == "" {
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
			if !slices.Contains(strings.Fields(allowed[longest]), short) {
				t.Errorf("%s: got import %s, want only %s and other standard packages",
					name, imported, allowed[longest])
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
