package events

import (
	"testing"
	"time"
	"unicode/utf8"

	"example.com/events/internal/record"
	"example.com/events/internal/recordfile"
	"example.com/events/internal/strict"
)

// TestForms: the forms of all kinds make what encoding/json makes of the types.
func TestForms(t *testing.T) {
	t.Parallel()
	text, first, at := "a\"b\u2028<&>", time.Time{}, time.Date(2027, 1, 2, 3, 4, 5, 6, time.UTC)
	for _, tt := range []struct{ form, json string }{
		{string((&User{}).form().Append(nil)), string(strict.Encode(User{}))},
		{string((&User{text, text, text, &text, &text, at}).form().Append(nil)), string(strict.Encode(User{text, text, text, &text, &text, at}))},
		{string((&Key{}).form().Append(nil)), string(strict.Encode(Key{}))},
		{string((&Key{text, text, text, &text, at, &first, "secret"}).form().Append(nil)), string(strict.Encode(Key{text, text, text, &text, at, &first, "secret"}))},
		{string((&Guest{}).form().Append(nil)), string(strict.Encode(Guest{}))},
		{string((&Guest{text, text, at, &text, &text, text, &first, &at}).form().Append(nil)), string(strict.Encode(Guest{text, text, at, &text, &text, text, &first, &at}))},
	} {
		if tt.form != tt.json {
			t.Errorf("the form makes %s, encoding/json %s", tt.form, tt.json)
		}
	}
}

// FuzzEncodeEvent: the form makes what encoding/json makes.
func FuzzEncodeEvent(f *testing.F) {
	f.Add("title", "description \u2028\u2029 \x00\x1f\"\\\\ <&> é 😀", int64(0), int64(5), true, true)
	f.Add("\u2028", "\u2029", int64(0), int64(5), true, true)
	f.Add("…", "", int64(-62135596800), int64(999999999), false, false)
	f.Fuzz(func(t *testing.T, title, text string, sec, nsec int64, set, approval bool) {
		at := time.Unix(sec%250000000000, nsec).UTC()
		e := &Event{ID: "evt_1", HostID: "usr_1", Slug: "one", Status: "draft", CreatedAt: at, UpdatedAt: at, Title: title, StartAt: at, EndAt: at, Timezone: "UTC", Visibility: "public", RequiresApproval: approval}
		if set {
			e.Description, e.LocationType, e.LocationCity, e.LocationCountry, e.CoverImageURL, e.MeetingURL = &text, &text, &title, &text, &title, &text
		}
		if at.Year() < 0 || at.Year() > 9999 {
			return
		}
		for _, s := range []string{title, text} {
			if !utf8.ValidString(s) {
				return
			}
		}
		if got, want := string(e.form().Append(nil)), string(strict.Encode(e)); got != want {
			t.Errorf("the form makes %s, encoding/json %s", got, want)
		}
	})
}

// TestDataFile: a file of this format has rows as they are written today, as they
// are served as they stand in it. Where that has changed, the format needs a new
// number, and this test a file of it.
func TestDataFile(t *testing.T) {
	t.Parallel()
	const name = "testdata/events-1.json"
	s := NewStore(nil)
	l := loader{s: s}
	if _, err := recordfile.Read(name, s.fileOptions(nil), l.load); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	kinds := map[string]bool{}
	for r := range s.index.All() {
		var x Record
		mustDecode(record.Append(nil, r), &x)
		var now []byte
		switch kinds[r.Kind()] = true; {
		case x.User != nil:
			now = x.User.form().Append(nil)
		case x.Key != nil:
			now = x.Key.form().Append(nil)
		case x.Event != nil:
			now = x.Event.form().Append(nil)
		case x.Guest != nil:
			now = x.Guest.form().Append(nil)
		}
		if string(now) != r.Raw {
			t.Errorf("%s has\n%s\nwhich is written now as\n%s", name, r.Raw, now)
		}
	}
	if len(kinds) != 4 {
		t.Errorf("%s has rows of the kinds %v alone", name, kinds)
	}
}
