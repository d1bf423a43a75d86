package operator

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events/internal/answer"
	"example.com/events/internal/command"
)

// files is a program whose data file has this store or cannot be opened, and whose arrays of
// records are all empty.
type files struct {
	Files
	store Store
	err   error
}

func (f files) Open(string) (Store, error) { return f.store, f.err }

func (files) Socket(data string) string { return data + ".sock" }

func (files) Records(string) ([]byte, error) { return nil, nil }

// target is a data file without a server, or with one.
type target struct {
	*tool
	data string
}

func newTarget(data string) target {
	return target{&tool{&command.Program{Stderr: io.Discard}, files{}}, data}
}

// with calls do with the store, once for a command that looks and once for one that makes a change.
func (t target) with(do func(Store) error) error {
	err := t.look(t.data, do)
	if err != nil {
		return err
	}
	return t.change(t.data, do)
}

// The client gives up on a server that is silent, and says what may have happened.
// The clock is that of the bubble, so no test waits.
func TestClientGivesUp(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("1,"), 1<<20)
	readAll := func(r *http.Request, _ net.Conn) { io.Copy(io.Discard, r.Body) }
	for _, tt := range []struct {
		name, operation string
		body            []byte
		serve           func(r *http.Request, conn net.Conn) // then it is silent
		after           time.Duration
		want            string // the end of the error; empty: there is none
	}{
		{"an apply of which nothing is read", "POST /records", large, func(*http.Request, net.Conn) {},
			2 * quietTimeout, "timeout"}, // the second one is for a refusal
		{"an apply of which a part is read, slowly", "POST /records", large,
			func(r *http.Request, _ net.Conn) {
				for range 5 {
					time.Sleep(quietTimeout - time.Second)
					io.CopyN(io.Discard, r.Body, 100<<10)
				}
			}, 7*quietTimeout - 5*time.Second, "timeout"},
		{"an apply that is read", "POST /records", large, readAll,
			applyTimeout, "timeout; it may have been applied"},
		{"an apply that takes long", "POST /records", large, func(r *http.Request, conn net.Conn) {
			readAll(r, conn)
			time.Sleep(applyTimeout - time.Second)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}, applyTimeout - time.Second, ""},
		{"a key", "POST /keys", []byte("{}"), readAll,
			quietTimeout, "timeout; it may have been applied"},
		{"a dump", "GET /records", nil, func(*http.Request, net.Conn) {}, quietTimeout, "timeout"},
		{"a dump that begins", "GET /records", nil, func(_ *http.Request, conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[")
			time.Sleep(quietTimeout - time.Second)
			io.WriteString(conn, "1,")
		}, 2*quietTimeout - time.Second, "timeout"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				go func() {
					r, err := http.ReadRequest(bufio.NewReader(theirs))
					if err != nil {
						t.Error(err)
						return
					}
					tt.serve(r, theirs)
				}()
				start := time.Now()
				method, path, _ := strings.Cut(tt.operation, " ")
				err := (&client{Conn: ours}).ask(io.Discard, method, path, tt.body)
				took := time.Since(start)
				ours.Close()
				theirs.Close()
				if (err == nil) != (tt.want == "") || err != nil &&
					(err == nil || !strings.HasSuffix(err.Error(), tt.want)) {
					t.Errorf("the error is %v, want %q", err, tt.want)
				}
				if took != tt.after {
					t.Errorf("it came after %v, want %v", took, tt.after)
				}
			})
		})
	}
}

// shortDir is a folder whose sockets have a path that is short enough.
func shortDir(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("neither sockets nor symbolic links")
	}
	dir, err := os.MkdirTemp("", "o")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// serve returns the data file beside whose socket a handler is served.
func serve(t *testing.T, h http.Handler) (data string) {
	t.Helper()
	data = filepath.Join(shortDir(t), "d")
	srv := httptest.NewUnstartedServer(h)
	srv.Listener.Close()
	var err error
	if srv.Listener, err = net.Listen("unix", data+".sock"); err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(srv.Close)
	return data
}

// requests are what the subcommands ask a store, what it finds itself asked, and what it
// answers.
var requests = []struct {
	name        string
	do          func(s Store, answer io.Writer) error
	asked, want string
}{
	{"POST /keys", func(s Store, answer io.Writer) error {
		issued, err := s.IssueKeyJSON([]byte(`{"name":"Ada"}`))
		io.WriteString(answer, issued["id"]+issued["key"]+issued["user"])
		return err
	}, `issue {"name":"Ada"}`, "key_1secretusr_1"},
	{"GET /keys", func(s Store, answer io.Writer) error {
		list, err := s.Keys()
		answer.Write(list)
		return err
	}, "keys", `[{"id":"key_1","revoked_at":null}]`},
	{"DELETE /keys/{id}", func(s Store, _ io.Writer) error {
		return s.RevokeKey("key 1?%2F#")
	}, "revoke key 1?%2F#", ""},
	{"GET /records", func(s Store, answer io.Writer) error {
		return s.WriteRecords(answer)
	}, "records", "[\n1,\n2]\n"},
	{"GET /records?user", func(s Store, answer io.Writer) error {
		write, err := s.UserRecords("usr 1&")
		if err == nil {
			err = write(answer)
		}
		return err
	}, "records of usr 1&", "[\n2]\n"},
	{"POST /records", func(s Store, answer io.Writer) error {
		count, _, err := s.ApplyRecords([]byte("[1]"))
		if err == nil {
			fmt.Fprint(answer, count["applied"], count["unchanged"])
		}
		return err
	}, "apply [1]", "3 1"},
}

// What is asked of a running server and of a file comes to the same.
func TestAsk(t *testing.T) {
	t.Parallel()
	s := &store{}
	routes := allRoutes(s, noReport, "")
	tools := map[string]target{
		"server": newTarget(serve(t, Handler("", routes, everyone, fail))),
		"file":   newTarget(filepath.Join(shortDir(t), "d")),
	}
	tools["file"].tool.files = files{store: s}
	for name, tool := range tools {
		for _, r := range requests {
			err := tool.with(func(store Store) error {
				var got strings.Builder
				err := r.do(store, &got)
				if got.String() != r.want || s.asked != r.asked {
					t.Errorf("%s: asked %q, answered %q; want %q, %q", name, s.asked, got.String(), r.asked, r.want)
				}
				return err
			})
			if err != nil {
				t.Errorf("%s: %s: %v", name, r.name, err)
			}
		}
	}
	const cause = "the running server answered 500 Internal Server Error: "
	for _, err := range []error{answer.NotFound(`key "1": not found`), errors.New("the disk is full")} {
		s.err = err
		_, refused := errors.AsType[*answer.Error](err)
		for _, r := range requests {
			if r.name == "GET /records" { // an error of which ends the connection
				continue
			}
			err := tools["server"].with(func(store Store) error {
				var got strings.Builder
				err := r.do(store, &got)
				if got.Len() > 0 {
					t.Errorf("%s = %s", r.name, got.String())
				}
				return err
			})
			if refused && fmt.Sprint(err) != s.err.Error() ||
				!refused && !strings.HasPrefix(fmt.Sprint(err), cause) {
				t.Errorf("%s = %v where the store says %v", r.name, err, s.err)
			}
		}
	}
}

// A server that fails is reported as one, whatever it is.
func TestServerFails(t *testing.T) {
	t.Parallel()
	const broken = "the running server did not answer: "
	for name, tt := range map[string]struct {
		want  string
		serve http.HandlerFunc
	}{
		"another program": {"the running server answered 502 Bad Gateway, and is no server",
			func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no upstream", http.StatusBadGateway) }},
		"no answer": {broken, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		"half an answer": {broken, func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "[")
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}},
	} {
		tool := newTarget(serve(t, tt.serve))
		for _, r := range requests {
			err := tool.with(func(store Store) error {
				return r.do(store, io.Discard)
			})
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%s: %s = %v, want %s", name, r.name, err, tt.want)
			}
		}
	}
}

// A socket that a dead server left does not keep a subcommand from the file.
func TestDeadSocket(t *testing.T) {
	t.Parallel()
	data := filepath.Join(shortDir(t), "d")
	dead, err := net.Listen("unix", data+".sock")
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	opened := errors.New("the file was opened")
	tool := newTarget(data)
	tool.files = files{err: opened}
	if err := tool.with(nil); err != opened {
		t.Errorf("with = %v, want %v", err, opened)
	}
}

// A command that only prints releases the lock of the data file first.
func TestLookCloses(t *testing.T) {
	t.Parallel()
	s := &store{}
	tool := newTarget(filepath.Join(shortDir(t), "d"))
	tool.files = files{store: s}
	err := tool.look(tool.data, func(Store) error {
		if !s.closed {
			t.Error("the data file is open while the command prints")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Texts of records in tables and messages cannot steer the terminal of a person.
func TestControlCharacters(t *testing.T) {
	t.Parallel()
	data := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /keys":
			io.WriteString(w, `{"data":[{"id":"key_1\u001b","name":"\u009b1m"}]}`)
		case "GET /status":
			io.WriteString(w, `{"version":"\u001b[2J"}`)
		case "POST /keys":
			io.WriteString(w, `{"id":"key_1\u001b","key":"\u001b[2J","user":"\u009b"}`)
		default:
			http.Error(w, `{"error":{"message":"\u001b[2J"}}`, 400)
		}
	}))
	for _, args := range []string{"key list", "status", "key issue -user usr_1", "apply", "key revoke key_1"} {
		var stdout, stderr strings.Builder
		p := &command.Program{Name: "tool", Stdin: strings.NewReader("[]"), Stdout: &stdout, Stderr: &stderr,
			Environ: []string{"TOOL_DATA=" + data}}
		AddCommands(p, files{})
		err := p.Run(strings.Fields(args))
		p.Exit(err)
		printed := stdout.String() + stderr.String()
		if strings.ContainsAny(printed, "\x1b\u009b") || !strings.Contains(printed, "?") {
			t.Errorf("tool %s printed %q, %v", args, printed, err)
		}
	}
}

// An answer that is no list is an error of key list, and not an empty table.
func TestListOfNothing(t *testing.T) {
	t.Parallel()
	data := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }))
	var stdout, stderr strings.Builder
	p := &command.Program{Name: "tool", Stdout: &stdout, Stderr: &stderr, Environ: []string{"TOOL_DATA=" + data}}
	AddCommands(p, files{})
	if code := p.Exit(p.Run([]string{"key", "list"})); code == 0 || stdout.Len() > 0 {
		t.Errorf("key list = %d, printed %q %q; want an error", code, &stdout, &stderr)
	}
}

func TestApplied(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		records, unchanged int
		want               string
	}{
		{0, 0, "applied 0 records"},
		{1, 0, "applied 1 record"},
		{3, 0, "applied 3 records"},
		{3, 1, "applied 3 records, of which 1 changed nothing"},
	} {
		if got := applied(tt.records, tt.unchanged); got != tt.want {
			t.Errorf("applied(%d, %d) = %q, want %q", tt.records, tt.unchanged, got, tt.want)
		}
	}
}
