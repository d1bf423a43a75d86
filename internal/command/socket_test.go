package command

import (
	"bytes"
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
