// Package command is what every command line with subcommands and every small
// HTTP server needs, whatever the program is about: flags that can also be set
// in the environment, help, exit statuses and what is printed on stderr
// (command.go, print.go); listening, saying that the server is ready, and
// stopping without cutting off a request (server.go, ready.go, socket.go); and
// running another program beside the server (child.go).
package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Program is a command line: a name, followed by a subcommand of one or two
// words, its flags, and its arguments.
type Program struct {
	Name     string // such as eventsd; the variables of its flags begin with EVENTSD_
	About    string // one sentence for the help
	Commands []Command
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer                // for errors, notices and the log
	Redact   func(text string) string // takes secrets out of errors and log lines

	// Set when the subcommand runs.
	Args   []string        // what followed the flags
	Dashes bool            // "--" stood before Args
	Given  map[string]bool // the flags that stood on the command line
}

// Command is one thing that a program does.
type Command struct {
	Name    string              // one word or two
	Args    string              // what follows the flags, for the help; empty: nothing may follow
	Summary string              // one line for the help
	Flags   func(*flag.FlagSet) // declares its flags; nil: it has none
	Run     func() error
}

// Run runs the subcommand that args name: the first of Commands where they name
// none. A flag that args do not give is read from its variable in the
// environment. The error is for [Program.Exit].
func (p *Program) Run(args []string, getenv func(string) string) error {
	p.Commands = append(p.Commands, Command{
		Name: "help", Args: "[SUBCOMMAND]", Summary: "explain " + p.Name + " or a subcommand", Run: p.help,
	})
	c, rest := p.Commands[0], args
	switch {
	case len(args) == 0:
	case asksHelp(args[0]):
		return p.help()
	case args[0] == "-version" || args[0] == "--version":
		c, rest, _ = p.find([]string{"version"})
	case !strings.HasPrefix(args[0], "-"):
		var found bool
		if c, rest, found = p.find(args); !found && len(args) > 1 && asksHelp(args[1]) {
			p.Args = args[:1]
			return p.help()
		} else if !found {
			return p.unknown(args)
		}
	}
	fs := c.flagSet()
	if err := fs.Parse(rest); errors.Is(err, flag.ErrHelp) {
		p.explain(c)
		return nil
	} else if err != nil {
		return fmt.Errorf("%w; see %s help %s", err, p.Name, c.Name)
	}
	before := len(rest) - fs.NArg()
	p.Args, p.Dashes, p.Given = fs.Args(), before > 0 && rest[before-1] == "--", map[string]bool{}
	fs.Visit(func(f *flag.Flag) { p.Given[f.Name] = true })
	if len(p.Args) > 0 && c.Args == "" { // not repeated: it may be a secret whose flag was mistyped
		return fmt.Errorf("nothing may follow the flags of %s, a subcommand comes first; see %s help %[1]s",
			c.Name, p.Name)
	}
	if err := p.readEnvironment(fs, getenv); err != nil {
		return err
	}
	return c.Run()
}

func asksHelp(arg string) bool { return slices.Contains([]string{"-h", "-help", "--help"}, arg) }

// find returns the subcommand whose words args begin with, and the other args.
func (p *Program) find(args []string) (c Command, rest []string, found bool) {
	for _, c := range p.Commands {
		words := strings.Fields(c.Name)
		if len(args) >= len(words) && slices.Equal(words, args[:len(words)]) {
			return c, args[len(words):], true
		}
	}
	return c, nil, false
}

func (c Command) flagSet() *flag.FlagSet {
	fs := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // we print the error
	if c.Flags != nil {
		c.Flags(fs)
	}
	return fs
}

// readEnvironment sets the flags that were not given from their variables.
func (p *Program) readEnvironment(fs *flag.FlagSet, getenv func(string) string) (err error) {
	fs.VisitAll(func(f *flag.Flag) {
		value := getenv(p.variable(f))
		if value == "" || p.Given[f.Name] || err != nil {
			return
		}
		if fs.Set(f.Name, value) != nil { // only a flag that is on or off refuses a value
			err = fmt.Errorf("invalid value %q of %s; it must be true or false", value, p.variable(f))
		}
	})
	return err
}

// variable is the name of a flag in the environment.
func (p *Program) variable(f *flag.Flag) string {
	return strings.ToUpper(p.Name + "_" + strings.ReplaceAll(f.Name, "-", "_"))
}

// unknown is the error for a subcommand that does not exist, or whose second word
// is missing. It repeats no flag, as one may hold a secret.
func (p *Program) unknown(args []string) error {
	var longer []string
	for _, c := range p.Commands {
		if strings.HasPrefix(c.Name, args[0]+" ") {
			longer = append(longer, c.Name)
		}
	}
	if longer != nil {
		return fmt.Errorf("give one of %s; see %s help %s", strings.Join(longer, ", "), p.Name, args[0])
	}
	return fmt.Errorf("unknown subcommand %q; see %s help", args[0], p.Name)
}

// help explains the subcommand that the arguments name, or lists those that
// begin with them.
func (p *Program) help() error {
	list := p.Commands
	if name := strings.Join(p.Args, " "); name != "" {
		if c, rest, found := p.find(p.Args); found && len(rest) == 0 {
			p.explain(c)
			return nil
		}
		other := func(c Command) bool { return !strings.HasPrefix(c.Name, name+" ") }
		if list = slices.DeleteFunc(slices.Clone(list), other); len(list) == 0 {
			return p.unknown(p.Args)
		}
	}
	fmt.Fprintf(p.Stdout, "%s\n\nUsage: %s [SUBCOMMAND] [FLAGS]\n\n", p.About, p.Name)
	for _, c := range list {
		fmt.Fprintf(p.Stdout, "  %-12s %s\n", c.Name, c.Summary)
	}
	fmt.Fprintf(p.Stdout, "\nSee %s help SUBCOMMAND for its flags. Each flag can also be set in the\n"+
		"environment, -data as %s_DATA and so on; the flag wins.\n", p.Name, strings.ToUpper(p.Name))
	return nil
}

// explain prints the help of one subcommand.
func (p *Program) explain(c Command) {
	usage := strings.Fields(p.Name + " " + c.Name + " [FLAGS] " + c.Args)
	fmt.Fprintf(p.Stdout, "%s %s: %s\n\nUsage: %s\n", p.Name, c.Name, c.Summary, strings.Join(usage, " "))
	c.flagSet().VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" {
			usage += " (default " + f.DefValue + ")"
		}
		name := strings.TrimSpace("-" + f.Name + " " + value)
		fmt.Fprintf(p.Stdout, "  %-24s %s; %s\n", name, usage, p.variable(f))
	})
}
