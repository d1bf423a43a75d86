package command

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A file is written whole or not at all, with no permissions for others, and never in the
// place of what is no regular file.
func TestWriteFile(t *testing.T) {
	t.Parallel()
	dir := must(filepath.EvalSymlinks(t.TempDir()))
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.WriteFile(in("old"), []byte("old"), 0o644),
		os.Mkdir(in("folder"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"link": "old", "nowhere": "nothing", "loop": "loop", "other": "folder"}
	for name, target := range links {
		if err := os.Symlink(target, in(name)); err != nil {
			t.Skip(err) // Windows
		}
	}
	errBroken := errors.New("broken")
	for _, tt := range []struct {
		path    string
		fails   error
		written string // the file that then has the new text
		want    string // contained in the error
	}{
		{"new", nil, "new", ""},
		{"old", nil, "old", ""},
		{"folder/../new", nil, "new", ""},
		{"other/new", nil, "folder/new", ""}, // a folder on the way may be a link
		{"old", errBroken, "", "/old was not written: broken"},
		{"never", errBroken, "", "/never was not written: broken"},
		{"link", nil, "", "link is not a regular file"},
		{"nowhere", nil, "", "nowhere is not a regular file"},
		{"folder", nil, "", "folder is not a regular file"},
		{"loop", nil, "", "loop is not a regular file"},
		{"none/new", nil, "", "none/new cannot be written: no such file or directory"},
	} {
		if err := os.WriteFile(in("old"), []byte("as before"), 0o644); err != nil {
			t.Fatal(err)
		}
		err := WriteFile(in(tt.path), func(w io.Writer) error {
			io.WriteString(w, "the new text")
			return tt.fails
		})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("WriteFile(%s) = %v, want %q", tt.path, err, tt.want)
		}
		entries := slices.Concat(must(filepath.Glob(in("*"))), must(filepath.Glob(in("folder/*"))))
		for _, name := range entries {
			isTmp := strings.HasSuffix(name, ".tmp")
			text, _ := os.ReadFile(name)
			info := must(os.Lstat(name))
			if !info.Mode().IsRegular() {
				continue
			}
			isNew := string(text) == "the new text"
			if isTmp || isNew != (name == in(tt.written)) || isNew && info.Mode().Perm() != 0o600 {
				t.Errorf("after WriteFile(%s), %s has %v and %q", tt.path, name, info.Mode(), text)
			}
		}
		os.Remove(in("new"))
		os.Remove(in("folder/new"))
	}
}
