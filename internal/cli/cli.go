// Package cli has the parts of the command eventsd that need neither a store nor a server: flags with
// environment variables and help, exit statuses, safe printing, atomic file writes, progress on a terminal,
// signals, and running another program.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// A Program is a run of eventsd with its environment and streams. Set all fields.
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

// Usagef returns an error for wrong arguments, which has status 2.
func Usagef(format string, args ...any) error { return &ExitError{2, fmt.Sprintf(format, args...)} }

// ExitStatus prints an error as one line on stderr and returns its exit status: 0 for nil and [flag.ErrHelp],
// the Status of an [ExitError], otherwise 1.
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

// Printf prints to stdout, without unprintable characters.
func (p *Program) Printf(format string, args ...any) error {
	_, err := io.WriteString(p.Stdout, Printable(fmt.Sprintf(format, args...)))
	return err
}

// Messagef prints a message as one line on stderr, after the program name.
func (p *Program) Messagef(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	fmt.Fprintf(p.Stderr, "eventsd: %s\n", Printable(text))
}

// Printable replaces unprintable characters with question marks, except tabs and line feeds. Otherwise,
// record text could inject terminal escape sequences.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' {
			return r
		}
		return '?'
	}, s)
}
