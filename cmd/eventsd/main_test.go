package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain lets the test binary be the command: with EVENTSD_TEST_MAIN it runs main.
func TestMain(m *testing.M) {
	if os.Getenv("EVENTSD_TEST_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// The command has the arguments, the environment, the streams and the exit status of its process.
func TestCommand(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args           []string
		env, stdin     string
		status         int
		stdout, stderr string // each is a part
	}{
		{[]string{"version"}, "", "", 0, "eventsd ", ""},
		{[]string{"nonsense"}, "", "", 2, "", "nonsense"},
		{[]string{"-memory", "-addr", "127.0.0.1:0", "-seed", "-"}, "", "{", 1, "", "not a JSON array"},
		{[]string{"dump"}, "EVENTSD_DATA=/nowhere/e.json", "", 1, "", "/nowhere/e.json"},
	} {
		cmd := exec.Command(os.Args[0], tt.args...)
		cmd.Env = append(os.Environ(), "EVENTSD_TEST_MAIN=1", tt.env)
		cmd.Stdin = strings.NewReader(tt.stdin)
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != tt.status || !strings.Contains(stdout.String(), tt.stdout) ||
			!strings.Contains(stderr.String(), tt.stderr) {
			t.Errorf("eventsd %q = %d %q %q, want %d %q %q",
				tt.args, got, &stdout, &stderr, tt.status, tt.stdout, tt.stderr)
		}
	}
}
