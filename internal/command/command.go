// Package command is what every command line with subcommands and every small
// HTTP server needs, whatever the program is about: flags that can also be set
// in the environment, help, exit statuses and what is printed on stderr
// (command.go, print.go); listening, saying that the server is ready, and
// stopping without cutting off a request (server.go, ready.go, socket.go), also under a
// service manager that hands over a socket (manager.go);
// running another program beside the server (child.go); writing a file whole
// (file.go); and the memory of the process (memory.go).
package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Program is a command line: a name, followed by a subcommand of one or two
// words, its flags, and its arguments.
type Program struct {
	Name     string // such as eventsd; the variables of its flags begin with EVENTSD_
	About    string // one sentence for the help
	Commands []Command
	Flags    flag.FlagSet // every flag that a subcommand can have
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer // for errors, notices and the log
	Data     string    // the path of the data file, which a flag sets

	// Environ is the environment, as of [os.Environ]. Nothing else of the process is looked at.
	Environ []string

	// Variables are the variables of flags, with their values. One with _FILE names a file
	// with the value.
	Variables map[string]string

	// Set when the subcommand runs.
	Args   []string          // what followed the flags
	Dashes bool              // "--" stood before Args
	Given  map[string]bool   // the flags that stood on the command line
	Shell  map[string]string // of the others, how a shell writes the value of the variable
}

// Command is one thing that a program does.
type Command struct {
	Name    string // one word or two
	Args    string // what follows the flags, for the help; empty: nothing may follow
	Summary string // one line for the help
	Flags   string // the names of its flags; NAME=VALUE is one with a default of its own
	Run     func() error
}

// Add adds a subcommand: see the fields of [Command].
func (p *Program) Add(name, args, summary, flags string, run func() error) {
	p.Commands = append(p.Commands, Command{name, args, summary, flags, run})
}

// Run runs the subcommand that args name, or the first of Commands if they name none. A
// flag that args do not give is read from its variable. The error is for [Program.Exit].
func (p *Program) Run(args []string) error {
	c, rest, err := p.find(p.expand(args))
	if err != nil {
		return err
	}
	fs := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // Exit prints the error
	for name := range strings.FieldsSeq(c.Flags) {
		name, value, hasDefault := strings.Cut(name, "=")
		f := p.Flags.Lookup(name)
		if hasDefault {
			f.Value.Set(value) // any value is good for a text
		}
		fs.Var(f.Value, name, f.Usage)
	}
	err = fs.Parse(rest)
	if errors.Is(err, flag.ErrHelp) {
		return p.explain(c, fs)
	}
	if err != nil { // only a flag that is on or off refuses a value, with the words "parse error"
		problem := strings.Replace(err.Error(), "parse error", onOrOff, 1)
		return fmt.Errorf("%s; see %s help %s", problem, p.Name, c.Name)
	}
	p.Args = fs.Args()
	p.Dashes = slices.Contains(rest[:len(rest)-len(p.Args)], "--")
	p.Given = map[string]bool{}
	fs.Visit(func(f *flag.Flag) { p.Given[f.Name] = true })
	if len(p.Args) > 0 && c.Args == "" { // not repeated: it may be a secret whose flag was mistyped
		return fmt.Errorf("nothing may follow the flags of %s; see %s help %[1]s", c.Name, p.Name)
	}
	p.Shell = map[string]string{}
	fs.VisitAll(func(f *flag.Flag) {
		if err == nil && !p.Given[f.Name] {
			err = p.readVariable(f)
		}
	})
	if err != nil {
		return err
	}
	return c.Run()
}

const onOrOff = "it must be true or false"

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
	return c, nil, fmt.Errorf("unknown subcommand %q; it must be one of %s; see %s help",
		typed, strings.Join(names, ", "), p.Name)
}

// readVariable sets a flag from its variable, if that has a value.
func (p *Program) readVariable(f *flag.Flag) error {
	name := strings.ToUpper(p.Name + "_" + strings.ReplaceAll(f.Name, "-", "_"))
	file := name + "_FILE"
	value := p.Variables[name]
	p.Shell[f.Name] = "$" + name
	path := p.Variables[file]
	if path != "" {
		if value != "" {
			return fmt.Errorf("%s and %s exclude each other; unset one of them", name, file)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		value, _, _ = strings.Cut(string(content), "\n")
		if value == "" {
			return fmt.Errorf("%s: the first line of %s is empty; it must be the value", file, path)
		}
		p.Shell[f.Name] = "$(head -n1 " + path + ")"
	}
	if value != "" && f.Value.Set(value) != nil {
		return fmt.Errorf("invalid value %q of %s; %s", value, name, onOrOff)
	}
	return nil
}

// Help is the subcommand help: it lists the subcommands or, with arguments, explains the one
// that they name, as its flag -h does.
func (p *Program) Help() error {
	if len(p.Args) > 0 {
		return p.Run(slices.Concat(p.Args, []string{"-h"}))
	}
	p.Printf("%s\n\nUsage: %s [SUBCOMMAND] [FLAGS]\n\n", p.About, p.Name)
	for _, c := range p.Commands {
		p.Printf("  %-12s %s\n", c.Name, c.Summary)
	}
	return p.Printf("\nSee %s help SUBCOMMAND for its flags.\n", p.Name)
}

// explain prints the help of one subcommand.
func (p *Program) explain(c Command, fs *flag.FlagSet) error {
	usage := strings.TrimSpace(p.Name + " " + c.Name + " [FLAGS] " + c.Args)
	p.Printf("%s %s: %s\n\nUsage: %s\n", p.Name, c.Name, c.Summary, usage)
	fs.SetOutput(p.Stdout)
	fs.PrintDefaults()
	return p.Printf("\nA flag that is not given is read from its variable in the environment, if it\n"+
		"has one: -data from %s_DATA and so on.\n", strings.ToUpper(p.Name))
}
