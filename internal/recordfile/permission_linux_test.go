package recordfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Rights do not bind root, so file access is that of another user meanwhile.
func TestNoPermission(t *testing.T) {
	path := create(t, []string{"1"})
	dir := filepath.Dir(path)
	if os.Geteuid() == 0 {
		for p := dir; p != "/"; p = filepath.Dir(p) {
			if info, err := os.Stat(p); err != nil || info.Mode()&1 == 0 {
				ok(t, os.Chmod(p, info.Mode().Perm()|0o011))
				defer os.Chmod(p, info.Mode().Perm())
			}
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		ok(t, syscall.Setfsuid(65534))
		defer syscall.Setfsuid(0)
	} else {
		ok(t, os.Chmod(path, 0))
		ok(t, os.Chmod(path+".lock", 0))
		defer os.Chmod(path, 0o600)
	}
	for call, try := range map[string]func(string) error{
		"Open":    func(p string) error { _, err := Open(p, options, nil); return err },
		"Read":    func(p string) error { _, err := Read(p, options, nil); return err },
		"Salvage": func(p string) error { _, err := Salvage(p, options, nil); return err },
	} {
		if err := try(path); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "must own the data file") {
			t.Errorf("%s = %v", call, err)
		}
	}
}

func TestFolderWithoutSync(t *testing.T) {
	if err := (osFS{}).SyncDir("/proc"); err != nil { // there fsync answers EINVAL
		t.Error(err)
	}
}
