package operator

import (
	"strings"
	"testing"
)

// counting is a store that counts what it applies.
type counting struct{ store }

func (counting) Applied() int64 { return 1234 }

func TestApplyProgress(t *testing.T) {
	t.Parallel()
	records := strings.NewReader(`[{"user":{"name":"a\"}{"}},{"delete":{}}, {"event":{"a":[{}]}}]`)
	for want, store := range map[string]Store{
		"apply: 1,234 of 3 records":             &counting{},
		"apply: the running server works on it": &client{},
	} {
		if got := applyProgress(store, records)(); got != want {
			t.Errorf("the line is %q, want %q", got, want)
		}
	}
	for array, want := range map[string]int64{"": 0, "[]": 0, `["{`: 0, `[{"a":"\`: 1} {
		if got := countElements(strings.NewReader(array)); got != want {
			t.Errorf("countElements(%s) = %d, want %d", array, got, want)
		}
	}
	var out strings.Builder
	w := &countingWriter{to: &out}
	for range 3 {
		w.Write(make([]byte, 500_000))
	}
	if got := w.progress(); got != "dump: 1 MB" || out.Len() != 1_500_000 {
		t.Errorf("the line is %q after %d bytes", got, out.Len())
	}
}
