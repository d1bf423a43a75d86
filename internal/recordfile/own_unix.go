//go:build unix

package recordfile

import (
	"io/fs"
	"os"
	"syscall"
)

// own gives a new file the owner and group of another: who is root must not take
// the data file away from the service.
func own(f *os.File, like fs.FileInfo) error {
	want, ok := like.Sys().(*syscall.Stat_t)
	if !ok || int(want.Uid) == os.Geteuid() && int(want.Gid) == os.Getegid() {
		return nil
	}
	err := f.Chown(int(want.Uid), int(want.Gid))
	if int(want.Uid) == os.Geteuid() {
		return nil // a group that is not ours would read nothing: the mode is 0600
	}
	return err
}
