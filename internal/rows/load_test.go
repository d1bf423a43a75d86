package rows

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/events/internal/recordfile"
)

// TestForgedFiles: a file whose checksums are right, and which holds what is no
// record of ours, is damage, reported with its line, and left as it is.
func TestForgedFiles(t *testing.T) {
	t.Parallel()
	user := `{"user":` + fact{id: "usr_1", name: "ada"}.json() + `}`
	event := `{"event":` + fact{id: "evt_1", parent: "usr_1"}.json() + `}`
	for _, tt := range []struct{ name, records, reason string }{
		{"an unknown kind", `{"poll":{"id":"pol_1"}}`, errForm.Error()},
		{"an id of another kind", user + `,{"event":evt_` + fact{id: "gst_1", parent: "usr_1"}.json() + `}`, errForm.Error()},
		{"a parent that is not there", event, `evt_1 belongs to "usr_1", which is not in the file`},
		{"a name that two rows have", user + `,{"user":` + fact{id: "usr_2", name: "ada"}.json() + `}`,
			"usr_2 has a name that is taken"},
		{"another parent than before", user + `,{"user":` + fact{id: "usr_2", name: "eve"}.json() + `},` + event +
			`,{"event":` + fact{id: "evt_1", parent: "usr_2"}.json() + `}`, "evt_1 has another parent or created_at"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "events.json")
			f, err := recordfile.Open(path, recordfile.Options{Formats: []string{"events/1"}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			lines := []string{`{"user":` + fact{id: "usr_0", name: "bob"}.json() + `}`, tt.records}
			err = f.Rewrite(func(yield func([]byte) bool) {
				for _, line := range lines {
					if !yield([]byte(line)) {
						return
					}
				}
			})
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			for name, open := range map[string]func() error{
				"Open": func() error {
					db, err := Open(path, testOptions())
					if db != nil {
						t.Error("Open returned a database with its error")
					}
					return err
				},
				"Check": func() error { _, _, err := Check(path, testOptions()); return err },
			} {
				err := open()
				damage, ok := errors.AsType[*recordfile.DamageError](err)
				if !ok || damage.Line != 4 || damage.File == "" || !strings.Contains(damage.Reason, tt.reason) {
					t.Errorf("%s = %v, want damage in line 4: %s", name, err, tt.reason)
				}
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Errorf("the file was changed to %s", after)
			}
		})
	}
}

// TestCompaction: a file of which more than minOutdated, and more than half, is outdated
// is written anew while the database is used, and grows no further. Names, lists and idempotency
// keys are as before.
func TestCompaction(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.json")
	db := opened(t, path)
	const minOutdated = 1 << 20
	db.compactAt = minOutdated
	db.mustUpdate(t, put(fact{id: "usr_0", name: "zero"}))
	db.mustUpdate(t, func(tx *Tx) error {
		tx.Put(nil, []byte(fact{id: "evt_1", parent: "usr_0", status: "a"}.json()), &IdempotencyKey{Key: "k", At: time.Now()})
		return nil
	})
	text := strings.Repeat("x", 50<<10)
	largest := int64(0)
	for i := range 60 {
		db.mustUpdate(t, put(fact{id: "usr_1", name: fmt.Sprint(i, text)}))
		db.writer.Lock() // a compaction may still be under way
		largest = max(largest, db.file.Size())
		db.compactAt = minOutdated
		db.writer.Unlock()
	}
	if most := int64(minOutdated + 3*len(text)); largest > most || largest < minOutdated {
		t.Errorf("the file grew to %d bytes, want at least %d and at most %d", largest, minOutdated, most)
	}
	for range 2 {
		v := View{db}
		if v.Find("59"+text) == nil || v.Find("zero") == nil || v.Find("evt_1") == nil || len(db.names) != 5 {
			t.Errorf("after it, the database has %d names, and not those that it should have", len(db.names))
		}
		if (&Tx{db: db}).FindIdempotent("usr_0", "k") == nil || pages(v, "usr_0", "evt", "a", 9) == "" {
			t.Error("after it, an idempotency key or a list is lost")
		}
		db.Close()
		db = opened(t, path)
	}
}

// TestCheck: what is in a file is counted by kind.
func TestCheck(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "events.json")
	db := opened(t, path)
	db.mustUpdate(t, put(fact{id: "usr_1"}, fact{id: "evt_1", parent: "usr_1"}, fact{id: "evt_2", parent: "usr_1"}))
	db.Close()
	_, count, err := Check(path, testOptions())
	if err != nil || fmt.Sprint(count) != "map[event:2 guest:0 user:1]" {
		t.Errorf("Check = %v, %v, want two events and a user", count, err)
	}
}
