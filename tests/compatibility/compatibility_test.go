// Package compatibility has the guards for docs/compatibility.md. Most compare what 1.x keeps with a list in
// testdata, one promise per line. The others use what an earlier version made: openapi.json, a dump and
// records, and copies of the helpers, which the step examples of .ci/run runs.
package compatibility

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/events"
	"example.com/events/internal/apitest"
)

type object = map[string]any

// golden compares lines with a file in testdata. UPDATE=1 adds new lines to the file, but removes none.
func golden(t *testing.T, file string, lines []string) {
	t.Helper()
	file = filepath.Join("testdata", file)
	text, err := os.ReadFile(file)
	if err != nil && os.Getenv("UPDATE") == "" {
		t.Fatal(err)
	}
	stored := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
	slices.Sort(lines)
	lines = slices.Compact(lines)
	wantNone(t, without(stored, lines))
	added := without(lines, stored)
	switch {
	case added == nil:
	case os.Getenv("UPDATE") == "":
		t.Errorf("%s: an addition: UPDATE=1 go test ./tests/compatibility accepts it:\n+ %s",
			file, strings.Join(added, "\n+ "))
	default:
		all := slices.Concat(stored, added)
		slices.Sort(all)
		err := os.WriteFile(file, []byte(strings.Join(all, "\n")+"\n"), 0o666)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// wantNone fails the test if something is gone that 1.x keeps.
func wantNone(t *testing.T, gone []string) {
	t.Helper()
	slices.Sort(gone)
	gone = slices.Compact(gone)
	if len(gone) > 0 {
		t.Errorf("this breaks 1.x; see docs/compatibility.md:\n- %s", strings.Join(gone, "\n- "))
	}
}

// without returns the elements of a that aren't in b.
func without[T comparable](a, b []T) (rest []T) {
	for _, x := range a {
		if !slices.Contains(b, x) {
			rest = append(rest, x)
		}
	}
	return rest
}

// flatten returns a line for each value in a JSON value: its place and, in a format, the value.
func flatten(place string, value any, format string) (lines []string) {
	switch value := value.(type) {
	case object:
		for name, field := range value {
			lines = append(lines, flatten(place+"."+name, field, format)...)
		}
	case []any:
		for _, element := range value {
			lines = append(lines, flatten(place+"[]", element, format)...)
		}
	default:
		lines = append(lines, place+" "+fmt.Sprintf(format, value))
	}
	return lines
}

// parse returns the value of a JSON text.
func parse(t *testing.T, text string) (value any) {
	t.Helper()
	err := json.Unmarshal([]byte(text), &value)
	if err != nil {
		t.Fatalf("got %s, want JSON: %v", text, err)
	}
	return value
}

// read returns the texts of the files that match a pattern, at least one.
func read(t *testing.T, pattern string) (texts map[string]string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || files == nil {
		t.Fatalf("%s: got no file, %v, want one", pattern, err)
	}
	texts = map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = string(text)
	}
	return texts
}

// In an empty store, a dump and records of an earlier version have the same content.
func TestRecords(t *testing.T) {
	for file, records := range read(t, "testdata/records-*.json") {
		now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
		store := events.NewStore(&events.Config{Now: func() time.Time { return now }})
		err := store.ApplyJSON([]byte(records))
		if err != nil {
			wantNone(t, []string{fmt.Sprintf("%s is applied: %v", file, err)})
		}
		var lines, ids []string
		for _, record := range parse(t, apitest.NewWithStore(t, store).Dump()).([]any) {
			for kind, fields := range record.(object) {
				id := kind + " " + fields.(object)["id"].(string)
				ids = append(ids, id)
				lines = append(lines, flatten(id, fields, "%#v")...)
			}
		}
		slices.Sort(ids)
		lines = append(lines, "records: "+strings.Join(ids, ", "))
		golden(t, strings.TrimSuffix(filepath.Base(file), ".json")+".txt", lines)
	}
}

// The helpers keep their functions with their parameters, and the types of their values.
func TestHelpers(t *testing.T) {
	var lines []string
	for _, part := range []struct{ file, begin, prefix, pattern string }{
		{"node/double.cjs", "module.exports", "exports.", `[{,] (\w+)()`},
		{"node/double.cjs", "const double = {", "double.",
			`(?m)^    (?:async )?(\w+)(?:: (?:async )?)?(\([^)]*\)|,)`},
		{"python/double.py", "", "", `(?m)^def ([a-z]\w*)(\([^)]*\))`},
		{"python/double.py", "class Double", "Double.", `(?m)^    def ([a-z]\w*|__init__)(\([^)]*\))`},
		{"python/double.py", "class Double", "Double.", `self\.([a-z]\w*)()[^.(\n]* = `},
	} {
		file := "../../examples/" + part.file
		_, text, _ := strings.Cut(read(t, file)[file], part.begin)
		for _, match := range regexp.MustCompile(part.pattern).FindAllStringSubmatch(text, -1) {
			line := filepath.Base(file) + ": " + part.prefix + match[1] + match[2]
			lines = append(lines, strings.Trim(line, ","))
		}
	}
	const types = "../../examples/node/double.d.cts"
	exported := ""
	statement := regexp.MustCompile(`(?m)^(export |  )\w[^/\n]*`) // up to a comment
	for _, line := range statement.FindAllString(read(t, types)[types], -1) {
		if strings.HasPrefix(line, "export ") {
			exported, line = strings.TrimSuffix(line, " {"), ""
		}
		lines = append(lines, "double.d.cts: "+strings.TrimSpace(exported+line))
	}
	golden(t, "helpers.txt", lines)
}
