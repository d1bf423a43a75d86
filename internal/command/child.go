package command

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

// leftRunning is how long to wait for output of processes that a command has left
// running, if its streams are not files. Files are handed to the command as they are,
// and nothing is waited for.
const leftRunning = 100 * time.Millisecond

// Succeeded ends the program with the status 0.
var Succeeded = Status(0)

// Child runs a command with further variables in its environment, on the
// streams of the program and in its process group. Signals are handed on to it.
// There always is an error: [Succeeded], or one that ends the program with the
// status that a shell would give: that of the command, 128 and the number of the signal
// that ended it, 127 if it does not exist, or 126 if it cannot be run.
func (p *Program) Child(ctx context.Context, args, variables []string) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, append(stopSignals(), syscall.SIGQUIT)...)
	defer close(signals)
	defer signal.Stop(signals)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = slices.Concat(p.Environ, variables)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Stdin, p.Stdout, p.Stderr
	cmd.WaitDelay = leftRunning
	err := cmd.Start()
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return exitError{err, 127}
	}
	if err != nil {
		return exitError{err, 126}
	}
	go func() {
		for s := range signals {
			byKey := s == os.Interrupt || s == syscall.SIGQUIT
			if !byKey || !IsTerminal(p.Stdin) { // else the terminal sends it to the whole process group
				cmd.Process.Signal(s) // fails if the command has just ended, and on Windows
			}
		}
	}()
	cmd.Wait()                                          // the status has all that matters of its error
	wait := cmd.ProcessState.Sys().(syscall.WaitStatus) // on Unix and on Windows
	status := wait.ExitStatus()
	if wait.Signaled() {
		status = 128 + int(wait.Signal())
	}
	if status == 0 {
		return Succeeded
	}
	return Status(status)
}

// IsTerminal reports whether a stream is a terminal: a character device other than
// os.DevNull, which programs are given in place of a stream.
func IsTerminal(stream any) bool {
	null, _ := os.Stat(os.DevNull)
	f, _ := stream.(*os.File) // nil if it is no file, and then Stat fails
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && !os.SameFile(info, null)
}
