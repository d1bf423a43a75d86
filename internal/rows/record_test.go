package rows

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/events/internal/strict"
)

// tricky are texts with strings that look like the places where records are cut.
var tricky = []string{`}},{"event":{"`, `},"idempotency":{"key":"x"}}`, `}},{`, `},`, `}},{\`, `\"}},{"a`, `}}`,
	`,{"delete":{"guest":"gst_1"}}`, "\u2028<&>\x00\n", `":{"`}

// newAt returns an empty database whose clock stands still.
func newAt(now time.Time) *DB {
	o := testOptions()
	o.Now = func() time.Time { return now }
	return New(o)
}

var january = time.Date(2027, 1, 2, 3, 4, 5, 6000, time.UTC)

// trickyChanges are changes of every kind with s wherever a text can stand.
func trickyChanges(s string) []*Row {
	db := newAt(january)
	at := db.Now()
	const made = `"created_at":"2027-01-02T03:04:05.000006Z"`
	row := func(id, parent, name, status, text string) *Row {
		r := &Row{Place: Place{at, id}, Parent: parent, Name: cmp.Or(name, id), Status: status, Kind: db.kindOf(id)}
		r.JSON = fmt.Sprintf(`{"id":%q,"name":%s,%s,"text":%s}`, id, strict.Encode(name), made, strict.Encode(text))
		if parent != "" {
			r.JSON = fmt.Sprintf(`{"id":%q,"parent":%q,"name":%s,"status":%s,%s,"text":%s}`,
				id, parent, strict.Encode(name), strict.Encode(status), made, strict.Encode(text))
		}
		return r
	}
	keyed := row("evt_1", "usr_1", s, s, s)
	keyed.Idempotency = &IdempotencyKey{Key: s, Body: s, At: at}
	keyed.Idempotency.bytes = len(idempotencyMember) + len(strict.Encode(keyed.Idempotency))
	unnamed := row("gst_1", "evt_1", "", "", s)
	unnamed.JSON = strings.Replace(unnamed.JSON, `"name":"","status":""`, `"name":null,"status":null`, 1)
	return []*Row{
		row("usr_1", "", s, "", s),
		keyed,
		{Place: Place{ID: "evt_1"}, Kind: db.kindOf("evt_1")},
		row("evt_2", "usr_1", "b", "draft", s),
		unnamed,
		{Place: Place{ID: "usr_1"}, Kind: db.kindOf("usr_1")},
	}
}

// records are the records of a line.
func records(line string) (all []string) {
	for line != "" {
		var record string
		record, line = cutRecord(line)
		all = append(all, record)
	}
	return all
}

// checkChanges writes changes as one line and reads them back.
func checkChanges(t *testing.T, changes []*Row) {
	t.Helper()
	db := newAt(january)
	var line []byte
	for _, c := range changes {
		line = db.appendChange(line, c)
	}
	texts := records(string(line))
	if len(texts) != len(changes) {
		t.Fatalf("records(%s) yields %d records, want %d: %q", line, len(texts), len(changes), texts)
	}
	for i, want := range changes {
		got := db.parse(texts[i], nil)
		if got != nil && got.Kind.Name == want.Kind.Name {
			got.Kind = want.Kind // of another table, which is the same
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("parse(%s)\n got %+v\nwant %+v", texts[i], got, want)
		}
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	for _, s := range append(tricky, "", "plain") {
		checkChanges(t, trickyChanges(s))
	}
	for _, text := range records("") {
		t.Errorf("records of nothing yields %q", text)
	}
}

// TestRecordForm: records are written so, and no other way, as files have them.
func TestRecordForm(t *testing.T) {
	t.Parallel()
	db := newAt(time.Unix(0, 0).Add(KeyLifetime - 1))
	event := fact{id: "evt_1", parent: "usr_1", name: "tea", created: 1}.json()
	r := db.readRow(event)
	r.Idempotency = &IdempotencyKey{Key: "<k>", Body: "0f", At: time.Unix(0, 0).UTC()}
	line := []byte("before")
	for _, c := range []*Row{r, {Place: r.Place, Kind: r.Kind}} {
		line = db.appendChange(line, c)
	}
	want := `before,{"event":` + event + `,"idempotency":{"key":"<k>","body":"0f","at":"1970-01-01T00:00:00Z"}},{"delete":{"event":"evt_1"}}`
	if string(line) != want {
		t.Errorf("appendChange\n got %s\nwant %s", line, want)
	}
	later := newAt(time.Unix(0, 0).Add(KeyLifetime))
	if got := string(later.appendChange(nil, r)); got != `{"event":`+event+`}` {
		t.Errorf("appendChange with a key that has expired = %s, want none", got)
	}
}

func FuzzRecords(f *testing.F) {
	for _, s := range tricky {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := strings.Join(records(s), ","); got != s {
			t.Errorf("records(%q) yields %q in all", s, got)
		}
		db := New(testOptions())
		for _, text := range records(s) { // what nobody wrote gives no panic
			db.parse(text, nil)
		}
		if utf8.ValidString(s) {
			checkChanges(t, trickyChanges(s))
		}
	})
}
