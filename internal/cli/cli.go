// Package cli has the parts of the command eventsd that know nothing of events: flags that can be set in the
// environment, exit statuses, text that is safe to print, files that are written whole or not at all,
// progress on a terminal, and running another program.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// A Program is a run of eventsd, with its environment and streams. All fields must be set.
type Program struct {
	Environ []string // in the form of os.Environ
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer // for errors, messages and the log
}

// An ExitError ends a program with a status other than 1.
type ExitError struct {
	Status  int
	Message string // printed, unless it is empty
}

func (e *ExitError) Error() string { return e.Message }

// Usagef returns an error with status 2, for wrong arguments. It formats like [fmt.Sprintf].
func Usagef(format string, args ...any) error { return &ExitError{2, fmt.Sprintf(format, args...)} }

// ExitStatus returns the exit status for an error, and prints its message as one line on stderr. The status is 0 if
// err is nil or [flag.ErrHelp], the Status of an [ExitError], or 1.
func (p *Program) ExitStatus(err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err.Error() != "" {
		p.Messagef("%v", err)
	}
	exit, ok := errors.AsType[*ExitError](err)
	if ok {
		return exit.Status
	}
	return 1
}

// Printf prints to stdout. Unprintable characters are replaced as by [Printable].
func (p *Program) Printf(format string, args ...any) error {
	_, err := io.WriteString(p.Stdout, Printable(fmt.Sprintf(format, args...)))
	return err
}

// Messagef prints a message as one line on stderr, after the name of the program.
func (p *Program) Messagef(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	fmt.Fprintf(p.Stderr, "eventsd: %s\n", Printable(text))
}

// Printable returns s with a question mark for every character that [unicode.IsPrint] excludes, except tabs
// and line feeds. Text from records could otherwise steer a terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' {
			return r
		}
		return '?'
	}, s)
}
