package command

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file is written whole or not at all, with no permissions for others, and never in the
// place of what is no regular file or belongs to the data file.
func TestWriteFile(t *testing.T) {
	t.Parallel()
	dir := must(filepath.EvalSymlinks(t.TempDir()))
	in := func(name string) string { return filepath.Join(dir, name) }
	data := in("events.json")
	if err := errors.Join(
		os.WriteFile(data, []byte("data"), 0o600),
		os.WriteFile(in("old"), []byte("old"), 0o644),
		os.Mkdir(in("folder"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"link": "old", "folder/link": "../old2", "toData": "events.json",
		"toLock": "events.json.lock", "loop": "loop"}
	for name, target := range links {
		if err := os.Symlink(target, in(name)); err != nil {
			t.Skip(err) // Windows
		}
	}
	errBroken := errors.New("broken")
	for _, tt := range []struct {
		path, data string
		fails      error
		written    string // the file that then has the new text
		want       string // contained in the error
	}{
		{"new", data, nil, "new", ""},
		{"old", data, nil, "old", ""},
		{"link", data, nil, "old", ""},
		{"folder/../new", data, nil, "new", ""},
		{"events.json.backup", data, nil, "events.json.backup", ""},
		{"events.json", in("other"), nil, "events.json", ""},
		{"old", data, errBroken, "", "/old was not written: broken"},
		{"never", data, errBroken, "", "/never was not written: broken"},
		{"events.json", data, nil, "", "events.json belongs to the data file"},
		{"events.json", in("toData"), nil, "", "events.json belongs to the data file"},
		{"toData", data, nil, "", "events.json belongs to the data file"},
		{"hard", data, nil, "", "hard belongs to the data file"},
		{"events.json.lock", data, nil, "", "events.json.lock belongs to the data file"},
		{"events.json.sock", data, nil, "", "events.json.sock belongs to the data file"},
		{"events.json.tmp", in("toData"), nil, "", "events.json.tmp belongs to the data file"},
		{"events.json.torn-20300101", data, nil, "", "belongs to the data file"},
		{"folder", data, nil, "", "folder is not a regular file"},
		{"loop", data, nil, "", "loop is not a regular file"},
		{"toLock", data, nil, "", "is not a regular file"}, // it leads to nothing yet
		{"none/new", data, nil, "", "none/new cannot be written: no such file or directory"},
	} {
		for _, name := range []string{"old", "events.json"} {
			if err := os.WriteFile(in(name), []byte("as before"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		os.Remove(in("hard"))
		if err := os.Link(data, in("hard")); err != nil {
			t.Fatal(err)
		}
		err := WriteFile(in(tt.path), tt.data, func(w io.Writer) error {
			io.WriteString(w, "the new text")
			return tt.fails
		})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("WriteFile(%s) = %v, want %q", tt.path, err, tt.want)
		}
		entries := must(filepath.Glob(in("*")))
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
		if tt.written != "" && tt.path != tt.written && tt.path == "link" &&
			must(os.Readlink(in("link"))) != "old" {
			t.Errorf("WriteFile(%s) replaced the link", tt.path)
		}
		for _, name := range []string{"new", "events.json.backup"} {
			os.Remove(in(name))
		}
	}
}
