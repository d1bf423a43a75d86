package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Help explains a subcommand.
type Help struct {
	Purpose  string
	Operands string // after the flags, as in "[FILE | -]"; empty if there are none
	Example  string // one or two lines
}

// Flags are the flags of a subcommand.
type Flags struct {
	*flag.FlagSet
	help    Help
	fromEnv []string // names of the flags that an environment variable has set
}

// NewFlags creates the flags of a subcommand.
func NewFlags(subcommand string, help Help) *Flags {
	flags := flag.NewFlagSet(subcommand, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // ExitStatus prints errors
	flags.Usage = func() {}     // Parse prints the help
	return &Flags{FlagSet: flags, help: help}
}

// Source returns what messages about a flag's value should name: its environment variable, such as
// EVENTSD_ADDR, if the value comes from there, otherwise the flag, such as -addr.
func (f *Flags) Source(name string) string {
	if slices.Contains(f.fromEnv, name) {
		return variable(name)
	}
	return "-" + name
}

// Parse parses the arguments of a subcommand. If -data is missing, it is read from the environment. For -h,
// Parse prints the help and returns [flag.ErrHelp].
func (p *Program) Parse(flags *Flags, args []string) error {
	return p.parse(flags, args, "data")
}

// ParseEnv is like Parse, but reads the missing flags with these names from the environment, or all missing
// flags without names.
func (p *Program) ParseEnv(flags *Flags, args []string, names ...string) error {
	if names == nil {
		flags.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	}
	return p.parse(flags, args, names...)
}

// parse parses the arguments. It reads missing flags with these names from the environment.
func (p *Program) parse(flags *Flags, args []string, names ...string) error {
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		p.printHelp(flags, names)
		return err
	case err != nil:
		return Usagef("%v; see eventsd help %s", err, flags.Name())
	case flags.help.Operands == "" && flags.NArg() > 0: // don't print the arguments: one may be a secret
		return Usagef("%s takes no arguments after its flags; see eventsd help %[1]s", flags.Name())
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
		value := p.Getenv(variable(name))
		if value == "" || IsSet(flags, name) || flags.Lookup(name) == nil {
			continue
		}
		err := flags.Set(name, value)
		if err != nil {
			return Usagef("invalid value %q of %s: %v", value, variable(name), err)
		}
		flags.fromEnv = append(flags.fromEnv, name)
	}
	return nil
}

// variable returns the environment variable of a flag.
func variable(name string) string {
	return "EVENTSD_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// printHelp prints the help of a subcommand. The flags with these names have environment variables.
func (p *Program) printHelp(flags *Flags, names []string) {
	usage := "eventsd " + flags.Name()
	table := ""
	var variables []string
	flags.VisitAll(func(f *flag.Flag) {
		value, text := flag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" {
			text += " (default " + f.DefValue + ")"
		}
		table += strings.TrimRight("  -"+f.Name+" "+value, " ") + "\t" + text + "\n"
		if slices.Contains(names, f.Name) {
			variables = append(variables, variable(f.Name))
		}
	})
	if table != "" {
		usage += " [FLAGS]"
	}
	usage = strings.TrimSpace(usage + " " + flags.help.Operands)
	fmt.Fprintf(p.Stdout, "Usage: %s\n\n%s\n", usage, flags.help.Purpose)
	if table != "" {
		io.WriteString(p.Stdout, "\n")
		w := tabwriter.NewWriter(p.Stdout, 0, 0, 3, ' ', 0)
		io.WriteString(w, table)
		w.Flush()
	}
	if variables != nil {
		fmt.Fprint(p.Stdout, "\nVariables for missing flags:\n")
	}
	for line := range slices.Chunk(variables, 4) {
		fmt.Fprintf(p.Stdout, "  %s\n", strings.Join(line, ", "))
	}
	if flags.help.Example != "" {
		fmt.Fprintf(p.Stdout, "\nExample: %s\n", flags.help.Example)
	}
}

// Getenv returns the value of a variable, or "". If a variable is set twice, the last value counts, as it
// does for a process.
func (p *Program) Getenv(name string) string {
	for _, variable := range slices.Backward(p.Environ) {
		value, found := strings.CutPrefix(variable, name+"=")
		if found {
			return value
		}
	}
	return ""
}

// IsSet reports whether a flag was set, even to its default.
func IsSet(flags *Flags, name string) (set bool) {
	flags.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// DataFlag adds the flag -data, the path of the data file.
func DataFlag(flags *Flags) *string {
	return flags.String("data", "events.json", "use `FILE` as the data file")
}

// OneOf adds a flag whose value must be one of the words. The first one is the default.
func OneOf(flags *Flags, name, usage string, words ...string) *string {
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
