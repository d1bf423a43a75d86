package cli

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const eraseLine = "\r\x1b[K"

// Progress shows on stderr the seconds that some work has taken, if stderr is a terminal. The line appears
// after one second. The caller must call stop, which erases it.
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
