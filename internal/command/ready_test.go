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
	"time"
)

func TestReady(t *testing.T) {
	t.Parallel()
	dir, pid := t.TempDir(), strconv.Itoa(os.Getpid())
	path := filepath.Join(dir, "ready.json")
	for _, tt := range []struct {
		ready         Ready
		printed, file string
	}{
		{
			Ready{"http://b", "k", "d", "o", "http://c", "t", "http://i", "curl <&>", 0},
			"base_url: http://b\napi_key: k\ndata: d\noperator: o\n" +
				"control_url: http://c\ncontrol_token: t\ninspector: http://i\nready: curl <&>\n",
			`{"base_url":"http://b","api_key":"k","data":"d","operator":"o",` +
				`"control_url":"http://c","control_token":"t","inspector":"http://i","ready":"curl <&>","pid":` + pid + "}\n",
		},
		{
			Ready{BaseURL: "http://b", Data: "d", Ready: "curl"},
			"base_url: http://b\ndata: d\nready: curl\n",
			`{"base_url":"http://b","data":"d","ready":"curl","pid":` + pid + "}\n",
		},
	} {
		if err := os.WriteFile(path, []byte(`{"ready":"of an earlier server","pid":1}`), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := PrepareReadyFile(path); err != nil {
			t.Fatal(err)
		}
		err := tt.ready.WriteFile(path)
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
		tt.ready.RemoveFile(path)
	}
}

func TestReadyFileFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ready.json")
	if err := (Ready{BaseURL: "http://b"}).WriteFile(""); err != nil {
		t.Errorf("WriteFile of none = %v", err)
	}
	if err := PrepareReadyFile(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil { // the ready file was not there
		t.Fatal(err)
	}
	err := (Ready{}).WriteFile(path)
	if err == nil || !strings.HasPrefix(err.Error(), "-ready-file: ") {
		t.Errorf("WriteFile over a folder = %v", err)
	}
	err = PrepareReadyFile(filepath.Join(path, "no", "ready.json"))
	if err == nil || !strings.HasPrefix(err.Error(), "-ready-file: ") {
		t.Errorf("PrepareReadyFile in no folder = %v", err)
	}
}

// A script that waits for a ready file at its path finds a whole one: no other comes before.
func TestPrepareShowsNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ready.json")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			if err := PrepareReadyFile(path); err != nil {
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
			t.Fatal("PrepareReadyFile puts a file at the path")
		}
	}
}

// A server removes its own ready file alone.
func TestRemoveFile(t *testing.T) {
	t.Parallel()
	Ready{}.RemoveFile("")
	const earlier, next = `{"ready":"of an earlier server","pid":1}`, `{"ready":"of the next server","pid":1}`
	ours := Ready{Ready: "curl"}
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
			put := func(content string) {
				if content == "" {
					return
				}
				if err := os.WriteFile(path, []byte(strings.Trim(content, "\x00")), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			put(tt.before)
			if err := PrepareReadyFile(path); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); err == nil {
				t.Error("the ready file of an earlier server is there still")
			}
			if tt.written {
				if err := ours.WriteFile(path); err != nil {
					t.Fatal(err)
				}
			}
			put(tt.during)
			ours.RemoveFile(path)
			b, _ := os.ReadFile(path)
			if files := must(os.ReadDir(dir)); string(b) != tt.left || len(files) > 1 {
				t.Errorf("RemoveFile left %v with %q, want %q", files, b, tt.left)
			}
			put(next)
			if ours.RemoveFile(path); len(must(os.ReadDir(dir))) != 1 {
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
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := PrepareReadyFile(path); err == nil || string(must(os.ReadFile(path))) != content {
			t.Errorf("PrepareReadyFile of %s = %v", name, err)
		}
	}
	if err := os.Symlink("nothing", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "link")} {
		if err := PrepareReadyFile(path); err == nil || !strings.Contains(err.Error(), "no ready file") {
			t.Errorf("PrepareReadyFile of %s = %v", path, err)
		}
	}
	if left := must(os.ReadDir(dir)); len(left) != 5 {
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
		}))
		t.Cleanup(srv.Close)
		return srv.URL[strings.LastIndexByte(srv.URL, ':'):]
	}
	well, ill := server(http.StatusOK), server(http.StatusServiceUnavailable)
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
		{"localhost" + ill, "well", "http://localhost" + ill + " answered 503 Service Unavailable: it"},
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
	ready := Ready{Ready: "curl", Key: "svc_live_secret"}
	if err := ready.WriteFile(path); err != nil {
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
	removed := make(chan bool)
	go func() {
		ready.RemoveFile(path)
		close(removed)
	}()
	select {
	case <-removed:
	case <-time.After(5 * time.Second):
		t.Fatal("RemoveFile waits for a pipe at the path")
	}
	if info := must(os.Lstat(path)); info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("RemoveFile left %v, want the pipe of others", info.Mode())
	}
}
