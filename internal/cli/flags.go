package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Flags are the flags of one subcommand.
type Flags struct {
	*flag.FlagSet
	program  *Program
	operands string // arguments that may follow the flags, for the help
}

// NewFlags returns an empty set of flags. The operands describe the arguments that may follow the flags, as
// in "[FILE|-]". If empty, there may be none.
func (p *Program) NewFlags(subcommand, operands string) *Flags {
	set := flag.NewFlagSet(subcommand, flag.ContinueOnError)
	set.SetOutput(io.Discard) // Run prints errors
	set.Usage = func() {}     // Parse prints the help
	return &Flags{FlagSet: set, program: p, operands: operands}
}

// Parse parses the arguments of the subcommand. For -h it prints the flags and returns [flag.ErrHelp].
func (f *Flags) Parse(args []string) error {
	err := f.FlagSet.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.printHelp()
		return err
	case err != nil:
		return Usagef("%w; see %s help %s", err, f.program.Name, f.Name())
	case f.operands == "" && f.NArg() > 0: // not repeated, because it may be a secret
		return Usagef("nothing may follow the flags of %s; see %s help %[1]s", f.Name(), f.program.Name)
	}
	return nil
}

// ParseEnv parses the arguments like Parse. Flags that aren't given are read from the environment:
// -new-event-status of eventsd from EVENTSD_NEW_EVENT_STATUS. An empty variable counts as unset.
func (f *Flags) ParseEnv(args []string) error {
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(f.program.Stdout,
			"\nFlags that aren't given are read from the environment: -addr from %s.\n",
			f.program.variable("addr"))
	}
	f.VisitAll(func(fl *flag.Flag) {
		if err != nil || f.Given(fl.Name) {
			return
		}
		name := f.program.variable(fl.Name)
		value := f.program.getenv(name)
		if value == "" {
			return
		}
		if setErr := f.Set(fl.Name, value); setErr != nil {
			err = Usagef("invalid value %q of %s: %w", value, name, setErr)
		}
	})
	return err
}

// OneOf declares a flag whose value must be one of the words. The first is the default.
func (f *Flags) OneOf(name, usage string, words ...string) *string {
	w := &word{words[0], words}
	f.Var(w, name, usage)
	return &w.value
}

// word is the value of a flag that OneOf declares.
type word struct {
	value string
	words []string
}

func (w *word) String() string { return w.value }

func (w *word) Set(value string) error {
	if !slices.Contains(w.words, value) {
		return errors.New("must be " + strings.Join(w.words, " or "))
	}
	w.value = value
	return nil
}

// Given reports whether a flag was set, even to its default.
func (f *Flags) Given(name string) (given bool) {
	f.Visit(func(fl *flag.Flag) { given = given || fl.Name == name })
	return given
}

func (f *Flags) printHelp() {
	usage := strings.TrimSpace(f.program.Name + " " + f.Name() + " [FLAGS] " + f.operands)
	fmt.Fprintf(f.program.Stdout, "Usage: %s\n", usage)
	f.SetOutput(f.program.Stdout)
	f.PrintDefaults()
}

// DataFlag declares -data, the path of the data file. It is read from its variable by every subcommand.
func (f *Flags) DataFlag() *string {
	value := f.program.getenv(f.program.variable("data"))
	if value == "" {
		value = "events.json"
	}
	return f.String("data", value, "the data `FILE`")
}

// variable returns the name of the variable of a flag.
func (p *Program) variable(flag string) string {
	return strings.ToUpper(p.Name + "_" + strings.ReplaceAll(flag, "-", "_"))
}

// getenv returns the value of a variable, or "". If there are several, the last counts, as for a process.
func (p *Program) getenv(name string) (value string) {
	for _, variable := range p.Environ {
		n, v, _ := strings.Cut(variable, "=")
		if n == name {
			value = v
		}
	}
	return value
}
