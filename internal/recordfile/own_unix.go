//go:build unix

package recordfile

import (
	"io/fs"
	"os"
	"syscall"
)

// own gives a new file the owner and group of another: who is root must not take
// the data file away from the service. Others cannot give a file away, and need not.
func own(f *os.File, like fs.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	is, want := info.Sys().(*syscall.Stat_t), like.Sys().(*syscall.Stat_t)
	if is.Uid == want.Uid && is.Gid == want.Gid {
		return nil
	}
	if err := f.Chown(int(want.Uid), int(want.Gid)); os.Geteuid() == 0 {
		return err
	}
	return nil
}
