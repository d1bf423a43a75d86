// Package command is a command line of subcommands whose flags can also be set
// in the environment.
package command

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Program is a command line.
type Program struct {
	Name     string // eventsd; its variables begin with EVENTSD_
	About    string // a sentence
	Commands []Command
	Flags    map[string]Flag
	Stdout   io.Writer // for help

	Args  []string        // what followed the flags
	Given map[string]bool // the flags on the command line
}

// Flag declares a flag in a set, with a default where it is another one than
// usual.
type Flag func(fs *flag.FlagSet, name, value string)

// String is a flag with a value, whose name stands in backquotes in the usage.
func String(at *string, usual, usage string) Flag {
	return func(fs *flag.FlagSet, name, value string) { fs.StringVar(at, name, cmp.Or(value, usual), usage) }
}

// Bool is a flag that is on or off.
func Bool(at *bool, usual bool, usage string) Flag {
	return func(fs *flag.FlagSet, name, _ string) { fs.BoolVar(at, name, usual, usage) }
}

// Command is one thing that a program does.
type Command struct {
	Name          string // one word or two
	Args, Summary string
	Flags         []string // each with =VALUE behind it where its default is not the usual
	Run           func() error
}

// Run runs the subcommand that args name, the first one where they name none.
// Flags that are not given are read from getenv. Its errors, and those of the
// subcommand, say what to do.
func (p *Program) Run(args []string, getenv func(string) string) error {
	p.Commands = append(p.Commands, Command{Name: "help", Args: "[SUBCOMMAND]", Summary: "explain " + p.Name + " or a subcommand", Run: p.help})
	c := p.Commands[0]
	if len(args) > 0 && asksHelp(args[0]) {
		return p.help()
	}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		i := slices.IndexFunc(p.Commands, func(c Command) bool {
			words := strings.Fields(c.Name)
			return len(args) >= len(words) && slices.Equal(words, args[:len(words)])
		})
		if i < 0 && len(args) > 1 && asksHelp(args[1]) {
			p.Args = args[:1]
			return p.help()
		}
		if i < 0 {
			return p.unknown(args)
		}
		c = p.Commands[i]
		args = args[len(strings.Fields(c.Name)):]
	}
	fs := p.flags(c)
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		p.explain(c)
		return nil
	} else if err != nil {
		return fmt.Errorf("%w; see %s help %s", err, p.Name, c.Name)
	}
	p.Args, p.Given = fs.Args(), map[string]bool{}
	if len(p.Args) > 0 && c.Args == "" {
		hint := ""
		if p.Args[0] == "true" || p.Args[0] == "false" {
			hint = " a flag that is on or off is written -flag=" + p.Args[0] + ";"
		}
		if slices.ContainsFunc(p.Commands, func(c Command) bool { return strings.Fields(c.Name)[0] == p.Args[0] }) {
			hint = " a subcommand comes before its flags;"
		}
		return fmt.Errorf("unexpected argument %q;%s see %s help %s", p.Args[0], hint, p.Name, c.Name)
	}
	fs.Visit(func(f *flag.Flag) { p.Given[f.Name] = true })
	var bad error
	fs.VisitAll(func(f *flag.Flag) {
		if value := getenv(p.variable(f)); value != "" && !p.Given[f.Name] && bad == nil {
			if fs.Set(f.Name, value) != nil { // a string takes any value
				bad = fmt.Errorf("invalid value %q of %s; it must be true or false", value, p.variable(f))
			}
		}
	})
	if bad != nil {
		return bad
	}
	return c.Run()
}

func asksHelp(arg string) bool { return slices.Contains([]string{"-h", "-help", "--help"}, arg) }

func (p *Program) flags(c Command) *flag.FlagSet {
	fs := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	for _, name := range c.Flags {
		name, value, _ := strings.Cut(name, "=")
		p.Flags[name](fs, name, value)
	}
	return fs
}

// variable is the environment's twin of a flag.
func (p *Program) variable(f *flag.Flag) string {
	return strings.ToUpper(p.Name + "_" + strings.ReplaceAll(f.Name, "-", "_"))
}

// help explains the subcommand that the arguments name, or lists those that
// begin with them.
func (p *Program) help() error {
	list := p.Commands
	if name := strings.Join(p.Args, " "); name != "" {
		if i := slices.IndexFunc(list, func(c Command) bool { return c.Name == name }); i >= 0 {
			p.explain(list[i])
			return nil
		}
		list = slices.DeleteFunc(slices.Clone(list), func(c Command) bool { return !strings.HasPrefix(c.Name, name+" ") })
		if len(list) == 0 {
			return p.unknown(p.Args)
		}
	}
	fmt.Fprintf(p.Stdout, "%s\n\nUsage: %s [SUBCOMMAND] [FLAGS]\n\n", p.About, p.Name)
	for _, c := range list {
		fmt.Fprintf(p.Stdout, "  %-12s %s\n", c.Name, c.Summary)
	}
	fmt.Fprintf(p.Stdout, "\nSee %s help SUBCOMMAND for its flags. Each flag can also be set in the\nenvironment, -data as %s_DATA and so on; the flag wins.\n", p.Name, strings.ToUpper(p.Name))
	return nil
}

// unknown tells which subcommands begin with the first word, if there are any.
// It repeats no flag, as one may hold a secret.
func (p *Program) unknown(args []string) error {
	name, near := args[0], []string{}
	for _, c := range p.Commands {
		if name != "" && strings.HasPrefix(c.Name, name) {
			near = append(near, c.Name)
		}
	}
	if len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		name += " " + args[1]
	}
	hint := ""
	if len(near) > 0 {
		hint = " there is " + strings.Join(near, ", ") + ";"
	}
	return fmt.Errorf("unknown subcommand %q;%s see %s help", name, hint, p.Name)
}

func (p *Program) explain(c Command) {
	usage := strings.Fields(p.Name + " " + c.Name + " [FLAGS] " + c.Args)
	fmt.Fprintf(p.Stdout, "%s %s: %s\n\nUsage: %s\n", p.Name, c.Name, c.Summary, strings.Join(usage, " "))
	p.flags(c).VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(p.Stdout, "  %-24s %s; %s\n", strings.TrimSpace("-"+f.Name+" "+value), usage, p.variable(f))
	})
}

// Progress returns what tells on w, where that is a terminal, how far a long
// work is: done of total, or of nobody knows how much where total is 0.
func Progress(w io.Writer, what string) func(done, total int64) {
	f, ok := w.(*os.File)
	if ok {
		info, err := f.Stat()
		ok = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	if !ok {
		return func(int64, int64) {}
	}
	last := time.Now()
	return func(done, total int64) {
		switch {
		case done == total:
			fmt.Fprint(f, "\r\033[K")
		case time.Since(last) < 200*time.Millisecond:
		default:
			last = time.Now()
			fmt.Fprintf(f, "\r%s: %d", what, done)
			if total > 0 {
				fmt.Fprintf(f, " of %d", total)
			}
		}
	}
}

// Printable is s without what would move a terminal's cursor or a column.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
