package rows

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/events/internal/recordfile"
)

// lost is the text of a data file in which a line for each of the records stood, of which those in
// brackets are lost: their checksum is wrong.
func lost(t *testing.T, records ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "events.json")
	f, err := recordfile.Open(path, recordfile.Options{Formats: []string{"events/1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = f.Rewrite(func(yield func([]byte) bool) {
		for _, record := range records {
			if !yield([]byte(strings.Trim(record, "<>"))) {
				return
			}
		}
	})
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	for i, record := range records {
		if strings.HasPrefix(record, "<") {
			lines[i+2] = strings.Replace(lines[i+2], `"w":`, `"W":`, 1)
		}
	}
	return strings.Join(lines, "")
}

// What Salvage prints can be applied in its order: a row stands behind its parent, and one that
// has lost its parent, or its name to another, is left out and named.
func TestSalvageOrder(t *testing.T) {
	t.Parallel()
	user := func(n int) string {
		return `{"user":` + fact{id: fmt.Sprint("usr_", n), name: fmt.Sprint("user", n)}.json() + `}`
	}
	event := func(n, parent int) string {
		return `{"event":` + fact{id: fmt.Sprint("evt_", n), parent: fmt.Sprint("usr_", parent)}.json() + `}`
	}
	guest := func(n, parent int) string {
		return `{"guest":` + fact{id: fmt.Sprint("gst_", n), parent: fmt.Sprint("evt_", parent)}.json() + `}`
	}
	deleted := func(kind, id string) string { return `{"delete":{"` + kind + `":"` + id + `"}}` }
	gone := func(record string) string { return "<" + record + ">" }
	renamed := `{"user":` + fact{id: "usr_1", name: "other"}.json() + `}`
	secondLife := `{"event":` + fact{id: "evt_1", parent: "usr_1", created: 9}.json() + `}`
	sameName := `{"user":` + fact{id: "usr_2", name: "user1"}.json() + `}`
	for name, test := range map[string]struct {
		file    []string
		want    []string
		leftOut []string // ids
		forged  []int    // lines
	}{
		"nothing is lost": {
			[]string{user(1), event(1, 1), guest(1, 1)}, []string{user(1), event(1, 1), guest(1, 1)}, nil, nil},
		"a parent comes again": {
			[]string{user(1), gone(event(1, 1)), guest(1, 1), user(2), guest(2, 1), event(1, 1), guest(3, 1)},
			[]string{user(1), user(2), event(1, 1), guest(1, 1), guest(2, 1), guest(3, 1)}, nil, nil},
		"two parents come again, the younger first": {
			[]string{gone(user(1)), event(1, 1), guest(1, 1), event(1, 1), event(2, 1), user(2), user(1)},
			[]string{user(2), user(1), event(1, 1), guest(1, 1), event(1, 1), event(2, 1)}, nil, nil},
		"a parent is lost": {
			[]string{user(1), gone(event(1, 1)), guest(1, 1), guest(1, 1), guest(2, 1), user(2)},
			[]string{user(1), user(2)}, []string{"gst_1", "gst_2"}, nil},
		"the parent of a parent is lost": {
			[]string{gone(user(1)), event(1, 1), guest(1, 1), user(2)},
			[]string{user(2)}, []string{"evt_1", "gst_1"}, nil},
		"what waits is deleted": {
			[]string{user(1), gone(event(1, 1)), guest(1, 1), guest(2, 1), deleted("guest", "gst_1"), event(1, 1)},
			[]string{user(1), deleted("guest", "gst_1"), event(1, 1), guest(2, 1)}, nil, nil},
		"what is waited for is deleted": {
			[]string{user(1), gone(event(1, 1)), guest(1, 1), deleted("event", "evt_1"), user(2)},
			[]string{user(1), deleted("event", "evt_1"), user(2)}, nil, nil},
		"the parent of what is waited for is deleted": {
			[]string{gone(user(1)), event(1, 1), guest(1, 1), deleted("user", "usr_1"), user(2)},
			[]string{deleted("user", "usr_1"), user(2)}, nil, nil},
		"a parent was deleted, and its second life is lost": {
			[]string{user(1), event(1, 1), deleted("event", "evt_1"), gone(event(1, 1)), guest(1, 1)},
			[]string{user(1), event(1, 1), deleted("event", "evt_1")}, []string{"gst_1"}, nil},
		"a parent was deleted with its own": {
			[]string{user(1), event(1, 1), deleted("user", "usr_1"), user(1), gone(event(1, 1)), guest(1, 1)},
			[]string{user(1), event(1, 1), deleted("user", "usr_1"), user(1)}, []string{"gst_1"}, nil},
		"a child went to another parent": {
			[]string{user(1), user(2), event(1, 1), deleted("event", "evt_1"), event(1, 2), deleted("user", "usr_1"),
				guest(1, 1)},
			[]string{user(1), user(2), event(1, 1), deleted("event", "evt_1"), event(1, 2), deleted("user", "usr_1"),
				guest(1, 1)}, nil, nil},
		"a delete is lost": {
			[]string{user(1), gone(deleted("user", "usr_1")), sameName, event(1, 2)},
			[]string{user(1)}, []string{"evt_1", "usr_2"}, nil},
		"a new name is lost": {
			[]string{user(1), gone(renamed), sameName, renamed, sameName},
			[]string{user(1), renamed, sameName}, nil, nil},
		"a name is free again": {
			[]string{user(1), renamed, sameName, deleted("user", "usr_2"), user(1)},
			[]string{user(1), renamed, sameName, deleted("user", "usr_2"), user(1)}, nil, nil},
		"a delete is lost, and the row comes again": {
			[]string{user(1), event(1, 1), guest(1, 1), gone(deleted("event", "evt_1")), secondLife, guest(2, 1)},
			[]string{user(1), event(1, 1), guest(1, 1), deleted("event", "evt_1"), secondLife, guest(2, 1)}, nil, nil},
		"a delete is lost, and the row comes again with another parent": {
			[]string{user(1), user(2), event(1, 1), gone(deleted("event", "evt_1")), event(1, 2)},
			[]string{user(1), user(2), event(1, 1), deleted("event", "evt_1"), event(1, 2)}, nil, nil},
		"forged records": {
			[]string{user(1), `{"poll":{"id":"pol_1"}}`, `5,` + user(2), user(3),
				`{"guest":` + fact{id: "gst_1", parent: "usr_1"}.json() + `}`},
			[]string{user(1), user(3)}, nil, []int{4, 5, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "events.json")
			text := lost(t, test.file...)
			if err := os.WriteFile(path, []byte(text), 0o400); err != nil {
				t.Fatal(err)
			}
			var got, leftOut []string
			found, err := Salvage(path, testOptions(), func(record string) error {
				got = append(got, record)
				return nil
			})
			for _, row := range found.LeftOut {
				leftOut = append(leftOut, row.ID)
			}
			if err != nil || !slices.Equal(got, test.want) || !slices.Equal(leftOut, test.leftOut) ||
				!slices.Equal(found.Forged, test.forged) {
				t.Errorf("Salvage = %+v, %v\n got %s\nwant %s", found, err, strings.Join(got, "\n     "),
					strings.Join(test.want, "\n     "))
			}
		})
	}
}

// Check reports a record that is not UTF-8, with its line.
func TestCheckUTF8(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.json")
	user := `{"user":` + fact{id: "usr_1", name: "ada"}.json() + `}`
	text := lost(t, user, strings.ReplaceAll(strings.ReplaceAll(user, "usr_1", "usr_2"), "ada", "a\xff"))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := Check(path, testOptions())
	damage, is := errors.AsType[*DamageError](err)
	if !is || damage.Line != 4 || !strings.Contains(err.Error(), "not UTF-8") {
		t.Errorf("Check = %v, want damage in line 4", err)
	}
}
