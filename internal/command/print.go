package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"unicode"

	"example.com/events/internal/strict"
)

// exitError is an error with the status that the program ends with.
type exitError struct {
	error
	status int
}

func (e exitError) Unwrap() error { return e.error }

// Failed marks an error as a failure: the program ends with status 1. An error that has a
// status keeps it.
func Failed(err error) error {
	_, marked := errors.AsType[exitError](err)
	if marked || err == nil {
		return err
	}
	return exitError{err, 1}
}

// Refused marks an error as a refusal: the program ends with status 2.
func Refused(err error) error { return exitError{err, 2} }

// Status ends the program with a status and prints nothing: all is said.
func Status(status int) error { return exitError{errors.New(""), status} }

// Exit prints the error in one line, if there is one to print, and returns the exit
// status of the program: 0 if there is no error. An error that is not marked by [Failed]
// ends it with 1, too, if it is the system's, such as a full disk or a port in use: it may be
// gone when the program is started again. What is left was refused, such as a bad flag or a
// file that is not there, and is refused again: that is 2.
func (p *Program) Exit(err error) int {
	if err == nil {
		return 0
	}
	text := strings.Trim(err.Error(), "\n")
	if text != "" {
		p.tell(slog.LevelError, "", "%s", []any{text})
	}
	marked, isMarked := errors.AsType[exitError](err)
	if isMarked {
		return marked.status
	}
	number, _ := errors.AsType[syscall.Errno](err)
	switch number {
	case 0, syscall.ENOENT, syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG, syscall.EINVAL:
		return 2
	}
	return 1
}

// Printf prints on stdout as [fmt.Printf] does. An error of it is marked by [Failed].
func (p *Program) Printf(format string, args ...any) error {
	_, err := fmt.Fprintf(p.Stdout, format, args...)
	return Failed(err)
}

// Notice prints a line for people on stderr. Format and args are those of [fmt.Printf].
func (p *Program) Notice(format string, args ...any) { p.tell(slog.LevelInfo, "", format, args) }

// Warn is [Program.Notice] for what a person should look into.
func (p *Program) Warn(format string, args ...any) { p.tell(slog.LevelWarn, "warning: ", format, args) }

// tell prints a line for people. It is a line of the log if that is JSON: what reads the log then
// finds nothing else on stderr.
func (p *Program) tell(level slog.Level, prefix, format string, args []any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	if p.jsonLog != nil {
		p.jsonLog.Log(context.Background(), level, text)
		return
	}
	fmt.Fprintf(p.Stderr, "%s: %s%s\n", p.Name, prefix, p.clean(text))
}

// clean takes secrets, and what could steer a terminal, out of a text.
func (p *Program) clean(text string) string {
	if p.Redact != nil {
		text = p.Redact(text)
	}
	return Printable(text)
}

// Public is a value for the log that looks like a secret and is none.
type Public string

// Logger returns a logger that writes to stderr, as text or as JSON, with debug
// lines if verbose is set. It takes secrets, and what could steer a terminal,
// out of every message and value before they are encoded.
func (p *Program) Logger(format string, verbose bool) (*slog.Logger, error) {
	clean := func(_ []string, a slog.Attr) slog.Attr {
		_, isPublic := a.Value.Any().(Public)
		if isPublic {
			return a
		}
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
		p.jsonLog = slog.New(slog.NewJSONHandler(p.Stderr, o))
		return p.jsonLog, nil
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

// JSON returns a writer of JSON for people and programs: each control character becomes its escape
// \u00xx, which is the same text to a program, and steers no terminal. Line feeds and tabs stay.
// Writes may end anywhere in the JSON. An error of w is marked by [Failed].
func JSON(w io.Writer) io.Writer { return &jsonWriter{to: w} }

type jsonWriter struct {
	to  io.Writer
	out []byte
	c2  bool // the last byte was c2, with which each character from U+0080 to U+00BF begins in UTF-8
}

func (w *jsonWriter) Write(p []byte) (int, error) {
	const c2 = 0xc2
	w.out = w.out[:0]
	for _, b := range p {
		isC1 := w.c2 && b >= 0x80 && b <= 0x9f
		if w.c2 && !isC1 {
			w.out = append(w.out, c2)
		}
		w.c2 = b == c2
		switch {
		case w.c2: // what follows decides
		case isC1 || b == 0x7f || b < ' ' && b != '\n' && b != '\t':
			w.out = fmt.Appendf(w.out, `\u%04x`, b)
		default:
			w.out = append(w.out, b)
		}
	}
	_, err := w.to.Write(w.out)
	if err != nil {
		return 0, Failed(err)
	}
	return len(p), nil
}

// PrintJSON prints a JSON text and a line end on stdout, by [JSON].
func (p *Program) PrintJSON(text []byte) error {
	_, err := JSON(p.Stdout).Write(append(text, '\n'))
	return err
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
