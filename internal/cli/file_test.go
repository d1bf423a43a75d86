package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// shell returns the arguments that run a script. It skips the test where there is no shell.
func shell(t *testing.T, script string) []string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX shell")
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	return []string{sh, "-c", script}
}

func writeNew(w io.Writer) error {
	_, err := io.WriteString(w, "new")
	return err
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, before := range []string{"", "old"} {
		if before != "" {
			if err := os.WriteFile(path, []byte(before), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := WriteFile(path, writeNew); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if string(text) != "new" {
			t.Errorf("file: got %q, %v, want %q", text, err, "new")
		}
		if runtime.GOOS == "windows" {
			continue // without modes
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("mode: got %v, want 0600", got)
		}
	}
}

// A rename that may not be durable is an error.
func TestWriteFileSyncsDirectory(t *testing.T) {
	if os.Geteuid() <= 0 {
		t.Skip("root can read every directory, and Windows has no modes")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o300); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700) // so that it can be removed
	err := WriteFile(filepath.Join(dir, "file"), writeNew)
	const want = "file was written, but a power cut may undo that: open "
	if got := fmt.Sprint(err); !strings.Contains(got, want) {
		t.Errorf("WriteFile into a directory that can't be read: got %s, want %q", got, want)
	}
}

// A write that fails changes nothing, and nor does a path that has no regular file.
func TestWriteFileFails(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "old")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("old", filepath.Join(dir, "link")); err != nil {
		t.Skip(err) // Windows
	}
	fail := func(w io.Writer) error { return errors.Join(writeNew(w), errors.New("disk full")) }
	closeFile := func(w io.Writer) error { return w.(io.Closer).Close() }
	for _, tt := range []struct {
		path  string
		write func(io.Writer) error
		want  string // contained in the error
	}{
		{"old", fail, "old was not written: disk full"},
		{"never", fail, "never was not written: disk full"},
		{"unsynced", closeFile, "unsynced was not written: sync "}, // so it is synced before the rename
		{"link", writeNew, "link is not a regular file"},
		{".", writeNew, "is not a regular file"},
		{"none/new", writeNew, "none/new was not written: open "},
	} {
		err := WriteFile(filepath.Join(dir, tt.path), tt.write)
		if got := fmt.Sprint(err); !strings.Contains(got, tt.want) {
			t.Errorf("WriteFile(%s): got %s, want %q", tt.path, got, tt.want)
		}
	}
	text, err := os.ReadFile(old)
	if string(text) != "old" {
		t.Errorf("old file: got %q, %v, want %q", text, err, "old")
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 2 { // old and link
		t.Errorf("directory: got %v, want old and link", left)
	}
}
