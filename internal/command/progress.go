package command

import (
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"
)

// Long work is seen: on a terminal as one line that changes, and of a server that starts without
// one as lines of its log.
const (
	longWork    = time.Second            // work that takes longer is seen
	redrawn     = 200 * time.Millisecond // how often the line on a terminal changes
	loggedEvery = 5 * time.Second        // how often a start is logged
)

// terminal is stderr where that is a terminal, with at most one line of work that is under way. What
// else is written there takes the place of the line.
type terminal struct {
	mu    sync.Mutex
	to    io.Writer
	shown bool // the line is there
}

const eraseLine = "\r\x1b[K"

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.erase()
	return t.to.Write(p)
}

// show puts a line in the place of the last one. An empty line leaves none.
func (t *terminal) show(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.erase()
	io.WriteString(t.to, line)
	t.shown = line != ""
}

func (t *terminal) erase() {
	if t.shown {
		io.WriteString(t.to, eraseLine)
		t.shown = false
	}
}

// Progress shows on a terminal how far some work is, once that takes more than a second and until
// end is called. Say returns the line; it is called by another goroutine.
func (p *Program) Progress(say func() string) (end func()) {
	if p.terminal == nil {
		return func() {}
	}
	show := func() { p.terminal.show(Printable(say())) }
	erase := func() { p.terminal.show("") }
	return repeat(longWork, redrawn, show, erase)
}

// ProgressOfStart is [Program.Progress] for the start of a server. Where there is no terminal, the
// log has a line every 5 s.
func (p *Program) ProgressOfStart(logger *slog.Logger, say func() string) (end func()) {
	if p.terminal != nil {
		return p.Progress(say)
	}
	logged := func() { logger.Info("still starting", "progress", say()) }
	return repeat(loggedEvery, loggedEvery, logged, func() {})
}

// repeat calls do after a time and then again and again, until end is called. At the end it calls
// last, if it has called do.
func repeat(after, every time.Duration, do, last func()) (end func()) {
	stop := make(chan bool)
	var running sync.WaitGroup
	running.Go(func() {
		began := false
		timer := time.NewTimer(after)
		defer timer.Stop()
		for {
			select {
			case <-stop:
				if began {
					last()
				}
				return
			case <-timer.C:
				do()
				began = true
				timer.Reset(every)
			}
		}
	})
	return sync.OnceFunc(func() {
		close(stop)
		running.Wait()
	})
}

// Percent is how much of the whole is done: "41 %".
func Percent(done, whole int64) string {
	if whole <= 0 {
		return "0 %"
	}
	return fmt.Sprintf("%d %%", 100*min(done, whole)/whole)
}

// Thousands is a number with a comma between each three digits: "1,000,001".
func Thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	text := ""
	for len(digits) > 3 {
		text = "," + digits[len(digits)-3:] + text
		digits = digits[:len(digits)-3]
	}
	return digits + text
}
