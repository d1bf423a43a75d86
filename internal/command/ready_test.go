package command

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// anywhere lets a ready file be at every path.
func anywhere(string) error { return nil }

func TestReady(t *testing.T) {
	t.Parallel()
	dir, pid := t.TempDir(), strconv.Itoa(os.Getpid())
	path := filepath.Join(dir, "ready.json")
	for _, tt := range []struct {
		ready         Ready
		printed, file string
	}{
		{
			Ready{{"base_url", "http://b"}, {"data", "d\x1b\u009b"}, {"ready", "curl <&>"}},
			"base_url: http://b\ndata: d??\nready: curl <&>\n",
			`{"base_url":"http://b","data":"d\u001b` + "\u009b" + `","ready":"curl <&>","pid":` + pid + "}\n",
		},
		{Ready{{"ready", "curl"}}, "ready: curl\n", `{"ready":"curl","pid":` + pid + "}\n"},
	} {
		file := ReadyFile{path, anywhere}
		if err := os.WriteFile(path, []byte(`{"ready":"of an earlier server","pid":1}`), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := file.Prepare(); err != nil {
			t.Fatal(err)
		}
		err := file.Write(tt.ready)
		if b, _ := os.ReadFile(path); string(b) != tt.file || err != nil {
			t.Errorf("the ready file is %q, %v, want %q", b, err, tt.file)
		}
		if printed := tt.ready.String(); printed != tt.printed {
			t.Errorf("the lines are %q, want %q", printed, tt.printed)
		}
		info, files := must(os.Stat(path)), must(os.ReadDir(dir))
		if len(files) != 1 || info.Mode() != 0o600 && runtime.GOOS != "windows" {
			t.Errorf("there are %v, the ready file with %v, want it alone with 0600", files, info.Mode())
		}
		file.Remove(tt.ready)
	}
}

func TestReadyFileFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ready.json")
	if err := (ReadyFile{"", anywhere}).Write(Ready{{"ready", "curl"}}); err != nil {
		t.Errorf("Write of none = %v", err)
	}
	file := ReadyFile{path, anywhere}
	if err := file.Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil { // the ready file was not there
		t.Fatal(err)
	}
	err := file.Write(Ready{})
	if err == nil || !strings.HasPrefix(err.Error(), "-ready-file: ") {
		t.Errorf("Write over a folder = %v", err)
	}
	err = ReadyFile{filepath.Join(path, "no", "ready.json"), anywhere}.Prepare()
	if err == nil || !strings.HasPrefix(err.Error(), "-ready-file: ") {
		t.Errorf("Prepare in no folder = %v", err)
	}
}

// A path that the server needs for itself is refused when it is checked, and again when the file is
// written: the server may have made its own file there by then.
func TestReadyFileChecks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ready.json")
	taken := errors.New("it belongs to the server")
	if err := (ReadyFile{path, func(string) error { return taken }}).Prepare(); !errors.Is(err, taken) {
		t.Errorf("Prepare = %v, want %v", err, taken)
	}
	file := ReadyFile{path, func(checked string) error {
		if _, err := os.Stat(checked); err == nil {
			return taken
		}
		return nil
	}}
	if err := file.Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("of the server"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := file.Write(Ready{{"ready", "curl"}})
	file.Remove(Ready{{"ready", "curl"}})
	if content, _ := os.ReadFile(path); !errors.Is(err, taken) || string(content) != "of the server" {
		t.Errorf("Write = %v and left %q, want %v and the file as it was", err, content, taken)
	}
}

// A script that waits for a ready file at its path finds a whole one: no other comes before.
func TestPrepareShowsNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ready.json")
	file := ReadyFile{path, anywhere}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			if err := file.Prepare(); err != nil {
				t.Error(err)
			}
		}
	}()
	for {
		select {
		case <-done:
			return
		default:
		}
		if _, err := os.Lstat(path); err == nil {
			t.Fatal("Prepare puts a file at the path")
		}
	}
}

// A server removes its own ready file alone.
func TestRemoveFile(t *testing.T) {
	t.Parallel()
	ReadyFile{"", anywhere}.Remove(Ready{})
	const earlier, next = `{"ready":"of an earlier server","pid":1}`, `{"ready":"of the next server","pid":1}`
	ours := Ready{{"ready", "curl"}}
	for _, tt := range []struct {
		name, before string
		written      bool
		during, left string
	}{
		{"never written", "", false, "", ""},
		{"written", "", true, "", ""},
		{"written in the place of an earlier one", earlier, true, "", ""},
		{"written in the place of an empty file", "\x00", true, "", ""}, // stands for no bytes
		{"never written, and another one came", earlier, false, next, next},
		{"written, and another one came", "", true, next, next},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "ready.json")
			file := ReadyFile{path, anywhere}
			put := func(content string) {
				if content == "" {
					return
				}
				if err := os.WriteFile(path, []byte(strings.Trim(content, "\x00")), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			put(tt.before)
			if err := file.Prepare(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); err == nil {
				t.Error("the ready file of an earlier server is there still")
			}
			if tt.written {
				if err := file.Write(ours); err != nil {
					t.Fatal(err)
				}
			}
			put(tt.during)
			file.Remove(ours)
			b, _ := os.ReadFile(path)
			if files := must(os.ReadDir(dir)); string(b) != tt.left || len(files) > 1 {
				t.Errorf("RemoveFile left %v with %q, want %q", files, b, tt.left)
			}
			put(next)
			if file.Remove(ours); len(must(os.ReadDir(dir))) != 1 {
				t.Error("a second RemoveFile took away the file of the next server")
			}
		})
	}
}

// A wrong path must not cost a file.
func TestNotReadyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"data": "[\n{}\n]\n", "seed": " [", "text": "# Read me\n", "config": `{"my":"config"}`,
		"long": `{"ready":"curl","pid":1}` + strings.Repeat(" ", maxReady) + "x",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := (ReadyFile{path, anywhere}).Prepare(); err == nil || string(must(os.ReadFile(path))) != content {
			t.Errorf("Prepare of %s = %v", name, err)
		}
	}
	if err := os.Symlink("nothing", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "link")} {
		if err := (ReadyFile{path, anywhere}).Prepare(); err == nil || !strings.Contains(err.Error(), "no ready file") {
			t.Errorf("Prepare of %s = %v", path, err)
		}
	}
	if left := must(os.ReadDir(dir)); len(left) != 6 {
		t.Errorf("there is %v", left)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	server := func(status int) (port string) {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method+" "+r.RequestURI != "GET /healthz" {
				t.Errorf("%s %s, want GET /healthz", r.Method, r.RequestURI)
			}
			w.WriteHeader(status)
			if status == http.StatusServiceUnavailable {
				io.WriteString(w, `{"error":{"code":"server_error","message":"the disk is full"}}`)
			}
		}))
		t.Cleanup(srv.Close)
		return srv.URL[strings.LastIndexByte(srv.URL, ':'):]
	}
	well, ill := server(http.StatusOK), server(http.StatusServiceUnavailable)
	other := server(http.StatusNotFound)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"well": `{"base_url":"http://127.0.0.1` + well + `/api/v1","ready":"curl","pid":1}`,
		"ill":  `{"base_url":"http://127.0.0.1` + ill + `/api/v1","ready":"curl","pid":1}`,
		"cut":  `{"base_url":`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const nobody = "127.0.0.1:1" // tcpmux
	for _, tt := range []struct{ addr, file, want string }{
		{"127.0.0.1" + well, "", ""},
		{"localhost" + well, "none", ""},
		{well, "ill", ""},
		{"0.0.0.0" + well, "", ""},
		{"[::]" + well, "", ""},
		{":0", "well", ""},
		{"127.0.0.1:0", "well", ""},
		{"127.0.0.1:0", "ill", "http://127.0.0.1" + ill + " answered 503"},
		{"localhost" + ill, "well", "http://localhost" + ill + " answered 503 Service Unavailable: the disk is full"},
		{"localhost" + other, "", "http://localhost" + other + " answered 404 Not Found: it is another program"},
		{nobody, "well", "no answer from http://" + nobody + ": "},
		{":0", "none", "no answer from http://127.0.0.1:0: "},
		{":0", "cut", "no answer from http://127.0.0.1:0: "},
		{"a b:80", "well", "no answer from http://a b:80: "},
	} {
		asked, err := Health(tt.addr, filepath.Join(dir, tt.file))
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("Health(%q, %q) = %v, want %q", tt.addr, tt.file, err, tt.want)
		}
		if err == nil && (!strings.HasPrefix(asked, "http://") || !strings.HasSuffix(asked, well)) {
			t.Errorf("Health(%q, %q) asked %s, want port %s", tt.addr, tt.file, asked, well)
		}
	}
}

// Others may write to the folder of the ready file. A link that they put in its place, or in
// that of its temporary name, is not followed, and a pipe in its own place is not opened.
func TestReadyFileAmongOthers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("neither links nor pipes")
	}
	dir := t.TempDir()
	path, theirs := filepath.Join(dir, "ready.json"), filepath.Join(dir, "theirs")
	if err := os.WriteFile(theirs, []byte("as it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(theirs, path); err != nil {
		t.Fatal(err)
	}
	file, ready := ReadyFile{path, anywhere}, Ready{{"ready", "curl"}}
	if err := file.Write(ready); err != nil {
		t.Errorf("WriteFile = %v", err)
	}
	if info := must(os.Lstat(path)); !info.Mode().IsRegular() {
		t.Errorf("the ready file is %v, want a file in the place of the link", info.Mode())
	}
	err := replace(path, func(w io.Writer) error {
		tmp := must(filepath.Glob(path + ".*.tmp"))[0]
		err := errors.Join(os.Remove(tmp), os.Symlink(theirs, tmp))
		io.WriteString(w, "svc_live_secret")
		return err
	})
	if err != nil {
		t.Errorf("replace = %v", err)
	}
	if b := must(os.ReadFile(theirs)); string(b) != "as it was" {
		t.Errorf("a link was followed: %s", b)
	}
	os.Remove(path)
	if err := exec.Command("mkfifo", path).Run(); err != nil {
		t.Fatal(err)
	}
	file.Remove(ready) // which waits for nobody
	if _, err := Health("127.0.0.1:0", path); err == nil {
		t.Error("Health took a pipe for a ready file")
	}
	if info := must(os.Lstat(path)); info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("Remove left %v, want the pipe of others", info.Mode())
	}
}
