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

// Who is root works on the file of another user, and leaves it to that user, with its mode.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	open777, err := os.MkdirTemp("", "own")
	ok(t, err)
	defer os.RemoveAll(open777)
	ok(t, os.Chmod(open777, 0o777))
	path := filepath.Join(open777, "events.json")
	ok(t, os.Rename(create(t, []string{"1"}), path))
	const service = 65534
	ok(t, os.Chown(path, service, service))
	ok(t, os.Chmod(path, 0o640))
	f, _ := open(t, path)
	if info, err := os.Stat(path + ".lock"); err != nil || info.Sys().(*syscall.Stat_t).Uid != service {
		t.Errorf("the lock is not of who owns the data file: %v, %v", info, err)
	}
	ok(t, f.Rewrite(seq("2")))
	info, err := os.Stat(path)
	ok(t, err)
	if s := info.Sys().(*syscall.Stat_t); s.Uid != service || s.Gid != service || info.Mode() != 0o640 {
		t.Errorf("after a rewrite the file is of %d:%d, %v", s.Uid, s.Gid, info.Mode())
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ok(t, syscall.Setfsuid(1234)) // who may give away nothing
	defer syscall.Setfsuid(0)
	err = f.Rewrite(seq("3"))
	if err == nil || !strings.Contains(err.Error(), "owner of the data file") || f.Err() != nil {
		t.Errorf("Rewrite without the right to give a file away = %v, Err = %v", err, f.Err())
	}
	if _, err := os.Stat(path + ".tmp"); err == nil {
		t.Error("a file was left that could not belong to the owner of the data file")
	}
}

// In a folder in which nothing may be written, a file can be read, and not opened.
func TestReadOnlyFolder(t *testing.T) {
	path := create(t, []string{"1"}, "2")
	dir := filepath.Dir(path)
	ok(t, os.Chmod(path, 0o644))
	ok(t, os.Remove(path+".lock"))
	ok(t, os.Chmod(dir, 0o555))
	defer os.Chmod(dir, 0o755)
	if os.Geteuid() == 0 {
		for p := filepath.Dir(dir); p != "/"; p = filepath.Dir(p) {
			if info, err := os.Stat(p); err != nil || info.Mode()&1 == 0 {
				ok(t, os.Chmod(p, info.Mode().Perm()|0o011))
				defer os.Chmod(p, info.Mode().Perm())
			}
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		ok(t, syscall.Setfsuid(65534))
		defer syscall.Setfsuid(0)
	}
	_, err := Open(path, options, ignore)
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Open = %v, want %v", err, fs.ErrPermission)
	}
	if report, err := Read(path, options, ignore); err != nil || report.Lines != 4 {
		t.Errorf("Read = %+v, %v", report, err)
	}
}

func TestFolderWithoutSync(t *testing.T) {
	proc, err := os.Open("/proc") // where fsync answers EINVAL
	ok(t, err)
	defer proc.Close()
	if err := (osFS{}).SyncDir(proc); err != nil {
		t.Error(err)
	}
}
