package operator

import (
	"errors"
	"fmt"
	"strings"
)

// What a process is to the operator's commands stands in the lock file of the data file that it
// has open. A server that reads its file is [Starting]; one that serves is what [Listening] or
// [Off] returns; a command on the file itself is what [Working] returns.

// Starting is a server that does not serve yet.
const Starting = "starting"

// Listening is a server that the operator's commands reach by a socket.
func Listening(socket string) string { return "operator: " + socket }

// Off is a server without a socket, and why it has none.
func Off(reason error) string { return fmt.Sprintf("operator: off (%v)", reason) }

// Working is a command that works on the data file itself: "eventsd apply".
func Working(program, subcommand string) string { return program + " " + subcommand }

// isOff reports whether a holder is what [Off] returns.
func isOff(holder string) bool { return strings.HasPrefix(holder, "operator: off (") }

// isListening reports whether a holder is what [Listening] returns.
func isListening(holder string) bool {
	return strings.HasPrefix(holder, "operator: ") && !isOff(holder)
}

// IsCommand reports whether a holder is a command of a program. A start waits for it: most take
// less than a second.
func IsCommand(program, holder string) bool { return strings.HasPrefix(holder, program+" ") }

// IsBrief reports whether a holder will soon let others to the store: it is a command of the
// program, or a server that then has a socket.
func IsBrief(program, holder string) bool { return holder == Starting || IsCommand(program, holder) }

// Described is what a holder is, to follow the number of its process in a sentence: ", a running
// server". It is "" if that is not known.
func Described(holder string) string {
	switch {
	case holder == "":
		return ""
	case holder == Starting:
		return ", a server that is starting"
	case isOff(holder):
		return fmt.Sprintf(", a running server that has printed %q", holder)
	case isListening(holder):
		return ", a running server"
	}
	return ", which is " + holder
}

// A HeldError says that another process has the data file, and what that process is.
type HeldError struct {
	Err    error // names the process
	Holder string
}

func (e *HeldError) Error() string {
	advice := "stop it first"
	switch {
	case e.Holder == Starting:
		advice = "try again when it is ready"
	case isOff(e.Holder):
		advice = "it has no socket for the operator, so stop it first"
	case isListening(e.Holder):
		advice = "its socket is gone, so stop it first, or restart it to get a new one"
	case e.Holder != "":
		advice = "try again when it has ended"
	}
	return fmt.Sprintf("%v%s: %s", e.Err, Described(e.Holder), advice)
}

func (e *HeldError) Unwrap() error { return e.Err }

// isServing reports whether an error is that a server has the data file that can be reached by now.
func isServing(err error) bool {
	held, isHeld := errors.AsType[*HeldError](err)
	return isHeld && isListening(held.Holder)
}
