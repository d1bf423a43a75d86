package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// orphanDelay is how long RunCommand waits for output of processes that a command left running, if a stream
// isn't a file.
const orphanDelay = 100 * time.Millisecond

// RunCommand runs another program on the streams of this one, with additional environment variables, and
// passes signals on to it. Like a shell, it returns status 128 + n after signal n. If the program doesn't
// exist, the error is an [ExitError] with status 127; if it can't be run, with status 126.
func (p *Program) RunCommand(ctx context.Context, args, variables []string) (status int, err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, append(stopSignals(), syscall.SIGQUIT)...)
	defer close(signals)
	defer signal.Stop(signals)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = slices.Concat(p.Environ, variables)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Stdin, p.Stdout, p.Stderr
	cmd.WaitDelay = orphanDelay
	err = cmd.Start()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return 0, &ExitError{127, err.Error()}
	}
	if err != nil {
		return 0, &ExitError{126, err.Error()}
	}
	terminal := isTerminal(p.Stdin)
	go func() {
		for s := range signals {
			typed := s == os.Interrupt || s == syscall.SIGQUIT
			if !terminal || !typed { // a terminal sends typed signals to both processes
				cmd.Process.Signal(s) // fails on Windows, and if the program has just ended
			}
		}
	}()
	cmd.Wait() // the status below has more than its error
	wait := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if wait.Signaled() {
		return 128 + int(wait.Signal()), nil
	}
	return wait.ExitStatus(), nil
}
