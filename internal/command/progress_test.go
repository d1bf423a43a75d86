package command

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Work of more than a second has one line on a terminal, which changes, makes room for other lines
// and is gone at the end. Without a terminal a start alone is seen, in the log.
func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		p := &Program{Name: "tool", Stderr: &stderr, terminal: &terminal{to: &stderr}}
		n := 0
		say := func() string { n++; return fmt.Sprintf("work: %d", n) }
		end := p.Progress(say)
		time.Sleep(900 * time.Millisecond)
		end()
		end() // a second end does nothing
		if stderr.Len() > 0 {
			t.Errorf("short work shows %q", &stderr)
		}
		end = p.Progress(say)
		time.Sleep(1300 * time.Millisecond)
		p.Notice("meanwhile")
		time.Sleep(200 * time.Millisecond)
		end()
		p.Notice("done")
		const want = "work: 1" + eraseLine + "work: 2" + eraseLine + "tool: meanwhile\nwork: 3" + eraseLine +
			"tool: done\n"
		if stderr.String() != want {
			t.Errorf("long work shows %q, want %q", &stderr, want)
		}

		stderr.Reset()
		p.terminal = nil
		log, err := p.Logger("text", false)
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range []func(){p.Progress(say), p.ProgressOfStart(log, say)} {
			defer end()
		}
		time.Sleep(11 * time.Second)
		synctest.Wait() // until the line of the tenth second is written
		if got := strings.Count(stderr.String(), `msg="still starting" progress="work: `); got != 2 {
			t.Errorf("a start of 11 s logs %d lines, want 2: %s", got, &stderr)
		}
		if got := strings.Count(stderr.String(), "\n"); got != 2 {
			t.Errorf("other work without a terminal is seen: %s", &stderr)
		}
	})
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ got, want string }{
		{Thousands(0), "0"}, {Thousands(999), "999"}, {Thousands(1000), "1,000"},
		{Thousands(412_000), "412,000"}, {Thousands(1_000_001), "1,000,001"},
		{Percent(0, 0), "0 %"}, {Percent(41, 100), "41 %"}, {Percent(2, 1), "100 %"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s, want %s", tt.got, tt.want)
		}
	}
}
