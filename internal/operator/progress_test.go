package operator

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// Work that takes more than a second is shown as one line, which is erased at its end.
func TestShowProgress(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]string{
		900 * time.Millisecond:  "",
		2500 * time.Millisecond: "\r\x1b[Kapply: 1 s\r\x1b[Kapply: 2 s\r\x1b[K",
	} {
		synctest.Test(t, func(t *testing.T) {
			var stderr bytes.Buffer
			end := showProgress(&stderr, "apply")
			time.Sleep(took)
			end()
			if got := stderr.String(); got != want {
				t.Errorf("work of %v shows %q, want %q", took, got, want)
			}
		})
	}
}
