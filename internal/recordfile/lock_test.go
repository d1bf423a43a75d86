package recordfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// A second Open waits for the lock, and names the process that has it if it waits in vain.
func TestLock(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		release time.Duration // after which the lock is released; 0: never
		took    time.Duration
	}{
		"free after 3 s": {3 * time.Second, 3 * time.Second},
		"never free":     {0, lockTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := create(t, []string{"1"})
			synctest.Test(t, func(t *testing.T) {
				f, _ := open(t, path)
				if test.release > 0 {
					time.AfterFunc(test.release, func() { f.Close() })
				}
				start := time.Now()
				second, err := Open(path, options, ignore)
				if took := time.Since(start); took < test.took || took > test.took+lockInterval {
					t.Errorf("Open took %v, want %v", took, test.took)
				}
				if test.release > 0 {
					ok(t, err)
					ok(t, second.Close())
					return
				}
				if !errors.Is(err, ErrLocked) {
					t.Errorf("Open = %v, want %v", err, ErrLocked)
				}
				want := fmt.Sprintf("%s: the data file is in use by process %d", f.Path(), os.Getpid())
				if err.Error() != want {
					t.Errorf("Open = %v, want %s", err, want)
				}
				ok(t, f.Close())
			})
		})
	}
}

// A lock file holds the ID of the process that has the lock, whatever was in it.
func TestLockFile(t *testing.T) {
	t.Parallel()
	path := create(t, []string{"1"})
	for _, text := range []string{"", "999999999\n", "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"} {
		ok(t, os.WriteFile(path+".lock", []byte(text), 0o600))
		f, _ := open(t, path)
		if got, want := readFile(t, path+".lock"), fmt.Sprintln(os.Getpid()); got != want {
			t.Errorf("the lock file with %q holds %q, want %q", text, got, want)
		}
		ok(t, f.Close())
	}
}

// Every symbolic link to a data file leads to one socket.
func TestSocketPath(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links need rights")
	}
	path := create(t, []string{"1"})
	link := filepath.Join(t.TempDir(), "link.json")
	ok(t, os.Symlink(path, link))
	want, err := filepath.EvalSymlinks(path)
	ok(t, err)
	for _, data := range []string{path, link} {
		if got := SocketPath(data); got != want+".sock" {
			t.Errorf("SocketPath(%s) = %s, want %s.sock", data, got, want)
		}
	}
	missing := filepath.Join(filepath.Dir(want), "missing.json")
	if got := SocketPath(missing); got != missing+".sock" {
		t.Errorf("SocketPath(%s) = %s", missing, got)
	}
}
