package command

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode"
)

// exitError is an error with the status that the program ends with.
type exitError struct {
	error
	status int
}

func (e exitError) Unwrap() error { return e.error }

// Failed marks an error as a failure, such as a full disk: the program ends with status
// 1. An error that is not marked, such as a bad flag, ends it with 2. An error that has a
// status keeps it.
func Failed(err error) error {
	if _, marked := errors.AsType[exitError](err); marked || err == nil {
		return err
	}
	return exitError{err, 1}
}

// Exit prints the error in one line, if there is one to print, and returns the
// exit status of the program.
func (p *Program) Exit(err error) (status int) {
	if err == nil {
		return 0
	}
	status = 2
	if e, ok := errors.AsType[exitError](err); ok {
		status = e.status
	}
	if text := strings.Trim(err.Error(), "\n"); text != "" {
		p.Notice("%s", p.Redact(text))
	}
	return status
}

// Print prints a text on stdout. An error of it is marked by [Failed].
func (p *Program) Print(text string) error {
	_, err := io.WriteString(p.Stdout, text)
	return Failed(err)
}

// Notice prints a line for people on stderr. Format and args are those of [fmt.Printf].
func (p *Program) Notice(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	fmt.Fprintf(p.Stderr, "%s: %s\n", p.Name, Printable(text))
}

// Logger returns a logger that writes to stderr, as text or as JSON, with debug
// lines if verbose is set. It takes secrets, and what could steer a terminal,
// out of every message and value before they are encoded.
func (p *Program) Logger(format string, verbose bool) (*slog.Logger, error) {
	o := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if kind := a.Value.Kind(); kind == slog.KindString || kind == slog.KindAny {
			a.Value = slog.StringValue(Printable(p.Redact(a.Value.String())))
		}
		return a
	}}
	if verbose {
		o.Level = slog.LevelDebug
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(p.Stderr, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(p.Stderr, o)), nil
	}
	return nil, fmt.Errorf("-log must be text or json, not %q", format)
}

// Printable is s with a question mark in the place of each character that
// [unicode.IsPrint] does not count as printable, such as a control character or a space
// other than the ASCII one, but not of tabs and line ends. Records and requests come from
// strangers, whose escape sequences could otherwise overwrite on a terminal what a person
// has read.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' || r == '\t' {
			return r
		}
		return '?'
	}, s)
}
