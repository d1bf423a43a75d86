package form

import (
	"math"
	"testing"
	"time"

	"example.com/events/internal/strict"
)

// written has a field of each type that Append writes.
type written struct {
	ID      string        `json:"id"`
	Name    *string       `json:"name"`
	Secret  string        `json:"-"`
	Good    bool          `json:"good"`
	Number  int           `json:"number"`
	Delay   time.Duration `json:"delay"`
	At      time.Time     `json:"at"`
	LaterAt *time.Time    `json:"later_at"`
}

// checkAppend: Append writes x as encoding/json does, after what is there.
func checkAppend(t *testing.T, x written) {
	t.Helper()
	got, err := NewTable(x, nil).Form(&x).Append([]byte("before"))
	if want := "before" + string(strict.Encode(x)); err != nil || string(got) != want {
		t.Errorf("Append = %v\n%s\nwant\n%s", err, got, want)
	}
}

func TestAppend(t *testing.T) {
	t.Parallel()
	checkAppend(t, written{})
	at := time.Date(2027, 1, 2, 3, 4, 5, 6000, time.UTC)
	for _, s := range []string{"", "plain", "Zürich 東京 🎉", `quote " and \`, `\`, "<&>", "\x00\x1f\x7f\n\t\b\f\r", "\u2028", "\u2029", "\u2027", "\u0080\u009f\u00a0",
		"\xff", "é\xc3", "\ufffd", "\U0010ffff"} {
		checkAppend(t, written{ID: s, Name: &s, Secret: "x", Good: true, Number: -5, Delay: time.Hour, At: at, LaterAt: &at})
	}
	for _, at := range []time.Time{{}, time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC),
		at.In(time.FixedZone("", -5400))} {
		checkAppend(t, written{At: at, LaterAt: &at})
	}
	x := written{At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}
	if got, err := NewTable(x, nil).Form(&x).Append(nil); err == nil {
		t.Errorf("Append of the year 10000 = %s, want an error", got)
	}
}

func FuzzAppend(f *testing.F) {
	f.Add("a", int64(0))
	f.Fuzz(func(t *testing.T, s string, seconds int64) {
		at := time.Unix(seconds%(1<<36), seconds&math.MaxInt16).UTC()
		if y := at.Year(); y >= 0 && y <= 9999 {
			checkAppend(t, written{ID: s, Name: &s, At: at})
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	name := "Analytical engines"
	at := time.Date(2027, 1, 2, 3, 4, 5, 6000, time.UTC)
	x := written{ID: "evt_1", Name: &name, At: at, LaterAt: &at}
	form := NewTable(x, nil).Form(&x)
	var text []byte
	b.ReportAllocs()
	for b.Loop() {
		text, _ = form.Append(text[:0])
	}
}
