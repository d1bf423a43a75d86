package command_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"example.com/events/internal/answer"
	"example.com/events/internal/command"
)

func TestExit(t *testing.T) {
	t.Parallel()
	disk := errors.New("the disk is full")
	for _, tt := range []struct {
		err    error
		status int
		stderr string
	}{
		{nil, 0, ""},
		{disk, 1, "tool: the disk is full\n"},
		{command.Usagef("%w", disk), 2, "tool: the disk is full\n"},
		{command.Status(3), 3, ""},
		{fmt.Errorf("write: %w", command.Usagef("%w", disk)), 2, "tool: write: the disk is full\n"},
		{errors.Join(disk, errors.New("a svc_live_secret12345678 \x1b[2J")), 1,
			"tool: the disk is full; a …5678 ?[2J\n"},
	} {
		var stderr bytes.Buffer
		p := newProgram(&stderr)
		if status := p.Exit(tt.err); status != tt.status || stderr.String() != tt.stderr {
			t.Errorf("Exit(%v) = %d and printed %q, want %d and %q",
				tt.err, status, &stderr, tt.status, tt.stderr)
		}
	}
}

// What a stranger named is a value of the line, not its format, and makes no second line.
func TestNotice(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	p := newProgram(&stderr)
	p.Notice("issued %s of %s", "key_1", "100%d %!s(MISSING)\x1b[2J\r\ntool: revoked")
	p.Exit(errors.New("100%d"))
	const want = "tool: issued key_1 of 100%d %!s(MISSING)?[2J?; tool: revoked\ntool: 100%d\n"
	if stderr.String() != want {
		t.Errorf("printed %q, want %q", &stderr, want)
	}
}

func newProgram(stderr *bytes.Buffer) *command.Program {
	return &command.Program{Name: "tool", Stderr: stderr, Redact: answer.Redact}
}

// Neither a secret nor a character that steers a terminal gets into the log, and
// no value can make a line look like two.
func TestLogger(t *testing.T) {
	t.Parallel()
	const bad = "a svc_live_secret12345678\n\x1b[2J\u009b1m\u202e\" level=ERROR"
	for _, format := range []string{"text", "json"} {
		var stderr bytes.Buffer
		logger, err := newProgram(&stderr).Logger(format, false)
		if err != nil {
			t.Fatal(err)
		}
		logger.Debug("not this")
		logger.Info(bad, "value", bad, "error", errors.New(bad), "number", 1)
		got := stderr.String()
		if strings.Count(got, "\n") != 1 || strings.ContainsAny(got, "\x1b\u009b\u202e") ||
			strings.Contains(got, "secret") || strings.Count(got, "a …5678") != 3 ||
			strings.Contains(got, "not this") {
			t.Errorf("%s: logged %q", format, got)
		}
		if format == "json" && !json.Valid(stderr.Bytes()) {
			t.Errorf("%q is not JSON", got)
		}
		logger, _ = newProgram(&stderr).Logger(format, true)
		if logger.Debug("this"); !strings.Contains(stderr.String(), "this") {
			t.Errorf("%s: no debug line where it is verbose", format)
		}
	}
	_, err := newProgram(nil).Logger("xml", false)
	if err == nil || err.Error() != `-log must be text or json, not "xml"` {
		t.Errorf("Logger(xml) = %v", err)
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"Zoë O'Łódź <日本> 🎉":     "Zoë O'Łódź <日本> 🎉",
		"a\tb\r\nc\x7f":         "a\tb?\nc?",
		"\x1b[2Jx\u009b1m":      "?[2Jx?1m",
		"\u202eadA\u200b\u2028": "?adA??",
		"\x9b1m":                "\ufffd1m",
	} {
		if got := command.Printable(s); got != want {
			t.Errorf("Printable(%q) = %q, want %q", s, got, want)
		}
	}
}
