//go:build unix

package operator

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/events/internal/httpapi"
)

// A server that is starting holds the lock of the data file before it listens.
func TestServerStarts(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "[]\n") })
	open := func(data string) (http.Handler, io.Closer, error) {
		l, err := Listen(data)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			conn, err := l.Accept()
			if err == nil {
				httpapi.ServeConn(&http.Server{Handler: handler}, conn)
			}
		}()
		return nil, nil, errors.New("in use")
	}
	c, _, stdout := commands(t, nil, nil)
	c.Open = open
	err = c.Dump(t.Context(), []string{"-data", filepath.Join(dir, "events.json")})
	if err != nil {
		t.Fatal(err)
	}
	if got := stdout.String(); got != "[]\n" {
		t.Errorf("dump: stdout: got %q, want the records of the server", got)
	}
}

// A path that is too long for a socket has no server.
func TestLongPath(t *testing.T) {
	data := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	if _, err := dialSocket(data); !errors.Is(err, errNoServer) {
		t.Errorf("dialSocket with a long path: got %v, want %v", err, errNoServer)
	}
}
