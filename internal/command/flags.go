package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Flags are the flags of one subcommand, and what it was given.
//
// A flag that does not stand on the command line is read from its variable in the
// environment: -new-event-status of eventsd from EVENTSD_NEW_EVENT_STATUS. An empty variable counts as
// one that is not set.
type Flags struct {
	Args   []string // what followed the flags
	Dashes bool     // "--" stood on the command line

	program *Program
	set     *flag.FlagSet
	given   map[string]bool // the flags that stood on the command line
	none    []string        // flags without a variable
}

func newFlags(p *Program, name string) *Flags {
	f := &Flags{program: p, given: map[string]bool{}}
	f.set = flag.NewFlagSet(name, flag.ContinueOnError)
	f.set.SetOutput(io.Discard) // Exit prints the error
	return f
}

// String declares a flag with a text. The usage names its value in back quotes.
func (f *Flags) String(value *string, name, byDefault, usage string) {
	f.set.StringVar(value, name, byDefault, usage)
}

// Bool declares a flag that is on or off.
func (f *Flags) Bool(value *bool, name string, byDefault bool, usage string) {
	*value = byDefault
	f.set.Var((*onOff)(value), name, usage)
}

// onOff is the [flag.Value] of a flag that is on or off. That of package flag calls a bad value a
// parse error.
type onOff bool

func (v *onOff) Set(text string) error {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New("it must be true or false")
	}
	*v = onOff(on)
	return nil
}

func (v *onOff) String() string { return strconv.FormatBool(bool(*v)) }

// IsBoolFlag lets the flag stand without a value, which means true.
func (v *onOff) IsBoolFlag() bool { return true }

// NoVariable declares that these flags are not read from the environment, as they make sense for
// one call of the program alone.
func (f *Flags) NoVariable(names ...string) { f.none = append(f.none, names...) }

// Given reports whether a flag stood on the command line.
func (f *Flags) Given(name string) bool { return f.given[name] }

// parse sets the flags from the arguments of the subcommand, and then from the environment.
func (f *Flags) parse(args []string) error {
	flags, rest := args, []string(nil)
	dashes := slices.Index(args, "--")
	if dashes >= 0 {
		f.Dashes = true
		flags, rest = args[:dashes], args[dashes+1:]
	}
	err := f.set.Parse(flags)
	if err != nil {
		return err
	}
	f.Args = slices.Concat(f.set.Args(), rest)
	f.set.Visit(func(fl *flag.Flag) { f.given[fl.Name] = true })
	f.set.VisitAll(func(fl *flag.Flag) {
		if err == nil && !f.given[fl.Name] {
			err = f.readVariable(fl)
		}
	})
	return err
}

// readVariable sets a flag from its variable, if it has one and that has a value.
func (f *Flags) readVariable(fl *flag.Flag) error {
	if slices.Contains(f.none, fl.Name) {
		return nil
	}
	name := f.program.variableOf(fl.Name)
	value := variable(f.program.Environ, name)
	if value == "" {
		return nil
	}
	err := f.set.Set(fl.Name, value)
	if err != nil {
		return fmt.Errorf("invalid value %q of %s: %w", value, name, err)
	}
	return nil
}

// variable returns the value of a variable, or "". The last one of a name counts, as it does
// for a command that is started with environ.
func variable(environ []string, name string) (value string) {
	for _, v := range environ {
		n, val, _ := strings.Cut(v, "=")
		if n == name {
			value = val
		}
	}
	return value
}

// variableOf is the variable of a flag: EVENTSD_NEW_EVENT_STATUS of -new-event-status.
func (p *Program) variableOf(flag string) string {
	return strings.ToUpper(p.Name + "_" + strings.ReplaceAll(flag, "-", "_"))
}

// Quote is a word as a POSIX shell takes it: quoted if it holds anything that means something
// to a shell, and else as it is.
func Quote(word string) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:=@_"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
