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

// TestForgedRecords: what is not in the form that this program writes is refused.
func TestForgedRecords(t *testing.T) {
	t.Parallel()
	db := New(testOptions())
	user := fact{id: "usr_1", name: "ada", created: 1}.json()
	event := fact{id: "evt_1", parent: "usr_1", name: "tea", status: "a", created: 1}.json()
	for i := range event {
		if r := db.readRow(event[:i]); r != nil {
			t.Errorf("readRow(%s) = %+v, want nil", event[:i], r)
		}
	}
	change := func(text, from, to string) string {
		if !strings.Contains(text, from) {
			t.Fatalf("%s does not hold %s", text, from)
		}
		return strings.Replace(text, from, to, 1)
	}
	for _, record := range []string{
		"", "{", "}", "{}", "null", `{"event":null}`, `{"event":{}}`, `{"event":[]}`, `{"user":{"id":null}}`, `{"event":`, `{"event`,
		`{"delet":{"guest":"gst_1"}}`, `delete`, `{"delete":5}`, `{"delete":{"guest":"usr_1"}}`, `{"delete":{"":"x"}}`, `{"":{"id":"x"}}`,
		`{"user":` + event + `}`, `{"event":` + user + `}`, `{"poll":{"id":"pol_1"}}`, `{"poll":` + user + `}`,
		`{"event":` + change(event, `tea`, `te\a`) + `}`,
		`{"event":` + change(event, `"tea"`, `"te\"a`) + `}`,
		`{"event":` + change(event, `"tea"`, `5`) + `}`,
		`{"event":` + change(event, "01-01", "02-30") + `}`,
		`{"event":` + event + `,"idempotency":{"key":5}}`,
		`{"event":` + event + `,"idempotency":{"key":"k","at":"now"}}`,
	} {
		if r := db.parse(record, nil); r != nil {
			t.Errorf("parse(%s) = %+v, want nil", record, r)
		}
	}
}

// TestFileBytes: a row counts for as many bytes as its line has in a new file, its idempotency
// key included, but for the digits of the commit's number.
func TestFileBytes(t *testing.T) {
	t.Parallel()
	for _, c := range trickyChanges(`a "quoted" text`) {
		if c.JSON == "" {
			continue
		}
		record := string(newAt(january).appendChange(nil, c))
		line := `,{"c":"01234567","n":12345678,"w":[` + record + "]}\n"
		if got := fileBytes(c); got != int64(len(line)) {
			t.Errorf("fileBytes of %s = %d, want %d", record, got, len(line))
		}
	}
}

// TestSamples: a kind whose rows are not as its Members say is refused when the database is made.
func TestSamples(t *testing.T) {
	t.Parallel()
	event := fact{id: "evt_1", parent: "usr_1"}.json()
	for sample, want := range map[string]string{
		event:                       "",
		``:                          "not a JSON object",
		`[1]`:                       "not a JSON object",
		"{}":                        `"id": is of its Members`,
		`{"name":null,` + event[1:]: "must be the id",
		strings.Replace(event, `"parent"`, `"owner"`, 1):                                    `"parent": is of its Members, but not at`,
		strings.Replace(event, `"name":null,"status":null`, `"status":null,"name":null`, 1): `"status": is of its Members, but not at`,
		strings.Replace(event, `"status":null`, `"status":5`, 1):                            "must be a string or null",
		event[:len(event)-1] + `,"place":{"name":"x"}}`:                                     "another object or array in place",
		event[:len(event)-1] + `,"tags":[]}`:                                                "another object or array in tags",
	} {
		kind := testOptions().Kinds[1]
		kind.Sample = sample
		if got := kind.problem(); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("with the sample %s, problem = %q, want %q", sample, got, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("New took a kind without created_at")
		}
	}()
	o := testOptions()
	o.Kinds[0].Members = []string{`"id":`, `"name":`}
	New(o)
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
