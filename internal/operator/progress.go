package operator

import (
	"fmt"
	"io"
	"sync"
	"time"

	"example.com/events/internal/command"
)

// progress shows on a terminal that work is under way, and returns a function that ends this. On
// anything else it shows nothing.
func progress(stderr io.Writer, work string) (end func()) {
	if !command.IsTerminal(stderr) {
		return func() {}
	}
	return showProgress(stderr, work)
}

// showProgress writes a line with the seconds that work has taken, once each second, and erases it
// when end is called.
func showProgress(w io.Writer, work string) (end func()) {
	const eraseLine = "\r\x1b[K"
	stop := make(chan struct{})
	var showing sync.WaitGroup
	showing.Go(func() {
		for second := 1; ; second++ {
			select {
			case <-time.After(time.Second):
				fmt.Fprintf(w, "%s%s: %d s", eraseLine, work, second)
			case <-stop:
				if second > 1 {
					io.WriteString(w, eraseLine)
				}
				return
			}
		}
	})
	return func() {
		close(stop)
		showing.Wait()
	}
}
