package cli

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
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
		{"failure", errDisk, 1, "eventsd: disk full\n"},
		{"usage", Usagef("-o: %v", errDisk), 2, "eventsd: -o: disk full\n"},
		{"wrapped", fmt.Errorf("write: %w", Usagef("bad")), 2, "eventsd: write: bad\n"},
		{"status", &ExitError{Status: 3}, 3, ""},
		{"two errors", errors.Join(errDisk, errors.New("100%d")), 1, "eventsd: disk full; 100%d\n"},
		{"control characters", errors.New("a\x1b[2J\rb"), 1, "eventsd: a?[2J?b\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stderr bytes.Buffer
			p := &Program{Stderr: &stderr}
			if got := p.ExitStatus(tt.err); got != tt.status {
				t.Errorf("ExitStatus(%v): got %d, want %d", tt.err, got, tt.status)
			}
			if got := stderr.String(); got != tt.stderr {
				t.Errorf("ExitStatus(%v): stderr: got %q, want %q", tt.err, got, tt.stderr)
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
			t.Errorf("Printable(%q): got %q, want %q", s, got, want)
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
		{"environment", []string{"EVENTSD_ADDR=:2", "EVENTSD_DRY_RUN=1"}, nil, "addr=:2 dry-run=true"},
		{"the last variable counts", []string{"EVENTSD_ADDR=:2", "EVENTSD_ADDR=:3"}, nil,
			"addr=:3 dry-run=false"},
		{"empty variables", []string{"EVENTSD_ADDR=", "EVENTSD_DRY_RUN="}, nil, "addr=:80 dry-run=false"},
		{"both", []string{"EVENTSD_ADDR=:2", "EVENTSD_DRY_RUN=x"}, []string{"-addr=:1", "-dry-run=false"},
			"addr=:1 dry-run=false"},
		{"empty value", []string{"EVENTSD_ADDR=:2"}, []string{"-addr="},
			"-addr is empty: give it a value, or leave it out"},
		{"bad variable", []string{"EVENTSD_DRY_RUN=x"}, nil,
			`invalid value "x" of EVENTSD_DRY_RUN: parse error`},
		{"bad value", nil, []string{"-dry-run=x"},
			`invalid boolean value "x" for -dry-run: parse error; see eventsd help run`},
		{"unknown flag", nil, []string{"-port", "80"},
			"flag provided but not defined: -port; see eventsd help run"},
		{"operand", nil, []string{"secret"}, "run takes no arguments after its flags; see eventsd help run"},
		{"operand after --", nil, []string{"--", "secret"},
			"run takes no arguments after its flags; see eventsd help run"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &Program{Environ: tt.environ}
			flags := NewFlags("run", Help{})
			addr := flags.String("addr", ":80", "`HOST:PORT` to listen on")
			dryRun := flags.Bool("dry-run", false, "change nothing")
			err := p.ParseEnv(flags, tt.args)
			got := fmt.Sprintf("addr=%s dry-run=%v", *addr, *dryRun)
			if err != nil {
				got = err.Error()
				if status := errorStatus(err); status != 2 {
					t.Errorf("ParseEnv(%q): status: got %d, want 2", tt.args, status)
				}
			}
			if got != tt.want {
				t.Errorf("ParseEnv(%q): got %s, want %s", tt.args, got, tt.want)
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

func TestOneOf(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string // the value, or the error
	}{
		{"default", nil, "text"},
		{"another word", []string{"-log", "json"}, "json"},
		{"no word", []string{"-log", "xml"},
			`invalid value "xml" for flag -log: must be text or json; see eventsd help run`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			flags := NewFlags("run", Help{})
			log := OneOf(flags, "log", "`FORMAT`", "text", "json")
			err := new(Program).Parse(flags, tt.args)
			got := *log
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("Parse(%q): got %s, want %s", tt.args, got, tt.want)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	const help = `Usage: eventsd key show [FLAGS] [ID]

Show a key.

  -addr HOST:PORT   listen on HOST:PORT (default :80)
  -data FILE        use FILE as the data file (default events.json)
  -v                log every request

Variables for missing flags:
  VARIABLES

Example: show one
  eventsd key show key_1
`
	var stdout bytes.Buffer
	p := &Program{Stdout: &stdout}
	for _, tt := range []struct {
		name  string
		parse func(*Flags, []string) error
		want  string
	}{
		{"Parse", p.Parse, "EVENTSD_DATA"},
		{"ParseEnv", func(flags *Flags, args []string) error { return p.ParseEnv(flags, args) },
			"EVENTSD_ADDR, EVENTSD_DATA, EVENTSD_V"},
		{"ParseEnv of two", func(flags *Flags, args []string) error {
			return p.ParseEnv(flags, args, "addr", "v")
		}, "EVENTSD_ADDR, EVENTSD_V"},
	} {
		stdout.Reset()
		flags := NewFlags("key show", Help{
			Purpose: "Show a key.", Operands: "[ID]", Example: "show one\n  eventsd key show key_1",
		})
		flags.String("addr", ":80", "listen on `HOST:PORT`")
		flags.Bool("v", false, "log every request")
		DataFlag(flags)
		if err := tt.parse(flags, []string{"-h"}); err != flag.ErrHelp {
			t.Errorf("%s(-h): got %v, want %v", tt.name, err, flag.ErrHelp)
		}
		if got, want := stdout.String(), strings.Replace(help, "VARIABLES", tt.want, 1); got != want {
			t.Errorf("%s(-h): stdout: got\n%s\nwant\n%s", tt.name, got, want)
		}
	}
}

func TestProgress(t *testing.T) {
	for took, want := range map[time.Duration]string{
		900 * time.Millisecond:  "",
		1500 * time.Millisecond: "\r\x1b[Kapply: 1 s\r\x1b[K",
		2500 * time.Millisecond: "\r\x1b[Kapply: 1 s\r\x1b[Kapply: 2 s\r\x1b[K",
	} {
		synctest.Test(t, func(t *testing.T) {
			var stderr bytes.Buffer
			stop := showProgress(&stderr, "apply")
			time.Sleep(took)
			stop()
			if got := stderr.String(); got != want {
				t.Errorf("stderr of work of %v: got %q, want %q", took, got, want)
			}
		})
	}
}

// Without a terminal, progress isn't shown.
func TestProgressWithoutTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stderr bytes.Buffer
		p := &Program{Stderr: &stderr}
		stop := p.Progress("apply")
		time.Sleep(3 * time.Second)
		stop()
		if got := stderr.String(); got != "" {
			t.Errorf("stderr: got %q, want nothing", got)
		}
	})
}

func TestIsTerminal(t *testing.T) {
	open := func(path string) *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Skip(err) // Windows has no /dev/zero
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	closed := open(os.DevNull)
	closed.Close()
	for _, tt := range []struct {
		name   string
		stream any
		want   bool
	}{
		{"buffer", &bytes.Buffer{}, false},
		{"file", open(filepath.Join(t.TempDir(), "file")), false},
		{"closed file", closed, false},
		{"null device", open(os.DevNull), false},
		{"character device", open("/dev/zero"), true},
	} {
		if got := isTerminal(tt.stream); got != tt.want {
			t.Errorf("isTerminal(%s): got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestRunCommand(t *testing.T) {
	for _, tt := range []struct {
		name, script   string
		status         int
		stdout, stderr string
	}{
		{name: "streams and variables", script: "cat; echo $A $B; echo oops >&2",
			stdout: "input\nold new\n", stderr: "oops\n"},
		{name: "status", script: "exit 3", status: 3},
		{name: "signal", script: "kill -KILL $$", status: 128 + 9},
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
				t.Errorf("status: got %d, want %d", status, tt.status)
			}
			if got := stdout.String(); got != tt.stdout {
				t.Errorf("stdout: got %q, want %q", got, tt.stdout)
			}
			if got := stderr.String(); got != tt.stderr {
				t.Errorf("stderr: got %q, want %q", got, tt.stderr)
			}
		})
	}
}

// RunCommand doesn't wait for a process that the command left running.
func TestRunCommandWithOrphan(t *testing.T) {
	t.Parallel()
	var stdout bytes.Buffer
	p := &Program{Environ: []string{"PATH=/bin:/usr/bin"}, Stdout: &stdout}
	start := time.Now()
	_, err := p.RunCommand(t.Context(), shell(t, "sleep 60 & echo $!"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("time of a command that left a process running: got %v, want less", took)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(stdout.String()))
	if err != nil {
		t.Fatal(err)
	}
	orphan, err := os.FindProcess(pid)
	if err == nil {
		err = orphan.Kill()
	}
	if err != nil {
		t.Errorf("the process that the command left: got %v, want it running", err)
	}
}

// A terminal sends Ctrl-C to the command as well, so only other signals are passed on.
func TestRunCommandTerminal(t *testing.T) {
	args := shell(t, `trap 'echo interrupt' INT; trap 'echo terminate; exit' TERM
		echo ready; while :; do sleep 0.01; done`)
	terminal, err := os.Open("/dev/zero") // a character device is taken for one
	if err != nil {
		t.Skip(err)
	}
	defer terminal.Close()
	stdout, w := io.Pipe()
	lines := bufio.NewReader(stdout)
	p := &Program{Environ: []string{"PATH=/bin:/usr/bin"}, Stdin: terminal, Stdout: w}
	go func() {
		_, err := p.RunCommand(t.Context(), args, nil)
		w.CloseWithError(err)
	}()
	if got, err := lines.ReadString('\n'); got != "ready\n" {
		t.Fatalf("stdout: got %q, %v, want ready", got, err)
	}
	signalSelf(t, os.Interrupt)
	signalSelf(t, syscall.SIGTERM)
	if got, err := io.ReadAll(lines); string(got) != "terminate\n" {
		t.Errorf("signals of the command: got %q, %v, want terminate only", got, err)
	}
}

func signalSelf(t *testing.T, s os.Signal) {
	t.Helper()
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(s)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// When RunCommand has returned, it gets no more signals.
func TestRunCommandStopsSignals(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	_, err := new(Program).RunCommand(t.Context(), shell(t, "exit"), nil)
	if err != nil {
		t.Fatal(err)
	}
	signalSelf(t, syscall.SIGTERM)
	<-signals
	signal.Stop(signals) // waits until others have got the signal
}

func TestRunCommandFails(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]int{"no-such-command": 127, dir + "/none": 127, dir: 126} {
		_, err := new(Program).RunCommand(t.Context(), []string{name, "argument"}, nil)
		if got := errorStatus(err); got != want {
			t.Errorf("RunCommand(%s): got %v with status %d, want %d", name, err, got, want)
		}
	}
}
