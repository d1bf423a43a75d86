package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const eraseLine = "\r\x1b[K"

// Progress shows how many seconds some work takes, if stderr is a terminal. The line appears after one
// second. Call stop to erase it.
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

// isTerminal reports whether a stream is a terminal: a character device other than os.DevNull.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
