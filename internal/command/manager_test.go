package command

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// What is not for this process, or hands over nothing, changes nothing. The root's
// TestSocketActivation hands sockets over.
func TestListenManager(t *testing.T) {
	t.Parallel()
	us, other := fmt.Sprint("LISTEN_PID=", os.Getpid()), "LISTEN_PID=1"
	for _, tt := range []struct {
		environ []string
		want    string // in the error
	}{
		{nil, ""},
		{[]string{"LISTEN_FDS=1"}, ""},
		{[]string{other, "LISTEN_FDS=1"}, ""},
		{[]string{us, "LISTEN_FDS=1", other}, ""}, // the last one counts
		{[]string{us}, ""},
		{[]string{us, "LISTEN_FDS=0"}, ""},
		{[]string{us, "LISTEN_FDS=2"}, `LISTEN_FDS is "2": `},
		{[]string{us, "LISTEN_FDS=one"}, `LISTEN_FDS is "one": `},
	} {
		logger, _ := logger()
		l, err := Listen("127.0.0.1:0", true, tt.environ, logger)
		if err == nil {
			l.Close()
		}
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Listen with %q = %v, want the error %q", tt.environ, err, tt.want)
		}
	}
}

func TestNotifyManager(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "") // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	paths := []string{filepath.Join(dir, "notify")}
	if runtime.GOOS == "linux" {
		paths = append(paths, "@"+filepath.Base(dir)+"/notify") // abstract
	}
	for _, path := range paths {
		environ := []string{"A=b", "NOTIFY_SOCKET=" + path}
		if err := NotifyManager(environ, "READY=1"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("NotifyManager with nobody at %s = %v, want an error with the path", path, err)
		}
		l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		if err != nil {
			t.Skip(err) // Windows has none
		}
		defer l.Close()
		for _, state := range []string{"READY=1", "STOPPING=1"} {
			if err := NotifyManager(environ, state); err != nil {
				t.Errorf("NotifyManager(%q, %s) = %v", environ, state, err)
				continue
			}
			got := make([]byte, 100)
			n, err := l.Read(got)
			if string(got[:n]) != state {
				t.Errorf("%s was told %q (%v), want %s", path, got[:n], err, state)
			}
		}
	}
	if err := NotifyManager([]string{"A=b"}, "READY=1"); err != nil {
		t.Errorf("NotifyManager without a manager = %v", err)
	}
}

func TestWithoutManager(t *testing.T) {
	t.Parallel()
	environ := []string{"LISTEN_PID=1", "A=LISTEN_FDS=1", "LISTEN_FDS=1", "LISTEN_FDNAMES=api",
		"LISTEN_PIDFDID=1", "NOTIFY_SOCKET=/n", "LISTEN_ADDR=mine"}
	before := slices.Clone(environ)
	want := []string{"A=LISTEN_FDS=1", "LISTEN_ADDR=mine"}
	if got := withoutManager(environ); !slices.Equal(got, want) || !slices.Equal(environ, before) {
		t.Errorf("withoutManager(%q) = %q and left %q, want %q and no change", before, got, environ, want)
	}
}
