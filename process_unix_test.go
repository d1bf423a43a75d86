//go:build darwin || linux

package events_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/events"
)

// TestMain lets the test binary be the command: with EVENTS_TEST_COMMAND its
// arguments are those of eventsd, and EVENTS_TEST_FSIZE is the most bytes that a
// file of it may have, which stands in for a full disk.
func TestMain(m *testing.M) {
	if os.Getenv("EVENTS_TEST_COMMAND") == "" {
		os.Exit(m.Run())
	}
	if limit, err := strconv.ParseUint(os.Getenv("EVENTS_TEST_FSIZE"), 10, 64); err == nil {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			panic(err)
		}
	}
	os.Exit(events.Run(context.Background(), os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}

// spawn runs the command as a process of its own.
func spawn(t testing.TB, limit int64, args ...string) (*exec.Cmd, map[string]string, *lockedBuffer) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "EVENTS_TEST_COMMAND=1")
	if limit > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprint("EVENTS_TEST_FSIZE=", limit))
	}
	stderr := &lockedBuffer{}
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := map[string]string{}
	for sc := bufio.NewScanner(stdout); sc.Scan(); {
		name, value, _ := strings.Cut(sc.Text(), ": ")
		lines[name] = value
		if name == "ready" {
			go io.Copy(io.Discard, stdout)
			return cmd, lines, stderr
		}
	}
	t.Fatalf("eventsd %q was not ready: %s", args, stderr)
	return nil, nil, nil
}

func call(method, url, key, body string) (status int, answer string, err error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("x-service-api-key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// TestKill: what was answered with 201 before a SIGKILL is there after it. It
// shows what the death of the process does, not what a power cut does: for that
// see the crash states of internal/recordfile.
func TestKill(t *testing.T) {
	t.Parallel()
	data := filepath.Join(tempDir(t), "events.json")
	key := ""
	answered := map[string]bool{}
	for round := range 4 {
		cmd, lines, _ := spawn(t, 0, "-addr", "127.0.0.1:0", "-data", data)
		if key == "" {
			key = lines["api_key"]
		}
		for id := range answered {
			if status, body, err := call("GET", lines["base_url"]+"/events/"+id, key, ""); status != 200 {
				t.Fatalf("round %d: %s was answered and is %d %s %v", round, id, status, body, err)
			}
		}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for {
					status, body, err := call("POST", lines["base_url"]+"/events/create", key, newEvent)
					if err != nil {
						return
					}
					var e struct{ ID string }
					if status != 201 || json.Unmarshal([]byte(body), &e) != nil {
						t.Errorf("create = %d %s", status, body)
						return
					}
					mu.Lock()
					answered[e.ID] = true
					mu.Unlock()
				}
			})
		}
		time.Sleep(time.Duration(20+30*round) * time.Millisecond) // somewhere in the middle of the creates
		cmd.Process.Kill()
		wg.Wait()
		cmd.Wait()
	}
	if len(answered) == 0 {
		t.Error("no create was answered")
	}
}

// TestFullDisk: creates are refused while the disk is full, none that was
// answered is lost, and a file that cannot be made durable is served read-only.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	data := filepath.Join(tempDir(t), "events.json")
	cmd, lines, stderr := spawn(t, 20_000, "-addr", "127.0.0.1:0", "-data", data)
	key, answered, refused := lines["api_key"], 0, 0
	for range 100 {
		status, body, err := call("POST", lines["base_url"]+"/events/create", key, newEvent)
		switch {
		case err != nil:
			t.Fatal(err)
		case status == 201:
			answered++
		case status == 500 && strings.Contains(body, `"server_error"`) && !strings.Contains(body, "large"):
			refused++
		default:
			t.Fatalf("create = %d %s", status, body)
		}
	}
	if answered == 0 || refused == 0 {
		t.Fatalf("%d creates answered, %d refused: the limit does not do what the test wants", answered, refused)
	}
	if got := stderr.String(); !strings.Contains(got, "answered 500") {
		t.Errorf("the log does not tell the cause: %s", got)
	}
	root := strings.TrimSuffix(lines["base_url"], base)
	if status, body, _ := call("GET", root+"/healthz", "", ""); status != 200 {
		t.Errorf("GET /healthz with a full disk = %d %s, want 200: it heals itself", status, body)
	}
	cmd.Process.Kill()
	cmd.Wait()

	// With room again, all that was answered is there, and more goes in.
	cmd, lines, _ = spawn(t, 0, "-addr", "127.0.0.1:0", "-data", data)
	status, body, err := call("GET", lines["base_url"]+"/events?limit=100", key, "")
	if got := strings.Count(body, `"id":"evt_`); status != 200 || got != answered {
		t.Errorf("%d %v: %d events after a restart, want %d", status, err, got, answered)
	}
	if status, body, _ := call("POST", lines["base_url"]+"/events/create", key, newEvent); status != 201 {
		t.Errorf("create with room again = %d %s", status, body)
	}
	for range 60 { // so that the next start would write this much again
		call("POST", lines["base_url"]+"/events/create", key, newEvent)
	}
	cmd.Process.Kill()
	cmd.Wait()

	cmd, lines, stderr = spawn(t, 1_000, "-addr", "127.0.0.1:0", "-data", data)
	root = strings.TrimSuffix(lines["base_url"], base)
	if status, body, _ := call("GET", lines["base_url"]+"/events", key, ""); status != 200 {
		t.Errorf("GET /events without room for a start = %d %s, want 200", status, body)
	}
	if status, body, _ := call("POST", lines["base_url"]+"/events/create", key, newEvent); status != 500 {
		t.Errorf("create without room for a start = %d %s, want 500", status, body)
	}
	if status, body, _ := call("GET", root+"/healthz", "", ""); status != 503 || !strings.Contains(body, `"server_error"`) {
		t.Errorf("GET /healthz without room for a start = %d %s, want 503", status, body)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit status %d, want 1: %s", code, stderr)
	}
}

// TestSignals: SIGTERM and SIGINT end a server with status 0.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd, _, stderr := spawn(t, 0, "-memory", "-addr", "127.0.0.1:0")
		cmd.Process.Signal(signal)
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit status after %v = %d, want 0: %s", signal, code, stderr)
		}
	}
}

// TestSecondSignal: a second one does not wait for what runs.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	cmd, lines, stderr := spawn(t, 0, "demo", "-addr", "127.0.0.1:0")
	addr := strings.TrimSuffix(strings.TrimPrefix(lines["base_url"], "http://"), base)
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s/events/create HTTP/1.1\r\nHost: x\r\nx-service-api-key: svc_live_demo\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", base)
	if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, "100") { // it waits for the body
		t.Fatal(line, err)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	for { // until it takes no more
		other, err := net.Dial("tcp", addr)
		if err != nil {
			break
		}
		other.Close()
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	for waiting := true; waiting; { // the first of them may come before the first one was seen
		cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			waiting = false
		case <-time.After(10 * time.Millisecond):
		}
	}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() {
		t.Errorf("after a second signal the status is %v, want an end by the signal: %s", cmd.ProcessState, stderr)
	}
}
