// Package cli has the parts of a program with subcommands that don't depend on what they do: flags that can
// be set in the environment, exit statuses, text that is safe to print, files that are written whole or not
// at all, progress on a terminal, signals, running another program, and the flags of a server.
package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"unicode"
)

// A Program is a program with its environment and streams. All fields must be set.
type Program struct {
	Name    string   // such as eventsd, whose variables begin with EVENTSD_
	About   string   // one sentence for the help
	Environ []string // in the form of os.Environ
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer // for errors, messages and the log
}

// A Command is a subcommand of a program.
type Command struct {
	Name    string // one word or two
	Summary string // for the help
	Run     func(ctx context.Context, args []string) error
}

// Run runs the command that args begin with, with the other args, and returns the exit status. If args begin
// with no command, it runs the first one. The command help is added to the list. The flag -help means help,
// and -version means the command version.
func (p *Program) Run(ctx context.Context, commands []Command, args []string) (status int) {
	help := Command{Name: "help", Summary: "explain " + p.Name + " or a subcommand"}
	help.Run = func(ctx context.Context, args []string) error { return p.help(ctx, commands, args) }
	commands = append(commands, help)
	c, rest, err := p.find(commands, args)
	if err == nil {
		err = c.Run(ctx, rest)
	}
	return p.exit(err)
}

// find returns the command that args begin with, and the other args.
func (p *Program) find(commands []Command, args []string) (c Command, rest []string, err error) {
	words := append(slices.Clone(args), "", "") // at least two
	switch words[0] {
	case "-h", "-help", "--help":
		words[0] = "help"
	case "-version", "--version":
		words[0] = "version"
	}
	if words[0] == "" || strings.HasPrefix(words[0], "-") {
		return commands[0], args, nil
	}
	var names []string
	for _, c := range commands {
		switch c.Name {
		case words[0]:
			return c, args[1:], nil
		case words[0] + " " + words[1]:
			return c, args[2:], nil
		}
		names = append(names, c.Name)
	}
	return c, nil, Usagef("unknown subcommand %q: it must be one of %s; see %s help",
		words[0], strings.Join(names, ", "), p.Name)
}

// help explains the command that args begin with, or lists all commands.
func (p *Program) help(ctx context.Context, commands []Command, args []string) error {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		c, _, err := p.find(commands, args)
		if err != nil {
			return err
		}
		return c.Run(ctx, []string{"-h"})
	}
	text := fmt.Sprintf("%s\n\nUsage: %s [SUBCOMMAND] [FLAGS]\n\n", p.About, p.Name)
	for _, c := range commands {
		text += fmt.Sprintf("  %-10s  %s\n", c.Name, c.Summary)
	}
	return p.Printf("%s\nSee %s help SUBCOMMAND for its flags.\n", text, p.Name)
}

// An ExitError ends a program with a status other than 1.
type ExitError struct {
	Status int
	Err    error // printed, unless it is nil
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Usagef returns an error with status 2, for wrong arguments. It formats like [fmt.Errorf].
func Usagef(format string, args ...any) error { return &ExitError{2, fmt.Errorf(format, args...)} }

// exit returns the exit status for an error, and prints its message as one line on stderr. The status is 0 if
// err is nil or [flag.ErrHelp], the Status of an [ExitError], or 1.
func (p *Program) exit(err error) int {
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err.Error() != "" {
		p.Notify("%v", err)
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

// Notify prints a message as one line on stderr, after the name of the program.
func (p *Program) Notify(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	fmt.Fprintf(p.Stderr, "%s: %s\n", p.Name, Printable(text))
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

// BuildVersion returns the version of the program: the one that the linker has set or, if that is empty, the
// tag that it was built from.
func BuildVersion(linked string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return cmp.Or(linked, info.Main.Version, "(devel)")
}

// isTerminal reports whether a stream is a terminal: a character device other than os.DevNull, which often
// stands in for a stream.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
