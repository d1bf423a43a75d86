package command_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"testing"

	"example.com/events/internal/command"
)

var errShow = errors.New("there is nothing to show")

// run runs a small program. It returns what a subcommand found itself called
// with, and what was printed.
func run(vars map[string]string, args ...string) (did, printed string, err error) {
	var stdout bytes.Buffer
	p := &command.Program{Name: "tool", About: "tool is a tool.", Stdout: &stdout}
	for name, value := range vars {
		p.Environ = append(p.Environ, name+"="+value)
	}
	// does is what a subcommand does: it notes its flags.
	does := func(flags *command.Flags, err error, format string, values ...any) error {
		did = fmt.Sprintf(format, values...)
		if len(flags.Args) > 0 || flags.Dashes {
			did += fmt.Sprintf(" args=%q dashes=%v", flags.Args, flags.Dashes)
		}
		for _, name := range []string{"addr", "dry-run", "token"} {
			if flags.Given(name) {
				did += " -" + name
			}
		}
		return err
	}
	p.Add("serve", "", "serve", func(flags *command.Flags) func() error {
		var addr, token string
		var dry bool
		flags.String(&addr, "addr", ":80", "`HOST:PORT` to listen on")
		flags.String(&token, "token", "", "`TOKEN` of the caller")
		flags.Bool(&dry, "dry-run", false, "change nothing")
		return func() error { return does(flags, nil, "serve addr=%s dry=%v token=%s", addr, dry, token) }
	})
	p.Add("key list", "", "list the keys", func(flags *command.Flags) func() error {
		var addr string
		flags.String(&addr, "addr", "list:1", "`HOST:PORT` to listen on")
		return func() error { return does(flags, nil, "list addr=%s", addr) }
	})
	p.Add("key show", "ID", "show a key", func(flags *command.Flags) func() error {
		var force, dry bool
		flags.Bool(&force, "force", false, "show it all")
		flags.NoVariable("force")
		flags.Bool(&dry, "dry-run", false, "change nothing")
		return func() error { return does(flags, errShow, "show force=%v dry=%v", force, dry) }
	})
	p.Add("version", "", "print the version", func(flags *command.Flags) func() error {
		return func() error { return does(flags, nil, "version") }
	})
	p.AddHelp()
	err = p.Run(args)
	return did, stdout.String(), err
}

func TestRun(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"TOOL_ADDR": "env:1", "TOOL_DRY_RUN": "true", "TOOL_FORCE": "true", "TOOL_TOKEN": "",
	}
	bad := map[string]string{"TOOL_DRY_RUN": "perhaps", "TOOL_ADDR": ""}
	const known = "; it must be one of serve, key list, key show, version, help; see tool help"
	const nothing = "there is nothing to show"
	for _, tt := range []struct {
		vars map[string]string
		args []string
		did  string
		err  string
	}{
		{nil, nil, `serve addr=:80 dry=false token=`, ""},
		{nil, []string{"-dry-run", "-addr", ":1"}, `serve addr=:1 dry=true token= -addr -dry-run`, ""},
		{nil, []string{"serve", "--addr=:1"}, `serve addr=:1 dry=false token= -addr`, ""},
		{nil, []string{"serve", "--"}, "", "nothing may follow the flags of serve; see tool help serve"},
		{nil, []string{"key", "list"}, `list addr=list:1`, ""},
		{nil, []string{"key", "show"}, `show force=false dry=false`, nothing},
		{nil, []string{"key", "show", "-force=false", "a", "-b"},
			`show force=false dry=false args=["a" "-b"] dashes=false`, nothing},
		{nil, []string{"key", "show", "-force", "--", "-b", "--"},
			`show force=true dry=false args=["-b" "--"] dashes=true`, nothing},
		{nil, []string{"-version"}, `version`, ""},
		{nil, []string{"--version"}, `version`, ""},

		{env, nil, `serve addr=env:1 dry=true token=`, ""},
		{env, []string{"-addr", ":1"}, `serve addr=:1 dry=true token= -addr`, ""},
		{env, []string{"-dry-run=false"}, `serve addr=env:1 dry=false token= -dry-run`, ""},
		{env, []string{"key", "list"}, `list addr=env:1`, ""},
		{env, []string{"key", "show", "a"},
			`show force=false dry=true args=["a"] dashes=false`, nothing},
		{bad, []string{"-dry-run"}, `serve addr=:80 dry=true token= -dry-run`, ""},
		{bad, []string{"key", "list"}, `list addr=list:1`, ""},
		{bad, nil, "", `invalid value "perhaps" of TOOL_DRY_RUN: it must be true or false; see tool help serve`},

		{nil, []string{"server"}, "", `unknown subcommand "server"` + known},
		{nil, []string{"key"}, "", `unknown subcommand "key"; it must be one of key list, key show; see tool help`},
		{nil, []string{"key", "lost", "a"}, "",
			`unknown subcommand "key lost"; it must be one of key list, key show; see tool help`},
		{nil, []string{"bogus", "-h"}, "", `unknown subcommand "bogus"` + known},
		{nil, []string{""}, "", `unknown subcommand ""` + known},
		{nil, []string{"-dry-run", "secret", "b"}, "",
			`nothing may follow the flags of serve; see tool help serve`},
		{nil, []string{"key", "list", "a"}, "", `nothing may follow the flags of key list; see tool help key list`},
		{nil, []string{"-port", "80"}, "", `flag provided but not defined: -port; see tool help serve`},
		{nil, []string{"key", "list", "-dry-run"}, "",
			`flag provided but not defined: -dry-run; see tool help key list`},
		{nil, []string{"-addr"}, "", `flag needs an argument: -addr; see tool help serve`},
		{nil, []string{"key", "list", "-addr", "--", "x"}, "",
			`flag needs an argument: -addr; see tool help key list`},
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

func TestQuote(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"/a/b-c_d.json":      "/a/b-c_d.json",
		"http://h:1/?a=b%20": "'http://h:1/?a=b%20'",
		"":                   "''",
		"a b":                "'a b'",
		"it's":               `'it'\''s'`,
		"$HOME":              "'$HOME'",
		"ünïcode":            "'ünïcode'",
	} {
		if got := command.Quote(word); got != want {
			t.Errorf("Quote(%q) = %s, want %s", word, got, want)
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
  -token TOKEN
    	TOKEN of the caller
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
			"  -dry-run\n    	change nothing\n  -force\n    	show it all\n" + environment},
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
