package main

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be the command: with EVENTSD_TEST_MAIN it runs main.
func TestMain(m *testing.M) {
	if os.Getenv("EVENTSD_TEST_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// The command has the arguments, the environment, the streams and the exit status of its process.
func TestMainFunction(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // without its seed, the server would run
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-memory", "-addr", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "EVENTSD_TEST_MAIN=1", "EVENTSD_SEED=-")
	cmd.Stdin = strings.NewReader("no records")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if got := cmd.ProcessState.ExitCode(); got != 1 {
		t.Errorf("status: got %d, %v, want 1", got, err)
	}
	if len(stdout) > 0 {
		t.Errorf("stdout: got %q, want nothing", stdout)
	}
	const want = "eventsd: EVENTSD_SEED: records: "
	if got := stderr.String(); !strings.HasPrefix(got, want) {
		t.Errorf("stderr: got %q, want %q", got, want)
	}
}
