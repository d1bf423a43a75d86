package jsondb

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/events/internal/commitlog"
)

// A startup rewrites a file with stale records, so that old values and deleted rows are gone, and no other
// file.
func TestOpenRewritesStaleRecords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*Tx) error
		stale  bool
	}{
		{"delete", func(tx *Tx) error { tx.Delete("usr_1"); return nil }, true},
		{"change", put(row{id: "usr_1", name: "Anonymous"}), true},
		{"same text", put(row{id: "usr_1", name: "Ada"}), false},
		{"new row", put(row{id: "usr_3", name: "Edith"}), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := newFile(t)
			db := openDB(t, path, testOptions())
			mustBatch(t, db, put(
				row{id: "usr_1", name: "Ada"},
				row{id: "evt_1", parent: "usr_1", name: "Ada's party"},
				row{id: "evt_2", parent: "usr_1", name: "Ada's talk"},
				row{id: "usr_2", name: "Grace"},
			))
			mustBatch(t, db, tt.change)
			want := dump(db)
			deletes := strings.Count(readFile(t, path), `{"delete":`)
			if deletes > 1 {
				t.Errorf("deletes in the file: got %d, want one for the user and its rows", deletes)
			}
			db.Close()
			before := readFile(t, path)
			for range 2 {
				db = openDB(t, path, testOptions())
				if got := dump(db); got != want {
					t.Errorf("rows after opening the file again: got\n%s\nwant\n%s", got, want)
				}
				db.Close()
			}
			after := readFile(t, path)
			if got := after != before; got != tt.stale {
				t.Errorf("the file was rewritten: got %t, want %t", got, tt.stale)
			}
			if tt.stale && strings.Contains(after, `"Ada"`) {
				t.Errorf("file: got %s, want no Ada", after)
			}
		})
	}
}

// TestOpenWithoutRewrite opens a file that holds deletes and can't be rewritten, as on a full disk.
func TestOpenWithoutRewrite(t *testing.T) {
	t.Parallel()
	path := newFile(t)
	db := openDB(t, path, testOptions())
	mustBatch(t, db, put(row{id: "usr_1"}, row{id: "usr_2"}))
	mustBatch(t, db, func(tx *Tx) error { tx.Delete("usr_1"); return nil })
	db.Close()
	err := os.MkdirAll(path+".tmp/obstacle", 0o700) // where the rewrite needs a file
	if err != nil {
		t.Fatal(err)
	}
	db = openDB(t, path, testOptions())
	mustBatch(t, db, put(row{id: "usr_3"}))
	want := row{id: "usr_2"}.json() + "\n" + row{id: "usr_3"}.json() + "\n"
	for _, name := range []string{"not rewritten", "opened again"} {
		var got string
		db.View(func(tx *Tx) {
			for r := range tx.All() {
				got += r.JSON + "\n"
			}
		})
		if got != want {
			t.Errorf("rows of the file %s: got\n%s\nwant\n%s", name, got, want)
		}
		db.Close()
		db = openDB(t, path, testOptions())
	}
}

// Expired rows don't make a file stale, and aren't loaded. Of the versions of a row, the last one counts,
// whatever their creation times are.
func TestOpenExpired(t *testing.T) {
	t.Parallel()
	const now = 1000 // nanoseconds
	ticket := func(created int64, version int) string {
		return `{"ticket":` + row{id: "tkt_1", created: created, version: version}.json() + `}`
	}
	for _, tt := range []struct {
		name    string
		commits []string
		version int // that is loaded; 0 if none
		stale   bool
	}{
		{"fresh", []string{ticket(now, 1)}, 1, false},
		{"from the future", []string{ticket(now+1000, 1)}, 1, false},
		{"expired", []string{ticket(0, 1)}, 0, false},
		{"used again after it expired", []string{ticket(0, 1), ticket(now, 2)}, 2, false},
		{"used again after the clock was set back", []string{ticket(now+1000, 1), ticket(now, 2)}, 2, true},
		{"expired after the clock was set forward", []string{ticket(now+1000, 1), ticket(0, 2)}, 0, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := newFile(t)
			writeRecords(t, path, tt.commits...)
			before := readFile(t, path)
			o := testOptions()
			o.Now = func() time.Time { return time.Unix(0, now) }
			db := openDB(t, path, o)
			want := ""
			if tt.version > 0 {
				created := find(db, "tkt_1").Created.UnixNano()
				want = row{id: "tkt_1", created: created, version: tt.version}.json()
			}
			if got := text(find(db, "tkt_1")); got != want {
				t.Errorf("Find: got %s, want %s", got, want)
			}
			db.Close()
			if got := readFile(t, path) != before; got != tt.stale {
				t.Errorf("the file was rewritten: got %t, want %t", got, tt.stale)
			}
		})
	}
}

func TestOlderFormat(t *testing.T) {
	t.Parallel()
	path := newFile(t)
	db := openDB(t, path, testOptions())
	mustBatch(t, db, put(row{id: "usr_1", name: "Ada"}, row{id: "evt_1", parent: "usr_1"}))
	db.Close()

	later := testOptions()
	later.Formats = []string{"events/1", "events/2"}
	later.Tables[1].Upgrade = func(json string) (string, error) {
		return strings.TrimSuffix(json, "}") + `,"price":0}`, nil
	}
	want := row{id: "usr_1", name: "Ada"}.json() + "\n" +
		strings.TrimSuffix(row{id: "evt_1", parent: "usr_1"}.json(), "}") + `,"price":0}` + "\n"
	for _, name := range []string{"of an older format", "opened again"} {
		db = openDB(t, path, later)
		var got string
		db.View(func(tx *Tx) {
			for r := range tx.All() {
				got += r.JSON + "\n"
			}
		})
		if got != want {
			t.Errorf("rows of the file %s: got\n%s\nwant\n%s", name, got, want)
		}
		db.Close()
	}
}

func TestUpgradeFails(t *testing.T) {
	t.Parallel()
	path := newFile(t)
	db := openDB(t, path, testOptions())
	mustBatch(t, db, put(row{id: "usr_1"}))
	db.Close()
	before := readFile(t, path)
	later := testOptions()
	later.Formats = []string{"events/1", "events/2"}
	later.Tables[0].Upgrade = func(string) (string, error) { return "", errTest }
	_, err := Open(path, later)
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("Open: got %v, want %v", err, ErrDamaged)
	}
	if readFile(t, path) != before {
		t.Error("file: got another text, want the same")
	}
}

// A scan fails even if the damaged field is the last one that it reads.
func TestScannerFails(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{}`, `{"name":1}`, `{"name":"Ada`, `{"name":"\x"}`} {
		s := Scanner{rest: text}
		s.String("name")
		if !s.failed {
			t.Errorf("%s: got a value, want a failure", text)
		}
	}
	s := Scanner{rest: `{"name":null}`}
	if got := s.String("name"); got != "" || s.failed {
		t.Errorf("null: got %q, failed: %t; want no value and no failure", got, s.failed)
	}
}

// TestDamagedRecords opens files whose lines are valid and whose records are not.
func TestDamagedRecords(t *testing.T) {
	t.Parallel()
	user := `{"user":` + row{id: "usr_1", name: "Ada"}.json() + `}`
	event := `{"event":` + row{id: "evt_1", parent: "usr_1"}.json() + `}`
	tests := []struct {
		name   string
		record string // second commit, after a user and an event
		reason string
	}{
		{"not a record", `{}`, "not in the form"},
		{"unknown table", `{"venue":{"id":"ven_1"}}`, "not in the form"},
		{"row of another table", `{"event":` + row{id: "usr_2"}.json() + `}`, "not in the form"},
		{"field missing", `{"user":{"id":"usr_2"}}`, "not in the form"},
		{"time", strings.Replace(user, "1970-01-01", "1970-13-01", 1), "not in the form"},
		{"more than a row", strings.TrimSuffix(event, "}") + `,"idempotency":7}`, "not in the form"},
		{"delete of another table", `{"delete":{"event":"usr_1"}}`, "not in the form"},
		{"unknown parent", `{"event":` + row{id: "evt_2", parent: "usr_9"}.json() + `}`, "doesn't exist"},
		{"key taken", `{"user":` + row{id: "usr_2", name: "Ada"}.json() + `}`, "unique key"},
		{"other parent", user + `,{"user":` + row{id: "usr_2"}.json() + `},` +
			`{"event":` + row{id: "evt_1", parent: "usr_2"}.json() + `}`, "another parent"},
		{"other created_at", `{"user":` + row{id: "usr_1", created: 1}.json() + `}`, "created_at"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := newFile(t)
			writeRecords(t, path, user+","+event, test.record)
			before := readFile(t, path)
			_, err := Open(path, testOptions())
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("Open: got %v, want %v", err, ErrDamaged)
			}
			const line = "line 5," // after the bracket, the header, the empty commit and the first commit
			for _, want := range []string{line, test.reason} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Open: got %v, want %q in it", err, want)
				}
			}
			if readFile(t, path) != before {
				t.Error("file: got another text, want the same")
			}
			_, err = Check(path, testOptions())
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("Check: got %v, want %v", err, ErrDamaged)
			}
		})
	}
}

// writeRecords creates a file with commits of records.
func writeRecords(t *testing.T, path string, commits ...string) {
	t.Helper()
	log, err := commitlog.Open(path, testOptions().logOptions(), func(commitlog.Commit) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, records := range commits {
		err = log.Append([]byte(records))
		if err != nil {
			t.Fatal(err)
		}
	}
	err = log.Close()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	path := newFile(t)
	db := openDB(t, path, testOptions())
	mustBatch(t, db, put(
		row{id: "usr_1"},
		row{id: "evt_1", parent: "usr_1"},
		row{id: "evt_2", parent: "usr_1"},
	))
	mustBatch(t, db, func(tx *Tx) error { tx.Delete("evt_1"); return nil })
	before := readFile(t, path)
	report, err := Check(path, testOptions()) // while the file is open
	if err != nil {
		t.Fatalf("Check: got %v, want nil", err)
	}
	got := fmt.Sprint(report.Rows, report.Size, report.Torn)
	want := fmt.Sprint(db.Stats().Rows, len(before), "")
	if got != want {
		t.Errorf("Check: got %s, want %s", got, want)
	}
	if readFile(t, path) != before {
		t.Error("file after Check: got another text, want the same")
	}
}

// checkRecords writes rows with a text in their names as the data file has them, and reads them.
func checkRecords(t *testing.T, note string) {
	t.Helper()
	quoted, err := json.Marshal(note)
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(quoted))
	o := testOptions()
	o.Tables[0].Scan = func(s *Scanner, r *Row) { // without keys, because the names are equal
		s.String("name")
		r.Created = s.Time("created_at")
	}
	db := New(o)
	tx := db.begin()
	var want []string
	for i := range 3 {
		json := fmt.Sprintf(`{"id":"usr_%d","name":%s,"created_at":"2027-01-01T09:00:00Z","note":%s}`,
			i, plain, plain)
		tx.Put([]byte(json))
		want = append(want, json)
	}
	tx.Delete("usr_2")
	var records []byte
	for _, c := range tx.changes {
		records = appendChange(records, c)
	}
	l := newLoader("", o)
	err = l.replay(commitlog.Commit{Format: "events/1", Records: records})
	if err != nil {
		t.Fatalf("replay of %s: got %v, want nil", records, err)
	}
	l.finish()
	for i, json := range want[:2] {
		r := find(l.db, fmt.Sprint("usr_", i))
		if got := text(r); got != json {
			t.Fatalf("row after replay: got %s, want %s", got, json)
		}
		var decoded string
		unquote(t, quoted, &decoded)
		if got := r.Value("note"); got != decoded {
			t.Errorf("Value: got %q, want %q", got, decoded)
		}
	}
	if find(l.db, "usr_2") != nil {
		t.Error("Find of a deleted row: got it, want nil")
	}
}

func unquote(t *testing.T, quoted []byte, s *string) {
	t.Helper()
	err := json.Unmarshal(quoted, s)
	if err != nil {
		t.Fatal(err)
	}
}

var trickyTexts = []string{
	"", `"`, `\`, `\"`, `}},{"event":{"id":"evt_1"`, `}},{"`,
	`","created_at":"`,
	`"name":null`, `{"id":"usr_1"`, "line\nfeed", "nul\x00", "<&>\u2028", `\\"}},{"e`, "null", "ends with \\",
}

func TestRecords(t *testing.T) {
	t.Parallel()
	for _, text := range trickyTexts {
		checkRecords(t, text)
	}
}

func FuzzRecords(f *testing.F) {
	for _, text := range trickyTexts {
		f.Add(text)
	}
	f.Fuzz(checkRecords)
}

func TestValue(t *testing.T) {
	t.Parallel()
	r := &Row{JSON: `{"id":"usr_1","a":"x\"y","b":null,"c":true,"d":false,"e":"","n":1,"f":"last"}`}
	want := map[string]string{
		"id": "usr_1", "a": `x"y`, "b": "", "c": "true", "d": "", "e": "", "f": "last",
	}
	for field, value := range want {
		if got := r.Value(field); got != value {
			t.Errorf("Value(%q): got %q, want %q", field, got, value)
		}
	}
	for _, field := range []string{"n", "missing"} {
		func() {
			defer func() { recover() }()
			t.Errorf("Value(%q): got %q, want a panic", field, r.Value(field))
		}()
	}
}

// TestReadersWhileWriting reads while rows are written. Every view sees whole commits, and the
// rows that it found stay as they were.
func TestReadersWhileWriting(t *testing.T) {
	t.Parallel()
	db := openDB(t, newFile(t), testOptions())
	mustBatch(t, db, put(row{id: "usr_1"}))
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				var rows []*Row
				var text string
				db.View(func(tx *Tx) {
					for r := range tx.Tree("usr_1") {
						rows = append(rows, r)
						text += r.JSON
					}
				})
				if got := db.Stats().Rows["user"]; got != 1 { // it has a lock of its own
					t.Errorf("Stats: users: got %d, want 1", got)
				}
				if len(rows)%2 != 1 {
					t.Errorf("rows of a view: got %d, want pairs and their parent", len(rows))
				}
				time.Sleep(time.Millisecond)
				for _, r := range rows {
					text = strings.TrimPrefix(text, r.JSON)
				}
				if text != "" {
					t.Error("row after the view: got another text, want the same")
				}
			}
		})
	}
	for n := range 100 {
		a := row{id: fmt.Sprint("evt_a", n%20), parent: "usr_1", version: n}
		b := row{id: fmt.Sprint("evt_b", n%20), parent: "usr_1", version: n}
		mustBatch(t, db, put(a, b))
	}
	close(done)
	readers.Wait()
}
