package command

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestSocket(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no sockets")
	}
	dir := must(os.MkdirTemp("", "s")) // its path is short
	t.Cleanup(func() { os.RemoveAll(dir) })
	longest := filepath.Join(dir, strings.Repeat("s", 103-len(dir)-1)) // bytes: the least of the systems
	dead := must(net.Listen("unix", longest)).(*net.UnixListener)
	dead.SetUnlinkOnClose(false)
	dead.Close()
	makers := []func(string) (net.Listener, error){Socket}
	if runtime.GOOS == "linux" {
		makers = append(makers, listenUnix) // already before the Chmod
	}
	for i, socket := range makers {
		l := must(socket(longest))
		if info := must(os.Lstat(longest)); info.Mode() != os.ModeSocket|0o600 {
			t.Errorf("maker %d made %v, want a socket of 0600", i, info.Mode())
		}
		must(net.Dial("unix", longest)).Close()
		if l.Close(); len(must(os.ReadDir(dir))) > 0 {
			t.Errorf("maker %d left the socket behind", i)
		}
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		longest + "sssss": "invalid argument", filepath.Join(dir, "no", "s"): "no such file", file: "in use",
	} {
		if l, err := Socket(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Socket(%q) = %v, %v, want %q", path, l, err, want)
		}
	}
	if b, err := os.ReadFile(file); string(b) != "mine" {
		t.Errorf("the file at the path of a socket is %q, %v", b, err)
	}
}

// TestSocketUmask is TestSocket in a process that takes no permissions away.
func TestSocketUmask(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no sockets")
	}
	cmd := exec.Command("/bin/sh", "-c", `umask 0; exec "$0" -test.run='^TestSocket$'`, os.Args[0])
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.HasPrefix(out, []byte("PASS")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// A socket file that belongs to anyone but root, the caller and the owner of the data file is not used.
func TestDialSocket(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := must(os.MkdirTemp("", "s")) // its path is short
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket, data := filepath.Join(dir, "socket"), filepath.Join(dir, "data")
	if _, err := DialSocket(socket, data); err != ErrNobody {
		t.Errorf("DialSocket without a socket = %v, want %v", err, ErrNobody)
	}
	l := must(Socket(socket))
	t.Cleanup(func() { l.Close() })
	if err := os.WriteFile(data, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const service, third = 4711, 4712
	for _, tt := range []struct {
		socket, data int // owners
		want         string
	}{
		{0, 0, ""},
		{0, service, ""},
		{service, service, ""},
		{third, service, socket + " belongs to user 4712: it must belong to root, you or the owner of " + data},
	} {
		if err := errors.Join(os.Chown(socket, tt.socket, -1), os.Chown(data, tt.data, -1)); err != nil {
			t.Fatal(err)
		}
		conn, err := DialSocket(socket, data)
		if err == nil {
			conn.Close()
		}
		if (err == nil) != (tt.want == "") {
			t.Errorf("DialSocket to %+v = %v", tt, err)
		}
		if err != nil && !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("DialSocket to %+v = %v", tt, err)
		}
	}
	l.Close()
	if _, err := DialSocket(socket, data); err != ErrNobody {
		t.Errorf("DialSocket to a socket that nobody listens on = %v, want %v", err, ErrNobody)
	}
}
