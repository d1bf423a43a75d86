package cli

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const eraseLine = "\r\x1b[K"

// Progress shows on stderr how long some work takes, as one line from the first second on, if stderr is a
// terminal. The caller must call stop, which erases the line.
func (p *Program) Progress(work string) (stop func()) {
	if !isTerminal(p.Stderr) {
		return func() {}
	}
	return showProgress(p.Stderr, work)
}

func showProgress(w io.Writer, work string) (stop func()) {
	done := make(chan struct{})
	var showing sync.WaitGroup
	showing.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for seconds := 1; ; seconds++ {
			select {
			case <-ticker.C:
				fmt.Fprintf(w, "%s%s: %d s", eraseLine, work, seconds)
			case <-done:
				if seconds > 1 {
					io.WriteString(w, eraseLine)
				}
				return
			}
		}
	})
	return func() {
		close(done)
		showing.Wait()
	}
}
