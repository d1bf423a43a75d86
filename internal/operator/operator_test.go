package operator

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events/internal/cli"
)

// The subcommands are tested with the server in tests/command. These tests show what only a client decides.

// file is an open data file of a test.
type file struct {
	closed bool
	err    error // of Close
}

func (f *file) Close() error {
	f.closed = true
	return f.err
}

// commands returns the subcommands on a data file without a server, whose routes the handler serves.
func commands(t *testing.T, f *file, h http.HandlerFunc) (c *CLI, data string, stdout *bytes.Buffer) {
	stdout = &bytes.Buffer{}
	c = &CLI{
		Program: &cli.Program{Stdout: stdout, Stderr: io.Discard},
		Open:    func(string) (http.Handler, io.Closer, error) { return h, f, nil },
	}
	return c, filepath.Join(t.TempDir(), "events.json"), stdout
}

// A dump closes the file before it prints anything, because printing may take long.
func TestDumpClosesFile(t *testing.T) {
	f := &file{}
	c, data, stdout := commands(t, f, func(w http.ResponseWriter, r *http.Request) {
		if !f.closed {
			t.Error("file while records are printed: got it open, want it closed")
		}
		io.WriteString(w, "[]\n")
	})
	if err := c.Dump(t.Context(), []string{"-data", data}); err != nil {
		t.Fatal(err)
	}
	if got := stdout.String(); got != "[]\n" {
		t.Errorf("dump: stdout: got %q, want %q", got, "[]\n")
	}
}

// A dump that ends too early is an error.
func TestDumpCutShort(t *testing.T) {
	c, data, _ := commands(t, &file{}, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat(" ", 10_000))
		panic(http.ErrAbortHandler)
	})
	if err := c.Dump(t.Context(), []string{"-data", data}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("dump: got %v, want %v", err, io.ErrUnexpectedEOF)
	}
}

// A new key is printed when the file is closed: it is on disk then, and the next command needn't wait.
func TestKeyIssueClosesFile(t *testing.T) {
	f := &file{}
	c, data, _ := commands(t, f, func(w http.ResponseWriter, r *http.Request) {
		if f.closed {
			t.Error("file while the key is created: got it closed, want it open")
		}
		io.WriteString(w, `{"id":"key_1","secret":"svc_live_1","user_id":"usr_1"}`)
	})
	c.Stdout = writerFunc(func(text []byte) (int, error) {
		if !f.closed {
			t.Error("file while the key is printed: got it open, want it closed")
		}
		return len(text), nil
	})
	if err := c.KeyIssue(t.Context(), []string{"-data", data, "-user", "usr_1"}); err != nil {
		t.Fatal(err)
	}
}

// A newer server may send more about a key, of any type.
func TestKeyListOfNewerServer(t *testing.T) {
	c, data, stdout := commands(t, &file{}, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"data":[{"id":"key_1","name":"Ada","scopes":["read"],"uses":7,"hint":null}]}`)
	})
	if err := c.KeyList(t.Context(), []string{"-data", data}); err != nil {
		t.Fatal(err)
	}
	got, want := strings.Fields(stdout.String())[7:], []string{"key_1", "Ada", "-", "-"} // after the header
	if !slices.Equal(got, want) {
		t.Errorf("key list: got %q, want %q", got, want)
	}
}

// If the file can't be closed, nobody knows whether a change is on disk.
func TestCloseFails(t *testing.T) {
	f := &file{err: errors.New("no disk")}
	c, data, stdout := commands(t, f, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"id":"key_1","secret":"svc_live_1","user_id":"usr_1"}`)
	})
	for name, err := range map[string]error{
		"dump":      c.Dump(t.Context(), []string{"-data", data}),
		"key issue": c.KeyIssue(t.Context(), []string{"-data", data, "-user", "usr_1"}),
	} {
		if !errors.Is(err, f.err) {
			t.Errorf("%s: got %v, want %v", name, err, f.err)
		}
	}
	if got := stdout.String(); got != "" {
		t.Errorf("stdout: got %q, want nothing", got)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(text []byte) (int, error) { return f(text) }

func TestNoResponse(t *testing.T) {
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		want    string // beginning of the error
	}{
		{"closed", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"no response from the server, "},
		{"another program", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 404) },
			"the socket belongs to another program: it responded with 404 Not Found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, data, _ := commands(t, &file{}, tt.handler)
			err := c.KeyRevoke(t.Context(), []string{"-data", data, "key_1"})
			if got := fmt.Sprint(err); !strings.HasPrefix(got, tt.want) {
				t.Errorf("key revoke: got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		want    string // stdout, or the end of the error
	}{
		{"healthy", func(http.ResponseWriter, *http.Request) {}, "ok: URL\n"},
		{"broken", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
			io.WriteString(w, `{"error":{"code":"server_error","message":"no disk"}}`)
		}, "URL: 503 Service Unavailable: no disk"},
		{"another program", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
			"URL: 404 Not Found: this isn't an eventsd server"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.handler)
			defer server.Close()
			var stdout strings.Builder
			c := &CLI{Program: &cli.Program{Stdout: &stdout}}
			err := c.Health(t.Context(), []string{"-addr", server.Listener.Addr().String()})
			got := stdout.String()
			if err != nil {
				got += err.Error()
			}
			if want := strings.ReplaceAll(tt.want, "URL", server.URL); !strings.HasSuffix(got, want) {
				t.Errorf("health: got %s, want %s", got, want)
			}
		})
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A server that doesn't respond within two seconds isn't healthy.
func TestHealthTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := healthClient
		client.Transport = transportFunc(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		start := time.Now()
		_, err := client.Get("http://127.0.0.1/healthz")
		if err == nil {
			t.Error("Get without a response: got no error, want one")
		}
		if got, want := time.Since(start), 2*time.Second; got != want {
			t.Errorf("Get without a response: got an error after %v, want %v", got, want)
		}
	})
}

// While a server listens on the socket, the file isn't opened.
func TestSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // its path is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	data := filepath.Join(dir, "events.json")
	l, err := Listen(data)
	if err != nil {
		t.Skip(err) // Windows
	}
	requests := make(chan string, 1)
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r.Method + " " + r.RequestURI
		io.WriteString(w, "[]")
	})}
	go server.Serve(l)
	defer server.Close()
	info, err := os.Stat(data + ".sock")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := info.Mode(), os.ModeSocket|0o600; got != want {
		t.Errorf("mode of the socket: got %v, want %v", got, want)
	}
	c, _, stdout := commands(t, nil, nil)
	c.Open = func(string) (http.Handler, io.Closer, error) {
		return nil, nil, errors.New("the file was opened")
	}
	if err := c.Dump(t.Context(), []string{"-data", data, "-user", "a&b"}); err != nil {
		t.Fatal(err)
	}
	if got, want := stdout.String(), "[]"; got != want {
		t.Errorf("dump: stdout: got %q, want %q", got, want)
	}
	if got, want := <-requests, "GET /records?user_id=a%26b"; got != want {
		t.Errorf("request of dump: got %q, want %q", got, want)
	}
	if err := c.KeyRevoke(t.Context(), []string{"-data", data, "key_a?b"}); err != nil {
		t.Fatal(err)
	}
	if got, want := <-requests, "DELETE /keys/key_a%3Fb"; got != want {
		t.Errorf("request of key revoke: got %q, want %q", got, want)
	}
}
