package command

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"unicode"

	"example.com/events/internal/strict"
)

// exitError is an error with the status that the program ends with.
type exitError struct {
	error
	status int
}

func (e exitError) Unwrap() error { return e.error }

// Usagef returns an error as [fmt.Errorf] does, for a mistake in the arguments: the program ends with
// status 2.
func Usagef(format string, args ...any) error { return exitError{fmt.Errorf(format, args...), 2} }

// Status ends the program with a status and prints nothing: all is said.
func Status(status int) error { return exitError{errors.New(""), status} }

// Exit prints the error in one line, if there is one to print, and returns the exit status of the
// program: 0 if there is no error, the status that the error has, or 1.
func (p *Program) Exit(err error) int {
	if err == nil {
		return 0
	}
	text := strings.Trim(err.Error(), "\n")
	if text != "" {
		p.Notice("%s", text)
	}
	marked, ok := errors.AsType[exitError](err)
	if ok {
		return marked.status
	}
	return 1
}

// Printf prints on stdout as [fmt.Printf] does.
func (p *Program) Printf(format string, args ...any) error {
	_, err := fmt.Fprintf(p.Stdout, format, args...)
	return err
}

// Notice prints a line for people on stderr. Format and args are those of [fmt.Printf].
func (p *Program) Notice(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	fmt.Fprintf(p.Stderr, "%s: %s\n", p.Name, p.clean(text))
}

// clean takes secrets, and what could steer a terminal, out of a text.
func (p *Program) clean(text string) string {
	if p.Redact != nil {
		text = p.Redact(text)
	}
	return Printable(text)
}

// Logger returns a logger that writes to stderr, as text or as JSON, with debug
// lines if verbose is set. It takes secrets, and what could steer a terminal,
// out of every message and value before they are encoded.
func (p *Program) Logger(format string, verbose bool) (*slog.Logger, error) {
	clean := func(_ []string, a slog.Attr) slog.Attr {
		switch a.Value.Kind() {
		case slog.KindString, slog.KindAny:
			a.Value = slog.StringValue(p.clean(a.Value.String()))
		}
		return a
	}
	o := &slog.HandlerOptions{ReplaceAttr: clean}
	if verbose {
		o.Level = slog.LevelDebug
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(p.Stderr, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(p.Stderr, o)), nil
	}
	return nil, Usagef("-log must be text or json, not %q", format)
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

// Lines is a JSON object with a line for each member: its name and its value, or "none" for
// what is empty or null.
func Lines(object []byte) string {
	value, _ := strict.Parse(object) // what a server has just encoded
	var lines strings.Builder
	for _, member := range value.Members {
		fmt.Fprintf(&lines, "%s: %s\n", member.Name, cmp.Or(member.Value.Text, "none"))
	}
	return Printable(lines.String())
}
