//go:build unix

package operator

import (
	"errors"
	"fmt"
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

// A socket that belongs to anyone but root, the caller or the owner of the data file isn't used.
func TestSocketOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	data := filepath.Join(dir, "events.json")
	if _, err := dialSocket(data); !errors.Is(err, errNoServer) {
		t.Errorf("dialSocket without a socket: got %v, want %v", err, errNoServer)
	}
	if err := os.WriteFile(data, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(data)
	if err != nil {
		t.Fatal(err)
	}
	const service, other = 4711, 4712
	for _, tt := range []struct {
		socket, data int    // owners
		want         string // contained in the error
	}{
		{0, 0, "<nil>"},
		{0, service, "<nil>"},
		{service, service, "<nil>"},
		{other, service, ".sock belongs to user 4712: it must belong to root, you or the owner of " + data},
	} {
		err := errors.Join(os.Chown(data+".sock", tt.socket, -1), os.Chown(data, tt.data, -1))
		if err != nil {
			t.Fatal(err)
		}
		conn, err := dialSocket(data)
		if conn != nil {
			conn.Close()
		}
		if got := fmt.Sprint(err); !strings.Contains(got, tt.want) {
			t.Errorf("dialSocket with a socket of %d and data of %d: got %s, want %s",
				tt.socket, tt.data, got, tt.want)
		}
	}
	l.Close()
	if _, err := dialSocket(data); !errors.Is(err, errNoServer) {
		t.Errorf("dialSocket after Close: got %v, want %v", err, errNoServer)
	}
}
