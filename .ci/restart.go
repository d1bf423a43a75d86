// Command restart restarts a server 20 times under load, as a service manager does that holds its
// socket: no request may fail, and each create that was answered must be there in the end.
//
//	go run .ci/restart.go [-keep] EVENTSD
//
// The clients open a connection for each request. With -keep they keep their connections. CI does
// without, as a request may be lost then: one that is on its way when the server closes its
// connection, after a quarter of a second without a request.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	restarts = 20
	clients  = 8
	between  = 100 * time.Millisecond // two restarts
	key      = "svc_live_restart"
	newEvent = `{"title":"T","start_at":"2030-01-01T18:00:00Z","end_at":"2030-01-01T20:00:00Z"}`
)

func main() {
	keep := flag.Bool("keep", false, "keep connections")
	flag.Parse()
	if err := run(flag.Arg(0), *keep); err != nil {
		fmt.Fprintln(os.Stderr, "restart:", err)
		os.Exit(1)
	}
}

func run(program string, keep bool) (err error) {
	dir, err := os.MkdirTemp("", "restart")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	var log bytes.Buffer
	defer func() {
		if err != nil {
			os.Stderr.Write(log.Bytes())
		}
	}()
	start := func() (*exec.Cmd, error) {
		return start(socket, &log, program, filepath.Join(dir, "events.json"))
	}
	server, err := start()
	if err != nil {
		return err
	}
	defer func() { server.Process.Kill() }()

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	all := &load{
		base:   "http://" + listener.Addr().String() + "/api/public/v1",
		client: http.Client{Transport: &http.Transport{DisableKeepAlives: !keep}},
	}
	var running sync.WaitGroup
	for range clients {
		running.Go(func() { all.send(ctx) })
	}
	for range restarts {
		time.Sleep(between)
		server.Process.Signal(syscall.SIGTERM)
		if err := server.Wait(); err != nil {
			return err
		}
		server, err = start()
		if err != nil {
			return err
		}
	}
	stop()
	running.Wait()
	for _, id := range all.created {
		status, body, err := all.call("GET", "/events/"+id, "")
		if status != 200 {
			return fmt.Errorf("a create was answered with %s, which is not there: %d %s %v", id, status, body, err)
		}
	}
	server.Process.Signal(syscall.SIGTERM)
	if err := server.Wait(); err != nil {
		return err
	}
	fmt.Printf("%d restarts, %d requests, %d events created, %d requests failed; the longest took %v\n",
		restarts, all.requests, len(all.created), len(all.failed), all.longest.Round(time.Millisecond))
	if len(all.failed) > 0 {
		return all.failed[0]
	}
	return nil
}

// start starts a server on a socket that listens already, and returns once it is ready.
func start(socket *os.File, log io.Writer, program, data string) (*exec.Cmd, error) {
	// Only the shell that becomes the server knows the process id.
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" -data "$1" -api-key "$2"`,
		program, data, key)
	cmd.ExtraFiles = []*os.File{socket}
	cmd.Stderr = log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "ready: ") {
			return cmd, nil
		}
	}
	return nil, fmt.Errorf("the server was not ready: %v", cmd.Wait())
}

// load is what some clients send.
type load struct {
	base   string
	client http.Client

	mu       sync.Mutex
	requests int
	created  []string
	failed   []error
	longest  time.Duration
}

// send creates events and reads them, one request after the other.
func (l *load) send(ctx context.Context) {
	last := ""
	for ctx.Err() == nil {
		began := time.Now()
		want, method, path, body := 201, "POST", "/events/create", newEvent
		if last != "" {
			want, method, path, body = 200, "GET", "/events/"+last, ""
		}
		status, answer, err := l.call(method, path, body)
		var event struct{ ID string }
		if err == nil && (status != want || json.Unmarshal(answer, &event) != nil) {
			err = fmt.Errorf("%s %s was answered %d %s", method, path, status, answer)
		}
		l.mu.Lock()
		l.requests++
		l.longest = max(l.longest, time.Since(began))
		switch {
		case err != nil:
			l.failed = append(l.failed, err)
		case method == "POST":
			last = event.ID
			l.created = append(l.created, last)
		default:
			last = ""
		}
		l.mu.Unlock()
	}
}

func (l *load) call(method, path, body string) (status int, answer []byte, err error) {
	r, err := http.NewRequest(method, l.base+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("x-service-api-key", key)
	r.Header.Set("Content-Type", "application/json")
	resp, err := l.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}
