package events_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestHouse holds who may import what. A file is matched by the longest pattern
// that begins its path; in it stand the imports that it must not have.
func TestHouse(t *testing.T) {
	t.Parallel()
	const module = "example.com/events"
	allBut := func(room string) (rooms string) {
		entries, err := os.ReadDir("internal")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() && e.Name() != room {
				rooms += module + "/internal/" + e.Name() + " "
			}
		}
		return rooms
	}
	forbidden := map[string]string{
		"main.go":              "testing net/http/httptest",
		"api.go":               "os flag testing net/http/httptest " + module + "/internal/recordfile " + module + "/internal/operator",
		"auth.go":              "os flag testing net/http/httptest encoding/json " + module + "/internal/recordfile " + module + "/internal/operator",
		"store.go":             "net/http os flag testing net/http/httptest " + module + "/internal/operator",
		"cmd/":                 "flag net/http testing net/http/httptest " + module + "/internal/",
		"internal/command/":    module + " net/http testing " + module + "/internal/",
		"internal/serve/":      module + " flag testing net/http/httptest " + allBut("strict"),
		"internal/recordfile/": module + " net/http flag testing " + module + "/internal/",
		"internal/record/":     module + " os flag net/http testing net/http/httptest " + module + "/internal/recordfile",
		"internal/index/":      module + " os flag net/http testing net/http/httptest " + module + "/internal/",
		"internal/form/":       module + " os flag net/http testing net/http/httptest " + allBut("strict"),
		"internal/strict/":     module + " os flag net/http testing net/http/httptest " + module + "/internal/",
		"internal/answer/":     module + " os flag testing net/http/httptest " + allBut("strict"),
		"internal/operator/":   module + " os flag testing net/http/httptest " + allBut("answer"),
		"internal/double/":     module + " os flag testing net/http/httptest",
		"eventstest/":          "os flag",
	}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		if strings.HasPrefix(name, "examples/") || strings.HasPrefix(name, ".ci/") { // not of the program
			return nil
		}
		rule, found := "", false
		for pattern := range forbidden {
			if strings.HasPrefix(name, pattern) && len(pattern) > len(rule) {
				rule, found = pattern, true
			}
		}
		if !found {
			t.Errorf("%s has no rule: which room is it in?", name)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range file.Imports {
			imported, _ := strconv.Unquote(i.Path.Value)
			for bad := range strings.FieldsSeq(forbidden[rule]) {
				if imported == bad || strings.HasSuffix(bad, "/") && strings.HasPrefix(imported, bad) {
					t.Errorf("%s imports %s", name, imported)
				}
			}
			if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") && !strings.HasPrefix(imported, module) {
				t.Errorf("%s imports %s, which is not of the standard library", name, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
