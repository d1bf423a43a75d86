package command_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
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
	p := &command.Program{Name: "tool", About: "tool is a tool.", Stdout: &stdout}
	p.Flags = map[string]command.Flag{
		"addr":    command.String(&addr, ":80", "`HOST:PORT` to listen on"),
		"dry-run": command.Bool(&dry, false, "change nothing"),
	}
	does := func(name string, err error) func() error {
		return func() error {
			did = fmt.Sprintf("%s addr=%s dry=%v args=%q given=%v", name, addr, dry, p.Args, p.Given)
			return err
		}
	}
	p.Commands = []command.Command{
		{Name: "serve", Summary: "serve", Flags: []string{"addr", "dry-run"}, Run: does("serve", nil)},
		{Name: "key list", Summary: "list the keys", Flags: []string{"addr=list:1"}, Run: does("list", nil)},
		{Name: "key show", Args: "ID", Summary: "show a key", Flags: []string{"dry-run"}, Run: does("show", errShow)},
	}
	err = p.Run(args, func(name string) string { return vars[name] })
	return did, stdout.String(), err
}

func TestRun(t *testing.T) {
	t.Parallel()
	env := map[string]string{"TOOL_ADDR": "env:1", "TOOL_DRY_RUN": "true"}
	bad := map[string]string{"TOOL_DRY_RUN": "perhaps", "TOOL_ADDR": ""}
	const nothing = "there is nothing to show"
	for _, tt := range []struct {
		vars map[string]string
		args []string
		did  string
		err  string
	}{
		{nil, nil, `serve addr=:80 dry=false args=[] given=map[]`, ""},
		{nil, []string{"-dry-run", "-addr", ":1"}, `serve addr=:1 dry=true args=[] given=map[addr:true dry-run:true]`, ""},
		{nil, []string{"serve", "--addr=:1", "--"}, `serve addr=:1 dry=false args=[] given=map[addr:true]`, ""},
		{nil, []string{"key", "list"}, `list addr=list:1 dry=false args=[] given=map[]`, ""},
		{nil, []string{"key", "show"}, `show addr= dry=false args=[] given=map[]`, nothing},
		{nil, []string{"key", "show", "-dry-run=false", "a", "-b"}, `show addr= dry=false args=["a" "-b"] given=map[dry-run:true]`, nothing},

		{env, nil, `serve addr=env:1 dry=true args=[] given=map[]`, ""},
		{env, []string{"-addr", ":1"}, `serve addr=:1 dry=true args=[] given=map[addr:true]`, ""},
		{env, []string{"-dry-run=false"}, `serve addr=env:1 dry=false args=[] given=map[dry-run:true]`, ""},
		{env, []string{"key", "list"}, `list addr=env:1 dry=false args=[] given=map[]`, ""},
		{env, []string{"key", "show", "a"}, `show addr= dry=true args=["a"] given=map[]`, nothing},
		{bad, []string{"-dry-run"}, `serve addr=:80 dry=true args=[] given=map[dry-run:true]`, ""},
		{bad, []string{"key", "list"}, `list addr=list:1 dry=false args=[] given=map[]`, ""},
		{bad, nil, "", `invalid value "perhaps" of TOOL_DRY_RUN; it must be true or false`},

		{nil, []string{"server"}, "", `unknown subcommand "server"; see tool help`},
		{nil, []string{"key"}, "", `unknown subcommand "key"; there is key list, key show; see tool help`},
		{nil, []string{"bogus", "-h"}, "", `unknown subcommand "bogus"; see tool help`},
		{nil, []string{"key", "lost", "a"}, "", `unknown subcommand "key lost"; there is key list, key show; see tool help`},
		{nil, []string{""}, "", `unknown subcommand ""; see tool help`},
		{nil, []string{"-dry-run", "a", "b"}, "", `unexpected argument "a"; see tool help serve`},
		{nil, []string{"key", "list", "a"}, "", `unexpected argument "a"; see tool help key list`},
		{nil, []string{"-port", "80"}, "", `flag provided but not defined: -port; see tool help serve`},
		{nil, []string{"key", "list", "-dry-run"}, "", `flag provided but not defined: -dry-run; see tool help key list`},
		{nil, []string{"-addr"}, "", `flag needs an argument: -addr; see tool help serve`},
		{nil, []string{"-dry-run=maybe"}, "", `invalid boolean value "maybe" for -dry-run: parse error; see tool help serve`},
		{nil, []string{"help", "me"}, "", `unknown subcommand "me"; see tool help`},
		{nil, []string{"help", "ke"}, "", `unknown subcommand "ke"; there is key list, key show; see tool help`},
		{nil, []string{"-dry-run", "key", "list"}, "", `unexpected argument "key"; a subcommand comes before its flags; see tool help serve`},
	} {
		did, printed, err := run(tt.vars, tt.args...)
		if did != tt.did || printed != "" || fmt.Sprint(err) != cmp.Or(tt.err, "<nil>") || (tt.err == nothing) != errors.Is(err, errShow) {
			t.Errorf("%v tool %q did %q and printed %q: %v; want %q: %s", tt.vars, tt.args, did, printed, err, tt.did, tt.err)
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
  help         explain tool or a subcommand

See tool help SUBCOMMAND for its flags. Each flag can also be set in the
environment, -data as TOOL_DATA and so on; the flag wins.
`
	keys := strings.NewReplacer("  serve        serve\n", "", "  help         explain tool or a subcommand\n", "").Replace(program)
	const serve = `tool serve: serve

Usage: tool serve [FLAGS]
  -addr HOST:PORT          HOST:PORT to listen on (default :80); TOOL_ADDR
  -dry-run                 change nothing; TOOL_DRY_RUN
`
	const list = `tool key list: list the keys

Usage: tool key list [FLAGS]
  -addr HOST:PORT          HOST:PORT to listen on (default list:1); TOOL_ADDR
`
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
		{[]string{"key", "show", "-h"}, "tool key show: show a key\n\nUsage: tool key show [FLAGS] ID\n  -dry-run                 change nothing; TOOL_DRY_RUN\n"},
		{[]string{"help", "key"}, keys},
		{[]string{"key", "-h"}, keys},
		{[]string{"help", "help"}, "tool help: explain tool or a subcommand\n\nUsage: tool help [FLAGS] [SUBCOMMAND]\n"},
	} {
		did, printed, err := run(bad, tt.args...)
		if did != "" || printed != tt.want || err != nil {
			t.Errorf("tool %q did %q and printed\n%s%v, want\n%s", tt.args, did, printed, err, tt.want)
		}
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"Zoë O'Łódź <日本> 🎉":     "Zoë O'Łódź <日本> 🎉",
		"a\tb\r\nc\x7f":         "a?b??c?",
		"\x1b[2Jx\u009b1m":      "?[2Jx?1m",
		"\u202eadA\u200b\u2028": "?adA??",
	} {
		if got := command.Printable(s); got != want {
			t.Errorf("Printable(%q) = %q, want %q", s, got, want)
		}
	}
}

// TestProgress: what is no terminal is not told how far a work is.
func TestProgress(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var buffer bytes.Buffer
	for _, w := range []io.Writer{&buffer, file} {
		tell := command.Progress(w, "reading")
		tell(1, 2)
		tell(2, 2)
	}
	if b, err := os.ReadFile(file.Name()); buffer.Len() > 0 || len(b) > 0 || err != nil {
		t.Errorf("told a buffer %q, a file %q, %v", &buffer, b, err)
	}
}
