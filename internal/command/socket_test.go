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

// Where the kernel does not say who listens, the socket must be the same before and after the
// connection, and of a trusted user.
func TestCheckLooks(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no sockets")
	}
	dir := must(os.MkdirTemp("", "s")) // its path is short
	t.Cleanup(func() { os.RemoveAll(dir) })
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"same", "replaced", "other"} {
		defer must(net.Listen("unix", in(name))).Close()
	}
	same, replaced, gone := must(os.Lstat(in("same"))), must(os.Lstat(in("replaced"))), must(os.Lstat(in("other")))
	if err := os.Rename(in("other"), in("replaced")); err != nil {
		t.Fatal(err)
	}
	us := os.Geteuid()
	for _, tt := range []struct {
		name    string
		before  os.FileInfo
		trusted []int
		want    string
	}{
		{"same", same, []int{us}, ""},
		{"same", same, []int{us + 1, us}, ""},
		{"same", same, []int{us + 1}, "it is user "},
		{"replaced", replaced, []int{us}, "another socket took its place"},
		{"other", gone, []int{us}, "no such file"},
	} {
		err := checkLooks(in(tt.name), tt.before, tt.trusted)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("checkLooks(%s) for %v = %v, want %q", tt.name, tt.trusted, err, tt.want)
		}
	}
}
