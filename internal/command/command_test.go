package command_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"example.com/events/internal/command"
)

var errShow = errors.New("there is nothing to show")

// run runs a small program. It returns what a subcommand found itself called
// with, and what was printed.
func run(vars map[string]string, args ...string) (did, printed string, err error) {
	var stdout bytes.Buffer
	var addr string
	var dry bool
	p := &command.Program{Name: "tool", About: "tool is a tool.", Stdout: &stdout, Variables: vars}
	p.Flags.StringVar(&addr, "addr", "", "`HOST:PORT` to listen on")
	p.Flags.BoolVar(&dry, "dry-run", false, "change nothing")
	does := func(name string, err error) func() error {
		return func() error {
			did = fmt.Sprintf("%s addr=%s dry=%v args=%q given=%v", name, addr, dry, p.Args, p.Given)
			if p.Dashes {
				did += " --"
			}
			return err
		}
	}
	p.Commands = []command.Command{
		{Name: "serve", Summary: "serve", Run: does("serve", nil),
			Flags: "addr=:80 dry-run"},
		{Name: "key list", Summary: "list the keys", Run: does("list", nil),
			Flags: "addr=list:1"},
		{Name: "key show", Args: "ID", Summary: "show a key", Flags: "dry-run", Run: does("show", errShow)},
		{Name: "version", Summary: "print the version", Run: does("version", nil)},
	}
	p.Add("help", "[SUBCOMMAND]", "explain tool or a subcommand", "", p.Help)
	err = p.Run(args)
	return did, stdout.String(), err
}

func TestRun(t *testing.T) {
	t.Parallel()
	env := map[string]string{"TOOL_ADDR": "env:1", "TOOL_DRY_RUN": "true"}
	bad := map[string]string{"TOOL_DRY_RUN": "perhaps", "TOOL_ADDR": ""}
	const known = "; it must be one of serve, key list, key show, version, help; see tool help"
	const nothing = "there is nothing to show"
	for _, tt := range []struct {
		vars map[string]string
		args []string
		did  string
		err  string
	}{
		{nil, nil, `serve addr=:80 dry=false args=[] given=map[]`, ""},
		{nil, []string{"-dry-run", "-addr", ":1"},
			`serve addr=:1 dry=true args=[] given=map[addr:true dry-run:true]`, ""},
		{nil, []string{"serve", "--addr=:1", "--"},
			`serve addr=:1 dry=false args=[] given=map[addr:true] --`, ""},
		{nil, []string{"key", "list"}, `list addr=list:1 dry=false args=[] given=map[]`, ""},
		{nil, []string{"key", "show"}, `show addr= dry=false args=[] given=map[]`, nothing},
		{nil, []string{"key", "show", "-dry-run=false", "a", "-b"},
			`show addr= dry=false args=["a" "-b"] given=map[dry-run:true]`, nothing},
		{nil, []string{"key", "show", "-dry-run", "--", "-b", "--"},
			`show addr= dry=true args=["-b" "--"] given=map[dry-run:true] --`, nothing},
		{nil, []string{"-version"}, `version addr= dry=false args=[] given=map[]`, ""},
		{nil, []string{"--version"}, `version addr= dry=false args=[] given=map[]`, ""},

		{env, nil, `serve addr=env:1 dry=true args=[] given=map[]`, ""},
		{env, []string{"-addr", ":1"}, `serve addr=:1 dry=true args=[] given=map[addr:true]`, ""},
		{env, []string{"-dry-run=false"}, `serve addr=env:1 dry=false args=[] given=map[dry-run:true]`, ""},
		{env, []string{"key", "list"}, `list addr=env:1 dry=false args=[] given=map[]`, ""},
		{env, []string{"key", "show", "a"}, `show addr= dry=true args=["a"] given=map[]`, nothing},
		{bad, []string{"-dry-run"}, `serve addr=:80 dry=true args=[] given=map[dry-run:true]`, ""},
		{bad, []string{"key", "list"}, `list addr=list:1 dry=false args=[] given=map[]`, ""},
		{bad, nil, "", `invalid value "perhaps" of TOOL_DRY_RUN; it must be true or false`},

		{nil, []string{"server"}, "", `unknown subcommand "server"` + known},
		{nil, []string{"key"}, "", `unknown subcommand "key"; it must be one of key list, key show; see tool help`},
		{nil, []string{"key", "lost", "a"}, "", `unknown subcommand "key lost"; it must be one of key list, key show; see tool help`},
		{nil, []string{"bogus", "-h"}, "", `unknown subcommand "bogus"` + known},
		{nil, []string{""}, "", `unknown subcommand ""` + known},
		{nil, []string{"-dry-run", "secret", "b"}, "",
			`nothing may follow the flags of serve; see tool help serve`},
		{nil, []string{"key", "list", "a"}, "",
			`nothing may follow the flags of key list; see tool help key list`},
		{nil, []string{"-port", "80"}, "", `flag provided but not defined: -port; see tool help serve`},
		{nil, []string{"key", "list", "-dry-run"}, "",
			`flag provided but not defined: -dry-run; see tool help key list`},
		{nil, []string{"-addr"}, "", `flag needs an argument: -addr; see tool help serve`},
		{nil, []string{"-dry-run=maybe"}, "",
			`invalid boolean value "maybe" for -dry-run: it must be true or false; see tool help serve`},
		{nil, []string{"help", "me"}, "", `unknown subcommand "me"` + known},
	} {
		did, printed, err := run(tt.vars, tt.args...)
		same := did == tt.did && printed == "" && fmt.Sprint(err) == cmp.Or(tt.err, "<nil>")
		if !same || (tt.err == nothing) != errors.Is(err, errShow) {
			t.Errorf("%v tool %q did %q and printed %q: %v; want %q: %s",
				tt.vars, tt.args, did, printed, err, tt.did, tt.err)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	const program = `tool is a tool.

Usage: tool [SUBCOMMAND] [FLAGS]

  serve        serve
  key list     list the keys
  key show     show a key
  version      print the version
  help         explain tool or a subcommand

See tool help SUBCOMMAND for its flags.
`
	const environment = `
A flag that is not given is read from its variable in the environment, if it
has one: -data from TOOL_DATA and so on.
`
	const serve = `tool serve: serve

Usage: tool serve [FLAGS]
  -addr HOST:PORT
    	HOST:PORT to listen on (default ":80")
  -dry-run
    	change nothing
` + environment
	const list = `tool key list: list the keys

Usage: tool key list [FLAGS]
  -addr HOST:PORT
    	HOST:PORT to listen on (default "list:1")
` + environment
	bad := map[string]string{"TOOL_DRY_RUN": "perhaps"} // help is for who has made a mistake
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"help"}, program},
		{[]string{"-h"}, program},
		{[]string{"-help"}, program},
		{[]string{"--help", "me"}, program},
		{[]string{"help", "serve"}, serve},
		{[]string{"serve", "-h"}, serve},
		{[]string{"help", "key", "list"}, list},
		{[]string{"key", "list", "-addr", ":1", "-help"}, list},
		{[]string{"key", "show", "-h"}, "tool key show: show a key\n\nUsage: tool key show [FLAGS] ID\n" +
			"  -dry-run\n    	change nothing\n" + environment},
		{[]string{"help", "help"},
			"tool help: explain tool or a subcommand\n\nUsage: tool help [FLAGS] [SUBCOMMAND]\n" +
				environment},
	} {
		did, printed, err := run(bad, tt.args...)
		if did != "" || printed != tt.want || err != nil {
			t.Errorf("tool %q did %q and printed\n%s%v, want\n%s", tt.args, did, printed, err, tt.want)
		}
	}
}

// A variable with _FILE names a file whose first line is the value of the flag.
func TestVariableFiles(t *testing.T) {
	t.Parallel()
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "addr")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	short, long, empty := file("file:1"), file("file:1\nmore\n"), file("\n")
	const value = `serve addr=file:1 dry=false args=[] given=map[]`
	for _, tt := range []struct {
		vars map[string]string
		args []string
		did  string
		err  string
	}{
		{map[string]string{"TOOL_ADDR_FILE": short}, nil, value, ""},
		{map[string]string{"TOOL_ADDR_FILE": long}, nil, value, ""},
		{map[string]string{"TOOL_ADDR_FILE": long}, []string{"-addr", ":1"},
			`serve addr=:1 dry=false args=[] given=map[addr:true]`, ""}, // the flag wins
		{map[string]string{"TOOL_ADDR_FILE": long, "TOOL_ADDR": "env:1"}, nil, "",
			"TOOL_ADDR and TOOL_ADDR_FILE exclude each other; unset one of them"},
		{map[string]string{"TOOL_ADDR_FILE": "none"}, nil, "",
			"TOOL_ADDR_FILE: open none: no such file or directory"},
		{map[string]string{"TOOL_ADDR_FILE": empty}, nil, "",
			"TOOL_ADDR_FILE: the first line of " + empty + " is empty; it must be the value"},
	} {
		did, _, err := run(tt.vars, tt.args...)
		if did != tt.did || fmt.Sprint(err) != cmp.Or(tt.err, "<nil>") {
			t.Errorf("%v tool %q did %q: %v; want %q: %s", tt.vars, tt.args, did, err, tt.did, tt.err)
		}
	}
}
