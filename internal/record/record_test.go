package record

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/events/internal/index"
	"example.com/events/internal/strict"
)

const (
	made   = `"created_at":"2027-01-02T03:04:05.000006Z"`
	event  = `{"id":"evt_1","host_id":"usr_1","slug":"tea","status":"draft",` + made + `,"title":"Tea"}`
	guest  = `{"id":"gst_1","event_id":"evt_1",` + made + `,"email":"a\"b\\c\u2028\u0041@Example.com","name":null}`
	noMail = `{"id":"gst_2","event_id":"evt_1",` + made + `,"email":null,"name":"\"email\":\"x"}`
	user   = `{"id":"usr_1","name":"Ada","email":"\"A\\\"@b.c","avatar_url":null,"timezone":"Europe/Paris",` + made + `}`
	noZone = `{"id":"usr_2","name":"\",\"timezone\":\"UTC","email":"A@B.c","avatar_url":null,"timezone":null,` + made + `}`
	key    = `{"id":"key_1","user_id":"usr_1","digest":"0f","hint":null,` + made + `,"revoked_at":null}`
	noKey  = `{"id":"key_2","user_id":"usr_1","digest":"0e","hint":"ab\"}","created_at":"2027-01-02T03:04:05Z","revoked_at":"2027-01-03T00:00:00Z"}`
)

// tricky are texts with strings that look like the places where records are cut.
var tricky = []string{`}},{"event":{"`, `},"idempotency":{"key":"x"}}`, `}},{`, `},`, `}},{\`, `\"}},{"a`, `}}`, `,{"delete":{"guest":"gst_1"}}`, "\u2028<&>\x00\n", `":{"`}

// show is what a row says.
func show(r *index.Row) string {
	if r == nil {
		return "no row"
	}
	s := fmt.Sprintf("%s in %q as %q, %q at %s: %s", r.ID, r.Parent, r.Alias, r.State, r.Created.Format(time.RFC3339Nano), r.Raw)
	if r.Origin != nil {
		s += fmt.Sprintf(" from %q %q %q at %s", r.Origin.Name, r.Origin.Key, r.Origin.Body, r.Origin.At.Format(time.RFC3339Nano))
	}
	return s
}

func TestRow(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 1, 2, 3, 4, 5, 6000, time.UTC)
	for _, want := range []*index.Row{
		{Raw: event, ID: "evt_1", Parent: "usr_1", Alias: "tea", State: "draft", Created: at},
		{Raw: guest, ID: "gst_1", Parent: "evt_1", Alias: "guest:evt_1:a\"b\\c\u2028a@example.com", Created: at},
		{Raw: noMail, ID: "gst_2", Parent: "evt_1", Created: at},
		{Raw: user, ID: "usr_1", Alias: `email:"a\"@b.c`, State: "Europe/Paris", Created: at},
		{Raw: noZone, ID: "usr_2", Alias: "email:a@b.c", Created: at},
		{Raw: key, ID: "key_1", Parent: "usr_1", Alias: "key:0f", Created: at},
		{Raw: noKey, ID: "key_2", Parent: "usr_1", Alias: "key:0e", State: "revoked", Created: at.Truncate(time.Second)},
	} {
		if got, err := Row(want.Raw); err != nil || show(got) != show(want) {
			t.Errorf("Row(%s) = %v\n got %s\nwant %s", want.Raw, err, show(got), show(want))
		}
		for i := range want.Raw {
			if got, err := Row(want.Raw[:i]); err == nil {
				t.Errorf("Row(%s) = %s, want an error", want.Raw[:i], show(got))
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for _, record := range []string{
		"", "{", "}", "{}", "null", `{"event":null}`, `{"event":{}}`, `{"event":[]}`, `{"user":{"id":null}}`, `{"event":`, `{"event`, `{"delet":{"guest":"gst_1"}}`,
		`delete`, `{"delete":5}`, `{"delete":{"guest":"usr_1"}}`, `{"delete":{"":"x"}}`, `{"":{"id":"x"}}`,
		`{"user":` + event + `}`, `{"event":` + user + `}`, `{"key":` + user + `}`, `{"guest":` + key + `}`, `{"poll":{"id":"pol_1"}}`,
		`{"event":` + strings.Replace(event, "id", "Id", 1) + `}`,
		`{"event":` + strings.Replace(event, `"slug":"tea","status":"draft"`, `"status":"draft","slug":"tea"`, 1) + `}`,
		`{"event":` + strings.Replace(event, `"tea"`, "null", 1) + `}`,
		`{"event":` + strings.Replace(event, `tea`, `te\a`, 1) + `}`,
		`{"event":` + strings.Replace(event, `"tea"`, `"te\"a`, 1) + `}`,
		`{"event":` + strings.Replace(event, "01-02", "02-30", 1) + `}`,
		`{"guest":` + strings.Replace(noMail, `"email":null`, `"email":5`, 1) + `}`,
		`{"user":` + strings.Replace(user, "01-02", "02-30", 1) + `}`,
		`{"user":` + strings.Replace(user, `"Europe/Paris"`, "5", 1) + `}`,
		`{"user":` + strings.Replace(user, `"name":"`, `"name":5,"x":"`, 1) + `}`,
		`{"event":` + strings.Replace(event, `"usr_1"`, `"evt_1"`, 1) + `}`, `{"event":` + strings.Replace(event, `"usr_1"`, `""`, 1) + `}`,
		`{"guest":` + strings.Replace(noMail, `"evt_1"`, `"usr_1"`, 1) + `}`, `{"key":` + strings.Replace(key, `"usr_1"`, `"key_1"`, 1) + `}`,
		`{"key":` + strings.Replace(key, `"user_id":"usr_1"`, `"x":""`, 1) + `}`,
		`{"event":` + event + `,"idempotency":{"key":5}}`, `{"event":` + event + `,"idempotency":{"key":"k","at":"now"}}`,
	} {
		if step, err := Parse(record); err == nil {
			t.Errorf("Parse(%s) = %s %q, want an error", record, show(step.Row), step.Gone)
		}
	}
}

// checkSteps joins steps, splits them again and compares.
func checkSteps(t *testing.T, steps []index.Step) {
	t.Helper()
	joined := string(AppendSteps(nil, steps))
	texts := slices.Collect(Split(joined))
	if len(texts) != len(steps) {
		t.Fatalf("Split(%s) yields %d records, want %d: %q", joined, len(texts), len(steps), texts)
	}
	for i, want := range steps {
		got, err := Parse(texts[i])
		if err != nil || got.Gone != want.Gone || show(got.Row) != show(want.Row) {
			t.Errorf("Parse(%s) = %v\n got %q %s\nwant %q %s", texts[i], err, got.Gone, show(got.Row), want.Gone, show(want.Row))
		}
		if want.Row == nil {
			continue
		}
		bare := *want.Row
		bare.Origin = nil
		plain := string(Append(nil, &bare))
		if got := Plain(texts[i]); got != plain || Plain(plain) != plain {
			t.Errorf("Plain(%s)\n got %s\nwant %s", texts[i], got, plain)
		}
		if got, err := Parse(plain); err != nil || got.Row.Origin != nil || got.Row.Raw != want.Row.Raw {
			t.Errorf("Parse(%s) = %s, %v, want the row without its origin", plain, show(got.Row), err)
		}
	}
	for first := range Split(joined) {
		if first != texts[0] {
			t.Errorf("Split(%s) yields %s first, then %s", joined, texts[0], first)
		}
		break
	}
}

// steps are rows of every kind with s wherever there may be any text, and deletes.
func steps(s string) []index.Step {
	at, q := time.Date(2027, 1, 2, 3, 4, 5, 6000, time.UTC), string(strict.Encode(s))
	return []index.Step{
		{Row: &index.Row{ID: "key_1", Parent: "usr_1", Alias: Key(s), Created: at, Raw: `{"id":"key_1","user_id":"usr_1","digest":` + q + `,"hint":` + q + `,` + made + `,"revoked_at":null}`}},
		{Row: &index.Row{ID: "evt_1", Parent: "usr_1", Alias: s, State: s, Created: at, Raw: `{"id":"evt_1","host_id":"usr_1","slug":` + q + `,"status":` + q + `,` + made + `,"title":` + q + `}`,
			Origin: &index.Origin{Name: Origin("usr_1", s), Key: s, Body: s, At: at}}},
		{Row: &index.Row{ID: "usr_1", Alias: Email(s), State: s, Created: at, Raw: `{"id":"usr_1","name":` + q + `,"email":` + q + `,"avatar_url":` + q + `,"timezone":` + q + `,` + made + `}`}},
		{Gone: "evt_1"},
		{Row: &index.Row{ID: "evt_2", Parent: "usr_1", Alias: "b", State: "draft", Created: at, Raw: `{"id":"evt_2","host_id":"usr_1","slug":"b","status":"draft",` + made + `,"title":` + q + `,"open":false}`}},
		{Row: &index.Row{ID: "gst_1", Parent: "evt_1", Alias: Guest("evt_1", s), Created: at, Raw: `{"id":"gst_1","event_id":"evt_1",` + made + `,"email":` + q + `,"name":` + q + `}`}},
		{Row: &index.Row{ID: "gst_2", Parent: "evt_1", Created: at, Raw: `{"id":"gst_2","event_id":"evt_1",` + made + `,"email":null,"name":` + q + `}`}},
		{Gone: "usr_1"},
	}
}

func TestSteps(t *testing.T) {
	t.Parallel()
	for _, s := range append(tricky, "", "plain") {
		checkSteps(t, steps(s))
	}
	row := &index.Row{ID: "evt_1", Raw: event, Origin: &index.Origin{Name: "not kept", Key: "<k>", Body: "0f", At: time.Unix(0, 0).UTC()}}
	b := AppendSteps([]byte("before"), []index.Step{{Row: row}, {Gone: "usr_1"}, {Gone: "key_1"}, {Gone: "evt_1"}, {Gone: "gst_1"}})
	want := `before,{"event":` + event + `,"idempotency":{"key":"<k>","body":"0f","at":"1970-01-01T00:00:00Z"}},` +
		`{"delete":{"user":"usr_1"}},{"delete":{"key":"key_1"}},{"delete":{"event":"evt_1"}},{"delete":{"guest":"gst_1"}}`
	if string(b) != want {
		t.Errorf("AppendSteps\n got %s\nwant %s", b, want)
	}
	for text := range Split("") {
		t.Errorf("Split of nothing yields %q", text)
	}
}

func FuzzSteps(f *testing.F) {
	for _, s := range append(tricky, string(AppendSteps(nil, steps("x")))) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := strings.Join(slices.Collect(Split(s)), ","); got != s {
			t.Errorf("Split(%q) yields %q in all", s, got)
		}
		for text := range Split(s) { // what nobody wrote gives no panic
			Parse(text)
			Plain(text)
		}
		if utf8.ValidString(s) {
			checkSteps(t, steps(s))
		}
	})
}
