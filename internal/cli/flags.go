package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// NewFlags returns the flags of a subcommand, for [Program.Parse].
func NewFlags(subcommand string) *flag.FlagSet {
	flags := flag.NewFlagSet(subcommand, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // Exit prints errors
	flags.Usage = func() {}     // Parse prints the help
	return flags
}

// Parse parses the arguments of a subcommand. Operands describe the arguments that may follow the flags, as
// in "[FILE|-]". If empty, there may be none. A flag -data that isn't given is read from the environment. For
// -h, Parse prints the flags and returns [flag.ErrHelp].
func (p *Program) Parse(flags *flag.FlagSet, operands string, args []string) error {
	return p.parse(flags, operands, args, "data")
}

// ParseEnv parses the arguments like Parse, and reads all flags that aren't given from the environment.
func (p *Program) ParseEnv(flags *flag.FlagSet, operands string, args []string) error {
	var names []string
	flags.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	err := p.parse(flags, operands, args, names...)
	if errors.Is(err, flag.ErrHelp) {
		io.WriteString(p.Stdout,
			"\nFlags that aren't given are read from the environment: -addr from EVENTSD_ADDR.\n")
	}
	return err
}

// parse parses the arguments. Flags with these names that aren't given are read from the environment.
func (p *Program) parse(flags *flag.FlagSet, operands string, args []string, names ...string) error {
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		usage := strings.TrimSpace("Usage: eventsd " + flags.Name() + " [FLAGS] " + operands)
		fmt.Fprintln(p.Stdout, usage)
		flags.SetOutput(p.Stdout)
		flags.PrintDefaults()
		return err
	case err != nil:
		return Usagef("%v; see eventsd help %s", err, flags.Name())
	case operands == "" && flags.NArg() > 0: // not repeated, because it may be a secret
		return Usagef("nothing may follow the flags of %s; see eventsd help %[1]s", flags.Name())
	}
	empty := ""
	flags.Visit(func(f *flag.Flag) {
		value, ok := f.Value.(flag.Getter)
		if ok && value.Get() == "" {
			empty = f.Name
		}
	})
	if empty != "" {
		return Usagef("-%s is empty: give it a value, or leave it out", empty)
	}
	for _, name := range names {
		variable := "EVENTSD_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		value := p.Getenv(variable)
		if value == "" || Given(flags, name) || flags.Lookup(name) == nil {
			continue
		}
		err := flags.Set(name, value)
		if err != nil {
			return Usagef("invalid value %q of %s: %v", value, variable, err)
		}
	}
	return nil
}

// Getenv returns the value of a variable, or "". If there are several, the last counts, as for a process.
func (p *Program) Getenv(name string) string {
	for _, variable := range slices.Backward(p.Environ) {
		value, found := strings.CutPrefix(variable, name+"=")
		if found {
			return value
		}
	}
	return ""
}

// Given reports whether a flag was set, even to its default.
func Given(flags *flag.FlagSet, name string) (given bool) {
	flags.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}

// DataFlag declares -data, the path of the data file.
func DataFlag(flags *flag.FlagSet) *string {
	return flags.String("data", "events.json", "the data `FILE`")
}

// OneOf declares a flag whose value must be one of the words. The first is the default.
func OneOf(flags *flag.FlagSet, name, usage string, words ...string) *string {
	word := words[0]
	flags.Func(name, usage+" (default "+word+")", func(value string) error {
		if !slices.Contains(words, value) {
			return errors.New("must be " + strings.Join(words, " or "))
		}
		word = value
		return nil
	})
	return &word
}
