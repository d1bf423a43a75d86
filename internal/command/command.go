// Package command is what every command line with subcommands and every small
// HTTP server needs, whatever the program is about: subcommands, help, exit statuses and
// what is printed on stderr (command.go, print.go); flags that can also be set in the
// environment (flags.go); listening, saying that the server is ready, and
// stopping (server.go, ready.go, socket.go); running another program beside the server (child.go);
// and writing a file whole (file.go).
//
// It knows no data file, no API key and no event, and nothing of what the subcommands do.
package command

import (
	"errors"
	"flag"
	"io"
	"slices"
	"strings"
)

// Program is a command line: a name, followed by a subcommand of one or two
// words, its flags, and its arguments.
type Program struct {
	Name  string // such as eventsd; the variables of its flags begin with EVENTSD_
	About string // one sentence for the help

	// Commands are the subcommands. The first is what the program does without one.
	Commands []Command

	// Environ is the environment, as of [os.Environ]. Nothing else of the process is looked at.
	Environ []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer // for errors, notices and the log

	// Redact takes secrets out of what is printed on stderr.
	Redact func(string) string
}

// Command is one thing that a program does.
type Command struct {
	Name    string // one word or two
	Args    string // what follows the flags, for the help; empty: nothing may follow
	Summary string // one line for the help

	// Declare declares the flags of the subcommand and returns what it does, which is called once
	// they have their values. The error is for [Program.Exit].
	Declare func(*Flags) (run func() error)
}

// Add adds a subcommand: see the fields of [Command].
func (p *Program) Add(name, args, summary string, declare func(*Flags) (run func() error)) {
	p.Commands = append(p.Commands, Command{name, args, summary, declare})
}

// Run runs the subcommand that args name, or the first of Commands if they name none. A
// flag that args do not give is read from its variable. The error is for [Program.Exit].
func (p *Program) Run(args []string) error {
	c, rest, err := p.find(p.expand(args))
	if err != nil {
		return err
	}
	flags := newFlags(p, c.Name)
	run := c.Declare(flags)
	err = flags.parse(rest)
	if errors.Is(err, flag.ErrHelp) {
		return p.explain(c, flags)
	}
	if err != nil {
		return Usagef("%w; see %s help %s", err, p.Name, c.Name)
	}
	if c.Args == "" && (len(flags.Args) > 0 || flags.Dashes) { // not repeated: it may be a secret
		return Usagef("nothing may follow the flags of %s; see %s help %[1]s", c.Name, p.Name)
	}
	return run()
}

// expand makes args begin with a subcommand: the first one if they name none, and help
// or version, which every program should have, if they begin with a flag of that name.
func (p *Program) expand(args []string) []string {
	first := slices.Concat([]string{p.Commands[0].Name}, args)
	if len(args) == 0 {
		return first
	}
	switch args[0] {
	case "-h", "-help", "--help":
		return []string{"help"}
	case "-version", "--version":
		return []string{"version"}
	}
	if strings.HasPrefix(args[0], "-") {
		return first
	}
	return args
}

// find returns the subcommand whose words args begin with, and the other args.
func (p *Program) find(args []string) (c Command, rest []string, err error) {
	var names, longer []string // of all subcommands, and of those with a word behind args[0]
	for _, c := range p.Commands {
		names = append(names, c.Name)
		if strings.HasPrefix(c.Name, args[0]+" ") {
			longer = append(longer, c.Name)
		}
	}
	words := 1
	if longer != nil && len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		words = 2
	}
	typed := strings.Join(args[:words], " ") // and no more: behind it may be a secret
	i := slices.Index(names, typed)
	if i >= 0 {
		return p.Commands[i], args[words:], nil
	}
	if longer != nil {
		names = longer
	}
	return c, nil, Usagef("unknown subcommand %q; it must be one of %s; see %s help",
		typed, strings.Join(names, ", "), p.Name)
}

// AddHelp adds the subcommand help: it lists the subcommands or, with arguments, explains the
// one that they name, as its flag -h does.
func (p *Program) AddHelp() {
	declare := func(flags *Flags) func() error {
		return func() error {
			if len(flags.Args) == 0 {
				return p.list()
			}
			c, _, err := p.find(flags.Args)
			if err != nil {
				return err
			}
			return p.Run(append(strings.Fields(c.Name), "-h"))
		}
	}
	p.Add("help", "[SUBCOMMAND]", "explain "+p.Name+" or a subcommand", declare)
}

// list prints the subcommands.
func (p *Program) list() error {
	p.Printf("%s\n\nUsage: %s [SUBCOMMAND] [FLAGS]\n\n", p.About, p.Name)
	for _, c := range p.Commands {
		p.Printf("  %-12s %s\n", c.Name, c.Summary)
	}
	return p.Printf("\nSee %s help SUBCOMMAND for its flags.\n", p.Name)
}

// explain prints the help of one subcommand.
func (p *Program) explain(c Command, flags *Flags) error {
	usage := strings.TrimSpace(p.Name + " " + c.Name + " [FLAGS] " + c.Args)
	p.Printf("%s %s: %s\n\nUsage: %s\n", p.Name, c.Name, c.Summary, usage)
	flags.set.SetOutput(p.Stdout)
	flags.set.PrintDefaults()
	return p.Printf("\nA flag that is not given is read from its variable in the environment, if it\n"+
		"has one: -data from %s_DATA and so on.\n", strings.ToUpper(p.Name))
}
