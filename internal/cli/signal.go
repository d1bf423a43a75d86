package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// NotifyStop returns a context that is done when a signal asks the program to stop. A second signal ends the
// process immediately.
func NotifyStop(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, stopSignals()...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// stopSignals returns the signals that ask a program to stop. They don't include SIGHUP under nohup, which
// makes the process ignore it.
func stopSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}
