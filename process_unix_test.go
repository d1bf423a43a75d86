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
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
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
		err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit})
		if err != nil {
			panic(err)
		}
	}
	os.Exit(events.Run(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

const processTimeout = 30 * time.Second // after which a process of a test is killed

// eventsd returns the command as a process of its own, which is killed when the test ends.
func eventsd(t testing.TB, args ...string) *exec.Cmd {
	return testProcess(t, os.Args[0], args...)
}

// testProcess returns a process in whose environment this test binary is the command.
func testProcess(t testing.TB, name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), processTimeout)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "EVENTS_TEST_COMMAND=1", "GORACE=atexit_sleep_ms=0")
	cmd.WaitDelay = time.Second
	return cmd
}

// skipIfIgnored skips a test of SIGHUP under nohup, because processes inherit that it is ignored.
func skipIfIgnored(t testing.TB, s os.Signal) {
	t.Helper()
	if signal.Ignored(s) {
		t.Skipf("%v is ignored, as under nohup", s)
	}
}

// spawn runs the command as a process of its own.
func spawn(t testing.TB, limit int64, args ...string) (*exec.Cmd, map[string]string, *lockedBuffer) {
	t.Helper()
	cmd := eventsd(t, args...)
	if limit > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprint("EVENTS_TEST_FSIZE=", limit))
	}
	return spawnCmd(t, cmd)
}

// spawnCmd starts a server and waits until it is ready.
func spawnCmd(t testing.TB, cmd *exec.Cmd) (*exec.Cmd, map[string]string, *lockedBuffer) {
	t.Helper()
	stderr := &lockedBuffer{}
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Wait() })
	lines := map[string]string{}
	for sc := bufio.NewScanner(stdout); sc.Scan(); {
		name, value, _ := strings.Cut(sc.Text(), ": ")
		lines[name] = value
		if name == "ready" {
			go io.Copy(io.Discard, stdout)
			return cmd, lines, stderr
		}
	}
	t.Fatalf("%q was not ready: %s", cmd.Args, stderr)
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
	for round := range 2 {
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
		before := len(answered)
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
		began := time.Now()
		for now := before; now < before+20 && time.Since(began) < 10*time.Second; {
			time.Sleep(time.Millisecond)
			mu.Lock()
			now = len(answered)
			mu.Unlock()
		}
		cmd.Process.Kill() // somewhere in the middle of the creates
		wg.Wait()
		cmd.Wait()
	}
	if len(answered) == 0 {
		t.Error("no create was answered")
	}
}

// TestFullDisk: creates are refused while the disk is full, and none that was answered is lost.
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
		t.Fatalf("%d creates answered, %d refused: the limit has no effect", answered, refused)
	}
	root := strings.TrimSuffix(lines["base_url"], base)
	if status, body, _ := call("GET", root+"/healthz", "", ""); status != 200 {
		t.Errorf("GET /healthz with a full disk = %d %s, want 200: it heals itself", status, body)
	}
	statusOf := func() (text *string) {
		code, out, stderr := command(nil, "", "status", "-json", "-data", data)
		var now struct{ Error *string }
		if err := json.Unmarshal([]byte(out), &now); err != nil {
			t.Fatalf("status = %d %s %s, %v", code, out, stderr, err)
		}
		return now.Error
	}
	if told := deref(statusOf()); !strings.HasSuffix(told, "file too large") {
		t.Errorf("status with a full disk has the error %q, want why", told)
	}
	cmd.Process.Kill()
	cmd.Wait() // what it wrote is in stderr then
	if got := stderr.String(); strings.Count(got, "data file cannot be written") != 1 {
		t.Errorf("the log has not one line with the cause: %s", got)
	}

	// With room again, all that was answered is there, and more goes in.
	cmd, lines, _ = spawn(t, 0, "-addr", "127.0.0.1:0", "-data", data)
	status, body, err := call("GET", lines["base_url"]+"/events?limit=100", key, "")
	if got := strings.Count(body, `"id":"evt_`); status != 200 || got != answered {
		t.Errorf("%d %v: %d events after a restart, want %d", status, err, got, answered)
	}
	if status, body, _ := call("POST", lines["base_url"]+"/events/create", key, newEvent); status != 201 {
		t.Errorf("create with room again = %d %s", status, body)
	}
	if told := statusOf(); told != nil {
		t.Errorf("status with room again has the error %s", *told)
	}
	cmd.Process.Kill()
	cmd.Wait()
}

// TestOutage: a full disk is logged once until it heals. Here it heals for what is small enough.
func TestOutage(t *testing.T) {
	t.Parallel()
	data := filepath.Join(tempDir(t), "events.json")
	cmd, lines, stderr := spawn(t, 30_000, "-addr", "127.0.0.1:0", "-data", data)
	create := func(body string) (status int) {
		t.Helper()
		req, _ := http.NewRequest("POST", lines["base_url"]+"/events/create", strings.NewReader(body))
		req.Header.Set("x-service-api-key", lines["api_key"])
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	large := `{"description":"` + strings.Repeat("x", 8_000) + `",` + newEvent[1:]
	for create(large) == 201 {
	}
	for range 2 {
		for range 5 {
			if status := create(large); status != 500 {
				t.Errorf("a create in an outage = %d, want 500", status)
			}
		}
		if status := create(newEvent); status != 201 {
			t.Errorf("a small create on a disk that is almost full = %d, want 201", status)
		}
	}
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait() // what it wrote is in stderr then
	log := stderr.String()
	for _, message := range []string{"data file cannot be written", "data file can be written again"} {
		if n := strings.Count(log, message); n != 2 {
			t.Errorf("two outages left %d lines with %q in the log, want 2: %s", n, message, log)
		}
	}
}

// SIGTERM, SIGINT and SIGHUP end every server with status 0. A request that runs gets its
// response, except from a double, which ends at once.
func TestSignals(t *testing.T) {
	t.Parallel()
	serve := []string{"-addr", "127.0.0.1:0", "-data"}
	for _, tt := range []struct {
		args   []string
		signal os.Signal
	}{
		{append(serve, filepath.Join(tempDir(t), "events.json")), syscall.SIGTERM},
		{append(serve, filepath.Join(tempDir(t), "events.json")), syscall.SIGINT},
		{append(serve, filepath.Join(tempDir(t), "events.json")), syscall.SIGHUP},
		{[]string{"demo", "-addr", "127.0.0.1:0"}, syscall.SIGTERM},
		{[]string{"double"}, syscall.SIGTERM},
	} {
		t.Run(fmt.Sprint(tt.args[0], tt.signal), func(t *testing.T) {
			t.Parallel()
			skipIfIgnored(t, tt.signal)
			finishes := tt.args[0] != "double"
			cmd, lines, stderr := spawn(t, 0, tt.args...)
			addr := strings.TrimSuffix(strings.TrimPrefix(lines["base_url"], "http://"), base)
			running, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer running.Close()
			const create = "POST " + base + "/events/create HTTP/1.1\r\nHost: x\r\n" +
				"x-service-api-key: %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n"
			fmt.Fprintf(running, create, lines["api_key"], len(newEvent))
			in := bufio.NewReader(running)
			if line, err := in.ReadString('\n'); !strings.Contains(line, "100 Continue") {
				t.Fatal(line, err)
			}
			cmd.Process.Signal(tt.signal)
			untilClosed(addr)
			if finishes {
				io.WriteString(running, newEvent)
			}
			answer, _ := io.ReadAll(in)
			if finished := strings.Contains(string(answer), " 201 Created"); finished != finishes {
				t.Errorf("the request that ran was answered %q, want 201: %v", answer, finishes)
			}
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("exit status after %v = %d, want 0: %s", tt.signal, code, stderr)
			}
		})
	}
}

// A signal is heard while a seed is read from a pipe to which nobody writes.
func TestSignalBeforeReady(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	data := filepath.Join(dir, "events.json")
	started := filepath.Join(dir, "started")
	for _, tt := range []struct {
		name   string
		args   []string
		status int
	}{
		{"serve", []string{"serve", "-addr", "127.0.0.1:0", "-data", data}, 0},
		{"double", []string{"double"}, 0},
		{"double with a command", // which has the signals: none is handled before it
			[]string{"double", "--", "touch", started}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			pipe := filepath.Join(dir, tt.name)
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := eventsd(t, slices.Insert(tt.args, 1, "-seed", pipe)...)
			stderr := &lockedBuffer{}
			cmd.Stderr = stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			// A pipe can be opened so only while something reads it.
			writer := -1
			for deadline := time.Now().Add(20 * time.Second); writer < 0; time.Sleep(time.Millisecond) {
				var err error
				writer, err = syscall.Open(pipe, syscall.O_WRONLY|syscall.O_NONBLOCK, 0)
				if err != nil && time.Now().After(deadline) {
					t.Fatalf("the seed is not read: %v: %s", err, stderr)
				}
			}
			defer syscall.Close(writer)
			cmd.Process.Signal(syscall.SIGTERM)
			cmd.Wait() // it would wait for ever for the end of the seed
			if code := cmd.ProcessState.ExitCode(); code != tt.status {
				t.Errorf("exit status %d, want %d: %s", code, tt.status, stderr)
			}
		})
	}
	t.Cleanup(func() {
		if _, err := os.Stat(started); err == nil {
			t.Errorf("%s was created", started)
		}
	})
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
	const create = "POST " + base + "/events/create HTTP/1.1\r\nHost: x\r\n" +
		"x-service-api-key: svc_live_demo\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
	io.WriteString(conn, create)
	line, err := bufio.NewReader(conn).ReadString('\n')
	if !strings.Contains(line, "100") { // it waits for the body
		t.Fatal(line, err)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	untilClosed(addr)
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
		t.Errorf("after a second signal: %v, want an end by the signal: %s", cmd.ProcessState, stderr)
	}
}

// double runs a shell script beside a double, in the test's environment.
func double(t testing.TB, script string, args ...string) *exec.Cmd {
	cmd := eventsd(t, append(append([]string{"double"}, args...), "--", "sh", "-c", script)...)
	cmd.Env = append(cmd.Env, "EVENTSD="+os.Args[0], "EVENTS_API_KEY=of another service")
	return cmd
}

// A command beside a double finds it by its environment, has the streams of the
// double and passes its status on.
func TestDoubleCommand(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	bad, started := filepath.Join(dir, "bad.json"), filepath.Join(dir, "started")
	if err := os.WriteFile(bad, []byte(`[{"user":{}}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	const variables = `echo $EVENTS_BASE_URL $EVENTS_API_KEY $EVENTS_CONTROL_URL $EVENTS_CONTROL_TOKEN; `
	const health = `host=${EVENTS_BASE_URL#http://}; "$EVENTSD" health -addr "${host%%/*}"; `
	url := `http://127\.0\.0\.1:\d+`
	for _, tt := range []struct {
		name           string
		args           []string
		script         string
		status         int
		stdout, stderr string // regular expressions
	}{
		{"environment", []string{"-api-key", "svc_live_mine", "-control-token", "t"}, variables, 0,
			url + base + ` svc_live_mine ` + url + `/_control t\n`, ""},
		{"it serves", nil, health, 0, "ok: " + url + `\n`, ""},
		{"streams and status", nil, `cat; echo oops >&2; exit 3`, 3, "from stdin", `oops\n`},
		{"a signal", nil, `kill -KILL $$`, 128 + 9, "", ""},
		{"what it leaves running", nil, `sleep 60 <&- >&- 2>&- & echo done`, 0, `done\n`, ""},
		{"its log", []string{"-log", "json", "-v"}, health, 0, "ok.*", `\{.*"path":"/healthz".*\}\n`},
		{"a seed that is refused", []string{"-seed", bad}, "touch " + started, 1,
			"", `eventsd: the seed .*bad.json: record 1: .*\n`},
		{"a port that is taken", []string{"-addr", l.Addr().String()}, "touch " + started, 1,
			"", `eventsd: -addr .*; give HOST:PORT .*\n`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr strings.Builder
			cmd := double(t, tt.script, tt.args...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("from stdin"), &stdout, &stderr
			cmd.Run()
			same := func(pattern string, got string) bool {
				return regexp.MustCompile(`\A(?s:` + pattern + `)\z`).MatchString(got)
			}
			code := cmd.ProcessState.ExitCode()
			if code != tt.status || !same(tt.stdout, stdout.String()) || !same(tt.stderr, stderr.String()) {
				t.Errorf("status %d, stdout %q, stderr %q; want %d, %q, %q",
					code, &stdout, &stderr, tt.status, tt.stdout, tt.stderr)
			}
		})
	}
	t.Cleanup(func() {
		if _, err := os.Stat(started); err == nil {
			t.Errorf("%s is there: a command was started", started)
		}
	})
	for name, status := range map[string]int{
		"no-such-command": 127, filepath.Join(dir, "none"): 127, bad: 126, dir: 126,
	} {
		code, out, stderr := command(nil, "", "double", "--", name, "arg")
		oneLine := strings.HasPrefix(stderr, "eventsd: ") && strings.Count(stderr, "\n") == 1
		if code != status || out != "" || !oneLine {
			t.Errorf("double -- %s = %d %q %q, want %d and one line", name, code, out, stderr, status)
		}
	}
	// In process, with streams that are no files, nothing waits for long either.
	start := time.Now()
	code, out, _ := command(nil, "from stdin", "double", "--", "sh", "-c", "cat; sleep 60 & exit 4")
	if code != 4 || out != "from stdin" || time.Since(start) >= time.Minute {
		t.Errorf("double in process = %d %q after %v", code, out, time.Since(start))
	}
}

// Signals are handed on to the command, and end the double with it alone.
func TestDoubleCommandSignals(t *testing.T) {
	t.Parallel()
	const script = `trap '"$EVENTSD" health -addr $addr && exit 7' TERM INT HUP
		addr=${EVENTS_BASE_URL#http://} addr=${addr%%/*}
		echo up
		while :; do sleep 0.02; done`
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			skipIfIgnored(t, sig)
			cmd := double(t, script)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			stderr := &lockedBuffer{}
			cmd.Stderr = stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			out := bufio.NewReader(stdout)
			if line, err := out.ReadString('\n'); line != "up\n" {
				t.Fatal(line, err, stderr)
			}
			cmd.Process.Signal(sig)
			line, _ := out.ReadString('\n')
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 7 || !strings.HasPrefix(line, "ok: ") {
				t.Errorf("status %d after %q, want 7, and the double healthy until then: %s", code, line, stderr)
			}
		})
	}
}

// A SIGHUP that was ignored when the server started, as by nohup, does not end it. Nor does
// it reach the command of a double.
func TestNohup(t *testing.T) {
	t.Parallel()
	cmd := testProcess(t, "sh", "-c", `trap "" HUP; exec "$0" demo -addr 127.0.0.1:0`, os.Args[0])
	_, lines, stderr := spawnCmd(t, cmd)
	cmd.Process.Signal(syscall.SIGHUP)
	time.Sleep(50 * time.Millisecond)
	status, body, err := call("GET", lines["base_url"]+"/users/me", lines["api_key"], "")
	if status != 200 {
		t.Errorf("GET /users/me after an ignored SIGHUP = %d %s %v: %s", status, body, err, stderr)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	const script = `kill -HUP $PPID; sleep 0.1; echo alive`
	double := testProcess(t, "sh", "-c", `trap "" HUP; exec "$0" double -- sh -c '`+script+`'`, os.Args[0])
	if out, err := double.CombinedOutput(); string(out) != "alive\n" || err != nil {
		t.Errorf("a double with an ignored SIGHUP printed %s, %v", out, err)
	}
}

// deref is a text or, for nil, "none".
func deref(text *string) string {
	if text == nil {
		return "none"
	}
	return *text
}

// TestSeedSources: a seed is the same from a file, from standard input and from a named pipe.
func TestSeedSources(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"file", "standard input", "pipe"} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			dir := tempDir(t)
			data, path := filepath.Join(dir, "events.json"), filepath.Join(dir, "seed.json")
			var err error
			switch source {
			case "file":
				err = os.WriteFile(path, []byte(seed), 0o600)
			case "standard input":
				path = "-"
			case "pipe":
				err = syscall.Mkfifo(path, 0o600)
				go os.WriteFile(path, []byte(seed), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			cmd := eventsd(t, "-addr", "127.0.0.1:0", "-data", data, "-seed", path)
			cmd.Stdin = strings.NewReader(seed)
			cmd, _, stderr := spawnCmd(t, cmd)
			cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil {
				t.Fatal(err, stderr)
			}
			store, err := events.Open(data, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			count := 0
			for _, r := range store.Records() {
				if r.Event != nil {
					count++
				}
			}
			if want := strings.Count(seed, `"event":`); count != want {
				t.Errorf("the store has %d events, want %d", count, want)
			}
		})
	}
}
