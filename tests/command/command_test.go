//go:build unix

// Package command has the tests of the command eventsd as its users see it: scripts of shell commands with
// what they print (testdata/script), and Go tests of signals, crashes, full disks and connections.
package command

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/events"
	"example.com/events/internal/apitest"
)

const base = events.BasePath

const timeout = time.Minute // for a process to be ready or to end, on a busy machine

// running is a pipe that ends with the tests, however they end. Commands read it as file 3.
var running struct{ read, write *os.File }

// endWithTests kills a command and all that belongs to it when the tests have ended.
func endWithTests() {
	os.NewFile(3, "running").Read(make([]byte, 1))
	syscall.Kill(0, syscall.SIGKILL) // its process group
}

// programs has links to this test binary: as eventsd it is the command, as http a small HTTP client.
var programs string

func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "eventsd":
		go endWithTests()
		os.Exit(events.Run(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
	case "http":
		os.Exit(request(os.Args[1:]))
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	binary, err := os.Executable()
	if err != nil {
		panic(err)
	}
	programs, err = os.MkdirTemp("", "programs")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(programs)
	running.read, running.write, err = os.Pipe()
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"eventsd", "http"} {
		err := os.Symlink(binary, filepath.Join(programs, name))
		if err != nil {
			panic(err)
		}
	}
	return m.Run()
}

// request is the program http: METHOD URL KEY [BODY]. It prints the status and the body of the response.
func request(args []string) int {
	args = append(args, "", "", "")
	status, body, err := call(args[0], args[1], args[2], args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(strings.TrimSpace(fmt.Sprint(status, " ", body)))
	return 0
}

// call sends a request with an API key, and returns the status and the body of the response.
func call(method, url, key, body string) (status int, text string, err error) {
	r, err := apitest.Fetch(&http.Client{Timeout: timeout}, method, url, body,
		"x-service-api-key: "+key, "Authorization: Bearer "+key)
	return r.Status, r.Body, err
}

// tempDir returns a new directory. Its path is short, because that of a socket must be.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// buffer is a bytes.Buffer that can be read while a process writes to it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// process is a server that runs as a process of its own, which is killed when the test ends.
type process struct {
	*exec.Cmd
	t      *testing.T
	stdout string // up to the line ready:
	stderr buffer
	ended  chan struct{} // closed when the process has ended
}

// shell returns a shell command in which the programs are found. It is killed when ctx is done.
func shell(ctx context.Context, dir, script string, variables ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"PATH=" + programs + ":" + os.Getenv("PATH"),
		"GORACE=atexit_sleep_ms=0",
		"GOCOVERDIR=" + cmp.Or(os.Getenv("GOCOVERDIR"), programs), // with go test -cover, it must be set
		"EVENTSD_ADDR=127.0.0.1:0",
	}, variables...)
	cmd.ExtraFiles = []*os.File{running.read}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that all it starts can be killed
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}

// start starts a server by a shell script that ends with it, and waits until it is ready.
func start(t *testing.T, dir, script string, variables ...string) *process {
	t.Helper()
	p := &process{Cmd: shell(t.Context(), dir, script, variables...), t: t, ended: make(chan struct{})}
	p.Stderr = &p.stderr
	stdout, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(timeout, func() { p.Cancel() })
	lines := bufio.NewScanner(stdout)
	for !strings.Contains(p.stdout, "\nready: ") && lines.Scan() {
		p.stdout += lines.Text() + "\n"
	}
	late.Stop()
	go func() {
		io.Copy(io.Discard, stdout)
		p.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() { <-p.ended })
	if !strings.Contains(p.stdout, "\nready: ") {
		p.Cancel()
		<-p.ended // stderr is complete then
		t.Fatalf("%s: got stdout %s, stderr %s, want a line ready:", script, p.stdout, &p.stderr)
	}
	return p
}

// line returns the value of a line on stdout.
func (p *process) line(name string) string {
	for line := range strings.Lines(p.stdout) {
		value, found := strings.CutPrefix(line, name+": ")
		if found {
			return strings.TrimSuffix(value, "\n")
		}
	}
	return ""
}

// addr returns the address of the server.
func (p *process) addr() string {
	return strings.TrimPrefix(strings.TrimSuffix(p.line("base_url"), base), "http://")
}

// create creates an event.
func (p *process) create(body string) (status int, response string, err error) {
	return call("POST", p.line("base_url")+"/events/create", p.line("api_key"), body)
}

// stop sends a signal and returns the exit status.
func (p *process) stop(signal os.Signal) (status int) {
	p.t.Helper()
	p.Process.Signal(signal)
	return p.wait()
}

// wait waits until the process ends and returns the exit status.
func (p *process) wait() (status int) {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(timeout):
		p.t.Fatalf("%q: got no end in %v, want one", p.Args, timeout)
	}
	return p.ProcessState.ExitCode()
}

// run runs a shell script to its end.
func run(t *testing.T, dir, script string, variables ...string) (stdout, stderr string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	cmd := shell(ctx, dir, script, variables...)
	var out, err strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &err
	cmd.Run() // the status says more than its error
	return out.String(), err.String(), cmd.ProcessState.ExitCode()
}
