package events

import (
	"testing"
	"time"
	"unicode/utf8"

	"example.com/events/internal/strict"
)

// FuzzEncodeEvent: the form makes what encoding/json makes.
func FuzzEncodeEvent(f *testing.F) {
	f.Add("title", "description \u2028\u2029 \x00\x1f\"\\\\ <&> é 😀", int64(0), int64(5), true, true)
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
		if got, want := string(eventForm.Append(nil, e)), strict.Encode(e); got != want {
			t.Errorf("encodeEvent = %s, want %s", got, want)
		}
	})
}
