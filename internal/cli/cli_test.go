package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestExit(t *testing.T) {
	errDisk := errors.New("disk full")
	for _, tt := range []struct {
		name   string
		err    error
		status int
		stderr string
	}{
		{"success", nil, 0, ""},
		{"help", flag.ErrHelp, 0, ""},
		{"failure", errDisk, 1, "tool: disk full\n"},
		{"usage", Usagef("-o: %w", errDisk), 2, "tool: -o: disk full\n"},
		{"wrapped", fmt.Errorf("write: %w", Usagef("bad")), 2, "tool: write: bad\n"},
		{"status", &ExitError{Status: 3}, 3, ""},
		{"two errors", errors.Join(errDisk, errors.New("100%d")), 1, "tool: disk full; 100%d\n"},
		{"control characters", errors.New("a\x1b[2J\rb"), 1, "tool: a?[2J?b\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stderr bytes.Buffer
			p := &Program{Name: "tool", Stderr: &stderr}
			if got := p.exit(tt.err); got != tt.status {
				t.Errorf("exit(%v) = %d, want %d", tt.err, got, tt.status)
			}
			if got := stderr.String(); got != tt.stderr {
				t.Errorf("exit(%v) printed %q, want %q", tt.err, got, tt.stderr)
			}
		})
	}
}

func TestPrintable(t *testing.T) {
	for s, want := range map[string]string{
		"Zoë O'Łódź <日本> 🎉":     "Zoë O'Łódź <日本> 🎉",
		"a\tb\r\nc\x7f":         "a\tb?\nc?",
		"\x1b[2Jx\u009b1m":      "?[2Jx?1m",
		"\u202eadA\u200b\u2028": "?adA??",
		"\x9b1m":                "\ufffd1m",
	} {
		if got := Printable(s); got != want {
			t.Errorf("Printable(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestFlags(t *testing.T) {
	for _, tt := range []struct {
		name    string
		environ []string
		args    []string
		want    string // values of the flags, or the error
	}{
		{"defaults", nil, nil, "addr=:80 dry-run=false"},
		{"arguments", nil, []string{"-addr", ":1", "-dry-run"}, "addr=:1 dry-run=true"},
		{"environment", []string{"TOOL_ADDR=:2", "TOOL_DRY_RUN=1"}, nil, "addr=:2 dry-run=true"},
		{"the last variable counts", []string{"TOOL_ADDR=:2", "TOOL_ADDR=:3"}, nil, "addr=:3 dry-run=false"},
		{"empty variables", []string{"TOOL_ADDR=", "TOOL_DRY_RUN="}, nil, "addr=:80 dry-run=false"},
		{"both", []string{"TOOL_ADDR=:2", "TOOL_DRY_RUN=x"}, []string{"-addr=", "-dry-run=false"},
			"addr= dry-run=false"},
		{"bad variable", []string{"TOOL_DRY_RUN=x"}, nil, `invalid value "x" of TOOL_DRY_RUN: parse error`},
		{"bad value", nil, []string{"-dry-run=x"},
			`invalid boolean value "x" for -dry-run: parse error; see tool help run`},
		{"unknown flag", nil, []string{"-port", "80"},
			"flag provided but not defined: -port; see tool help run"},
		{"operand", nil, []string{"secret"}, "nothing may follow the flags of run; see tool help run"},
		{"operand after --", nil, []string{"--", "secret"},
			"nothing may follow the flags of run; see tool help run"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &Program{Name: "tool", Environ: tt.environ}
			f := p.NewFlags("run", "")
			addr := f.String("addr", ":80", "`HOST:PORT` to listen on")
			dryRun := f.Bool("dry-run", false, "change nothing")
			err := f.ParseEnv(tt.args)
			got := fmt.Sprintf("addr=%s dry-run=%v", *addr, *dryRun)
			if err != nil {
				got = err.Error()
				if status := errorStatus(err); status != 2 {
					t.Errorf("ParseEnv(%q): status %d, want 2", tt.args, status)
				}
			}
			if got != tt.want {
				t.Errorf("ParseEnv(%q) = %s, want %s", tt.args, got, tt.want)
			}
		})
	}
}

func errorStatus(err error) int {
	exit, ok := errors.AsType[*ExitError](err)
	if !ok {
		return 1
	}
	return exit.Status
}

// Without ParseEnv, only -data is read from the environment.
func TestDataFlag(t *testing.T) {
	p := &Program{Name: "tool", Environ: []string{"TOOL_DATA=other.json", "TOOL_USER=usr_1"}}
	f := p.NewFlags("dump", "")
	data := f.DataFlag()
	user := f.String("user", "", "`ID` of a user")
	if err := f.Parse(nil); err != nil {
		t.Fatal(err)
	}
	if *data != "other.json" {
		t.Errorf("-data = %q, want %q", *data, "other.json")
	}
	if *user != "" {
		t.Errorf("-user = %q, want none", *user)
	}
	if f.Given("user") {
		t.Error("-user is given, want not given")
	}
}

func TestFlagsHelp(t *testing.T) {
	const want = `Usage: tool key show [FLAGS] [ID]
  -addr HOST:PORT
    	HOST:PORT to listen on (default ":80")
`
	const env = "\nFlags that aren't given are read from the environment: -addr from TOOL_ADDR.\n"
	var stdout bytes.Buffer
	p := &Program{Name: "tool", Stdout: &stdout}
	f := p.NewFlags("key show", "[ID]")
	f.String("addr", ":80", "`HOST:PORT` to listen on")
	for _, tt := range []struct {
		parse func([]string) error
		want  string
	}{{f.Parse, want}, {f.ParseEnv, want + env}} {
		stdout.Reset()
		if err := tt.parse([]string{"-h"}); err != flag.ErrHelp {
			t.Errorf("Parse(-h) = %v, want %v", err, flag.ErrHelp)
		}
		if got := stdout.String(); got != tt.want {
			t.Errorf("Parse(-h) printed\n%s\nwant\n%s", got, tt.want)
		}
	}
}

func TestRun(t *testing.T) {
	const help = `A tool.

Usage: tool [SUBCOMMAND] [FLAGS]

  serve       serve
  key list    list the keys
  version     print the version
  help        explain tool or a subcommand

See tool help SUBCOMMAND for its flags.
`
	const unknown = ": it must be one of serve, key list, version, help; see tool help\n"
	for _, tt := range []struct {
		args   []string
		status int
		want   string // printed
	}{
		{nil, 0, "serve []"},
		{[]string{"-a", "b"}, 0, "serve [-a b]"},
		{[]string{"serve", "-a"}, 0, "serve [-a]"},
		{[]string{"key", "list", "a"}, 0, "key list [a]"},
		{[]string{"-version"}, 0, "version []"},
		{[]string{"--version"}, 0, "version []"},
		{[]string{"key"}, 2, `tool: unknown subcommand "key"` + unknown},
		{[]string{"key", "lost"}, 2, `tool: unknown subcommand "key"` + unknown},
		{[]string{"server"}, 2, `tool: unknown subcommand "server"` + unknown},
		{[]string{"help"}, 0, help},
		{[]string{"-h"}, 0, help},
		{[]string{"--help"}, 0, help},
		{[]string{"help", "help"}, 0, help},
		{[]string{"help", "key", "list"}, 0, "key list [-h]"},
		{[]string{"help", "me"}, 2, `tool: unknown subcommand "me"` + unknown},
	} {
		var out bytes.Buffer
		p := &Program{Name: "tool", About: "A tool.", Stdout: &out, Stderr: &out}
		var commands []Command
		add := func(name, summary string) {
			run := func(_ context.Context, args []string) error { return p.Printf("%s %s", name, args) }
			commands = append(commands, Command{name, summary, run})
		}
		add("serve", "serve")
		add("key list", "list the keys")
		add("version", "print the version")
		if got := p.Run(t.Context(), commands, tt.args); got != tt.status {
			t.Errorf("tool %q: status %d, want %d", tt.args, got, tt.status)
		}
		if got := out.String(); got != tt.want {
			t.Errorf("tool %q printed\n%s\nwant\n%s", tt.args, got, tt.want)
		}
	}
}

func TestProgress(t *testing.T) {
	for took, want := range map[time.Duration]string{
		900 * time.Millisecond:  "",
		2500 * time.Millisecond: "\r\x1b[Kapply: 1 s\r\x1b[Kapply: 2 s\r\x1b[K",
	} {
		synctest.Test(t, func(t *testing.T) {
			var stderr bytes.Buffer
			stop := showProgress(&stderr, "apply")
			time.Sleep(took)
			stop()
			if got := stderr.String(); got != want {
				t.Errorf("work of %v shows %q, want %q", took, got, want)
			}
		})
	}
}

// Without a terminal, progress isn't shown.
func TestProgressWithoutTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		p := &Program{Name: "tool", Stderr: &stderr}
		stop := p.Progress("apply")
		time.Sleep(3 * time.Second)
		stop()
		if got := stderr.String(); got != "" {
			t.Errorf("progress printed %q, want nothing", got)
		}
	})
}

func TestRunCommand(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script string
		status int
		stdout string
		stderr string
	}{
		{"streams and variables", "cat; echo $A $B; echo oops >&2", 0, "input\nold new\n", "oops\n"},
		{"status", "exit 3", 3, "", ""},
		{"signal", "kill -KILL $$", 128 + 9, "", ""},
		{"background process", "sleep 60 & echo done", 0, "done\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			p := &Program{
				Environ: []string{"PATH=/bin:/usr/bin", "A=old", "B=old"},
				Stdin:   strings.NewReader("input\n"),
				Stdout:  &stdout,
				Stderr:  &stderr,
			}
			status, err := p.RunCommand(t.Context(), shell(t, tt.script), []string{"B=new"})
			if err != nil {
				t.Fatal(err)
			}
			if status != tt.status {
				t.Errorf("status %d, want %d", status, tt.status)
			}
			if got := stdout.String(); got != tt.stdout {
				t.Errorf("stdout %q, want %q", got, tt.stdout)
			}
			if got := stderr.String(); got != tt.stderr {
				t.Errorf("stderr %q, want %q", got, tt.stderr)
			}
		})
	}
}

func TestRunCommandFails(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]int{"no-such-command": 127, dir + "/none": 127, dir: 126} {
		_, err := new(Program).RunCommand(t.Context(), []string{name, "argument"}, nil)
		if got := errorStatus(err); got != want {
			t.Errorf("RunCommand(%s) = %v with status %d, want %d", name, err, got, want)
		}
	}
}
