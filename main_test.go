package events_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/events"
)

// process is the command as it runs, without a process.
type process struct {
	t      testing.TB
	lines  map[string]string // of stdout
	stdout string
	stderr *lockedBuffer
	stop   func() int // and the exit status
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// environment is a list of variables as [os.Environ] returns it.
func environment(vars map[string]string) (list []string) {
	for name, value := range vars {
		list = append(list, name+"="+value)
	}
	return list
}

// start runs a server until the test ends or stop is called.
func start(t testing.TB, vars map[string]string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	p := &process{t: t, lines: map[string]string{}, stderr: &lockedBuffer{}}
	done := make(chan int, 1)
	go func() {
		done <- events.Run(ctx, args, environment(vars), strings.NewReader(""), w, p.stderr)
		w.Close()
	}()
	p.stop = sync.OnceValue(func() int { cancel(); return <-done })
	t.Cleanup(func() { p.stop() })
	for sc := bufio.NewScanner(r); sc.Scan(); {
		p.stdout += sc.Text() + "\n"
		name, value, _ := strings.Cut(sc.Text(), ": ")
		p.lines[name] = value
		if name == "ready" {
			return p
		}
	}
	t.Fatalf("eventsd %q was not ready: exit %d, stdout %q, stderr %q", args, p.stop(), p.stdout, p.stderr)
	return nil
}

// command runs the command to its end.
func command(vars map[string]string, stdin string, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // ends an unexpected server
	defer cancel()
	code = events.Run(ctx, args, environment(vars), strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

func (p *process) get(path string) (status int, body string, header http.Header) {
	p.t.Helper()
	req, _ := http.NewRequest("GET", strings.TrimSuffix(p.lines["base_url"], base)+path, nil)
	req.Header.Set("x-service-api-key", p.lines["api_key"])
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), resp.Header
}

// makeFile creates a data file with an array of records.
func makeFile(t testing.TB, data, records string) {
	t.Helper()
	store, err := events.Open(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.ApplyJSON([]byte(records)); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// tempDir is a folder whose sockets have a path that is short enough.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestServeLines(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	data, other := filepath.Join(dir, "events.json"), filepath.Join(dir, "other.json")
	const key, chosen = `svc_live_[a-z2-7]{26}`, "svc_live_chosen_0123456789"
	const url = `http://127\.0\.0\.1:\d+/api/public/v1`
	const baseURL = "base_url: " + url + "\n"
	const page = `reference: http://127\.0\.0\.1:\d+/` + "\n"
	const memory = "data: memory\n" + page
	on := func(file string) string { return "data: " + file + "\n" + page }
	ready := func(key string) string { // a line to paste that lists events
		return `ready: curl -H "x-service-api-key: ` + key + `" ` + url + "/events\n"
	}
	tests := []struct {
		name   string
		args   []string
		want   string // of stdout, a regular expression
		stderr string // that it contains
	}{
		{"first", []string{"-addr", "127.0.0.1:0", "-data", data},
			baseURL + "api_key: " + key + "\n" + on(data) + ready(key), ""},
		{"later", []string{"serve", "-addr", "127.0.0.1:0", "-data", data},
			baseURL + on(data) + ready("<API_KEY>"), ""},
		{"later, with a key that it does not have",
			[]string{"-addr", "127.0.0.1:0", "-data", data, "-api-key", chosen},
			baseURL + on(data) + ready("<API_KEY>"), `WARN msg="-api-key was not used: the store has keys`},
		{"memory", []string{"-memory", "-data", data, "-addr", "127.0.0.1:0"},
			baseURL + "api_key: " + key + "\n" + memory + ready(key), ""},
		{"wildcard, no key", []string{"-memory", "-addr", ":0", "-first-key=false"},
			strings.ReplaceAll(baseURL+memory+ready("<API_KEY>"), `127\.0\.0\.1`, "localhost"), "not loopback"},
		{"a chosen key",
			[]string{"-addr", "127.0.0.1:0", "-data", other, "-api-key", chosen, "-first-key=false"},
			baseURL + on(other) + ready("<API_KEY>"), ""},
		{"a chosen key, later", []string{"-addr", "127.0.0.1:0", "-data", other, "-api-key", chosen},
			baseURL + on(other) + ready("<API_KEY>"), ""},
		{"demo", []string{"demo", "-addr", "127.0.0.1:0"},
			baseURL + "api_key: svc_live_demo\n" + memory + ready("svc_live_demo"), ""},
		{"double", []string{"double", "-api-key", chosen, "-control-token", "t"},
			baseURL + "api_key: " + chosen + "\n" +
				`control_url: http://127\.0\.0\.1:\d+/_control` + "\ncontrol_token: t\n" + page +
				`inspector: http://127\.0\.0\.1:\d+/_control/#token=t` + "\n" +
				`ready: curl -H 'Authorization: Bearer t' -d '\{"name":"Grace"\}' ` +
				`http://127\.0\.0\.1:\d+/_control/keys` + "\n", ""},
	}
	for _, tt := range tests { // in order: later ones find what earlier ones made
		p := start(t, nil, tt.args...)
		if !regexp.MustCompile(`\A` + tt.want + `\z`).MatchString(p.stdout) {
			t.Errorf("%s: stdout is\n%s\nwant\n%s", tt.name, p.stdout, tt.want)
		}
		if p.lines["api_key"] == "" && strings.HasPrefix(tt.name, "a chosen key") {
			p.lines["api_key"] = chosen
		}
		if p.lines["api_key"] != "" {
			if status, body, _ := p.get(base + "/users/me"); status != 200 {
				t.Errorf("%s: GET /users/me = %d %s", tt.name, status, body)
			}
		}
		if code := p.stop(); code != 0 {
			t.Errorf("%s: exit status %d, stderr %s", tt.name, code, p.stderr)
		}
		stderr := p.stderr.String()
		if !strings.Contains(stderr, tt.stderr) || strings.Contains(stderr, "svc_live_") {
			t.Errorf("%s: stderr is %s, want %q and no key", tt.name, stderr, tt.stderr)
		}
		if strings.Contains(tt.name, "wildcard") != strings.Contains(stderr, "not loopback") {
			t.Errorf("%s: stderr is %s", tt.name, stderr)
		}
		unused := tt.name == "later, with a key that it does not have"
		if got := strings.Contains(stderr, "-api-key was not used"); got != unused {
			t.Errorf("%s: stderr says that -api-key was not used: %v, want %v", tt.name, got, unused)
		}
	}
	for _, file := range []string{data, other} {
		if b, err := os.ReadFile(file); err != nil || bytes.Contains(b, []byte("svc_live_")) {
			t.Errorf("%s holds a secret, or %v", file, err)
		}
	}
}

// No mistake on the command line makes a secret appear in an error.
func TestSecretMistakes(t *testing.T) {
	t.Parallel()
	const rule = "-api-key must be svc_live_ and 1 to 246 of A-Z a-z 0-9 . _ ~ -"
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-memory", "-addr", "127.0.0.1:0", "-api-key", "hunter2"}, rule},
		{[]string{"-memory", "-addr", "127.0.0.1:0", "-api-key", "svc_live_"}, rule},
		{[]string{"-memory", "-addr", "127.0.0.1:0", "-api-key", "svc_live_hunter2\n"}, rule},
		{[]string{"double", "-api-key", "svc_live hunter2"}, rule},
		{[]string{"-memory", "-api-key=", "hunter2"}, "nothing may follow the flags of serve"},
		{[]string{"double", "-control-token=", "hunter2"}, "double takes a command behind --"},
		{[]string{"-apikey=hunter2"}, "flag provided but not defined: -apikey"},
		{[]string{"key", "list", "-api-key", "hunter2"}, "flag provided but not defined: -api-key"},
		{[]string{"-v=svc_live_hunter2"}, "invalid boolean value"},
		{[]string{"svc_live_hunter2"}, "unknown subcommand"},
	} {
		code, out, stderr := command(nil, "", tt.args...)
		secret := strings.Contains(stderr, "hunter")
		if code != 2 || out != "" || !strings.Contains(stderr, tt.want) || secret {
			t.Errorf("eventsd %q = %d %q %q, want 2 and %q", tt.args, code, out, stderr, tt.want)
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, content string) string {
		file := in(name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	start(t, nil, "-addr", "127.0.0.1:0", "-data", in("running.json"))
	any := "-addr=127.0.0.1:0"
	const refused = `[{"user":{"name":"x","email":"x@example.com"}},` +
		`{"guest":{"event_id":"evt_x","name":"x"}}]`
	type mistake struct {
		name string
		args []string
		want string // contained in the line
	}
	refuses := func(status int, tests []mistake) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				code, out, stderr := command(nil, "", tt.args...)
				lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
				oneLine := len(lines) == 1 && strings.HasPrefix(lines[0], "eventsd: ")
				if code != status || out != "" || !oneLine || !strings.Contains(lines[0], tt.want) {
					t.Errorf("eventsd %q = %d, stdout %q, stderr %q, want %d and one line with %q",
						tt.args, code, out, stderr, status, tt.want)
				}
			})
		}
	}
	refuses(2, []mistake{
		{"subcommand", []string{"server"},
			`unknown subcommand "server"; it must be one of serve, demo, double, `},
		{"half a subcommand", []string{"key"},
			`unknown subcommand "key"; it must be one of key issue, key list, key revoke; see eventsd help`},
		{"an empty key", []string{any, "-memory", "-api-key="}, "-api-key must be svc_live_"},
		{"a mistyped subcommand", []string{"key", "isue", "-user", "usr_x"},
			`unknown subcommand "key isue"; it must be one of key issue, key list, key revoke; see eventsd help`},
		{"a dump of nobody", []string{"dump", "-data", in("running.json"), "-user", ""},
			"-user is empty: give the ID of a user, or leave -user out for all records"},
		{"unknown flag", []string{"-port", "80"},
			"flag provided but not defined: -port; see eventsd help serve"},
		{"flag value", []string{"-first-key=no"},
			`invalid boolean value "no" for -first-key: it must be true or false; see eventsd help serve`},
		{"argument", []string{"serve", "events.json"}, "nothing may follow the flags of serve"},
		{"a command without --", []string{"double", "npm", "test"}, "double takes a command behind --"},
		{"-- without a command", []string{"double", "--"}, "double takes a command behind --"},
		{"a command beside serve", []string{any, "-memory", "--", "npm", "test"},
			"nothing may follow the flags of serve"},
		{"a bad time", []string{"double", "-time", "tomorrow"}, "-time must be a date-time such as"},
		{"token with a quote", []string{"double", "-control-token", "a'b"},
			"-control-token must have visible ASCII characters only, and no single quote"},
		{"status", []string{any, "-memory", "-new-event-status", "live"},
			`-new-event-status must be draft or published, not "live"`},
		{"log", []string{any, "-memory", "-log", "xml"}, `-log must be text or json, not "xml"`},
		{"address", []string{"-memory", "-addr", "nowhere"}, `-addr "nowhere"`},
		{"no address", []string{"-memory", "-addr", ""}, "-addr is empty: give HOST:PORT"},
		{"port out of range", []string{"-memory", "-addr", "127.0.0.1:99999"}, "99999"},
		{"revoke nothing", []string{"key", "revoke", "-data", in("running.json")}, "key revoke takes one ID"},
		{"issue for nobody", []string{"key", "issue", "-data", in("running.json")},
			"key issue takes -user ID, or -email EMAIL"},
		{"help of nothing", []string{"help", "me"}, `unknown subcommand "me"`},
	})
	refuses(1, []mistake{
		{"a data file for a seed", []string{any, "-memory", "-seed", in("running.json")},
			"is a data file, not an array of records"},
		{"a key that the seed has", []string{"double", any, "-api-key", "svc_live_ada",
			"-seed", write("ada.json", seed)}, "the first user can't have the chosen API key: " +
			"record 1: key: user_id never changes"},
		{"an email of nobody", []string{"key", "issue", "-data", in("running.json"), "-email", "x@example.com"},
			"no user has this email yet"},
		{"a key for no server", []string{"key", "issue", "-data", in("unmade.json"), "-name", "x",
			"-email", "x@example.com"},
			"unmade.json: no such file or directory; give the -data of the server; a demo"},
		{"records for no server", []string{"apply", "-data", in("unmade.json"), write("nothing.json", "[]")},
			"unmade.json: no such file or directory; give the -data of the server; a demo"},
		{"a dump of no file, which makes none", []string{"dump", "-data", in("unmade.json")},
			"unmade.json: no such file or directory; give the -data of the server; a demo"},
		{"check of nothing", []string{"check", "-data", in("none.json")}, "none.json: no such file"},
		{"port taken", []string{"-memory", "-addr", l.Addr().String()}, "the port being free"},
		{"folder for a file", []string{any, "-data", dir}, dir},
		{"no such folder", []string{any, "-data", in("no/events.json")}, "no such file or directory"},
		{"empty file", []string{any, "-data", write("empty.json", "")}, "empty"},
		{"foreign file", []string{any, "-data", write("foreign.json", "{}\n")}, "foreign.json"},
		{"a seed for a data file", []string{any, "-data", write("seed.json", seed)}, "-seed"},
		{"no seed", []string{any, "-memory", "-seed", in("none.json")}, "none.json"},
		{"seed not JSON", []string{any, "-memory", "-seed", write("broken.json", "[\n{\"user\":\n")},
			"broken.json: the records are not a JSON array: line 3"},
		{"seed refused", []string{any, "-memory", "-seed", write("bad.json", refused)},
			`bad.json: record 2: guest: event_id "evt_x" is not known`},
		{"apply refused", []string{"apply", "-data", in("running.json"), in("bad.json")},
			`record 2: guest: event_id "evt_x" is not known`},
		{"apply no file", []string{"apply", "-data", in("running.json"), in("none.json")}, "none.json"},
		{"revoke unknown", []string{"key", "revoke", "-data", in("running.json"), "key_x"},
			`key "key_x": not found`},
		{"issue for an unknown user", []string{"key", "issue", "-data", in("running.json"), "-user", "usr_x"},
			`user "usr_x": not found`},
		{"issue for a new email without a name",
			[]string{"key", "issue", "-data", in("running.json"), "-email", "x@example.com"}, "user: name "},
		{"keys of nothing", []string{"key", "list", "-data", in("none.json")},
			"none.json: no such file or directory; give the -data of the server"},
		{"dump of nothing", []string{"dump", "-data", in("none.json")}, "none.json"},
	})
	unmade := in("unmade.json")
	if _, err := os.Stat(unmade); !os.IsNotExist(err) {
		t.Errorf("a store was made for a server that could not start: %v", err)
	}
	t.Run("environment", func(t *testing.T) {
		code, _, stderr := command(map[string]string{"EVENTSD_FIRST_KEY": "perhaps"}, "")
		if code != 2 || !strings.Contains(stderr, `invalid value "perhaps" of EVENTSD_FIRST_KEY`) {
			t.Errorf("= %d %q", code, stderr)
		}
	})
}

func TestPublicRoutes(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "demo", "-addr", "127.0.0.1:0")
	_, openapi, _ := p.get(base + "/openapi")
	for path, want := range map[string]string{"/healthz": `{"status":"ok"}`, "/openapi.json": openapi} {
		status, body, header := p.get(path)
		if status != 200 || body != want || header.Get("Content-Type") != "application/json" ||
			header.Get("Cache-Control") != "no-store" || header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("GET %s = %d %.100s %v", path, status, body, header)
		}
	}
	for _, path := range []string{
		"/index.html", "/healthz/", "/favicon.ico", "/_control/", "/_control/keys", "/keys", "/records",
	} {
		if status, body, _ := p.get(path); status != 404 || !strings.Contains(body, `"not_found"`) {
			t.Errorf("GET %s = %d %s, want 404", path, status, body)
		}
	}
	resp, err := http.Post(strings.TrimSuffix(p.lines["base_url"], base)+"/healthz", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 405 || resp.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST /healthz = %s %v, want 405", resp.Status, resp.Header)
	}
}

// TestOperator runs every operator subcommand on a running server and on the
// file itself: the same in both.
func TestOperator(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprintf("running=%v", running), func(t *testing.T) {
			t.Parallel()
			dir := tempDir(t)
			data := filepath.Join(dir, "events.json")
			env := map[string]string{"EVENTSD_DATA": data}
			var p *process
			if running {
				p = start(t, nil, "-addr", "127.0.0.1:0", "-data", data, "-first-key=false")
			} else {
				makeFile(t, data, `[{"user":{"id":"usr_bob","name":"Bob","email":"bob@example.com"}}]`)
			}
			report := "" // what the last command said on stderr
			run := func(stdin string, args ...string) string {
				t.Helper()
				code, out, stderr := command(env, stdin, args...)
				if code != 0 {
					t.Fatalf("eventsd %q = %d %q %q, want 0", args, code, out, stderr)
				}
				report = stderr
				return out
			}
			reported := func(want string) {
				t.Helper()
				if report != "eventsd: "+want+"\n" {
					t.Errorf("stderr is %q, want %q", report, want)
				}
			}
			first := run("", "key", "issue", "-name", "Ada Lovelace", "-email", "ada@example.com")
			first = strings.TrimSuffix(first, "\n")
			second := strings.TrimSuffix(run("", "key", "issue", "-email", "ADA@example.com"), "\n")
			if !regexp.MustCompile(`^svc_live_[a-z2-7]{26}$`).MatchString(first) || first == second {
				t.Errorf("key issue printed %q and %q", first, second)
			}
			var keys []struct {
				ID     string
				UserID string `json:"user_id"`
			}
			err := json.Unmarshal([]byte(run("", "key", "list", "-json")), &keys)
			if err != nil || len(keys) != 2 || keys[0].UserID != keys[1].UserID {
				t.Fatalf("key list -json = %v %v, want two keys of one user", keys, err)
			}
			var issued struct{ ID, Key, User string }
			line := run("", "key", "issue", "-json", "-user", keys[0].UserID)
			if err := json.Unmarshal([]byte(line), &issued); err != nil || issued.User != keys[0].UserID ||
				line != fmt.Sprintf(`{"id":%q,"key":%q,"user":%q}`+"\n", issued.ID, issued.Key, issued.User) {
				t.Errorf("key issue -json printed %s", line)
			}
			third := issued.Key
			reported("issued " + issued.ID + " of Ada Lovelace, ada@example.com (" + issued.User +
				"); the secret is shown this once")
			whose := keys[0].ID + " of Ada Lovelace, ada@example.com (" + keys[0].UserID + ")"
			run("", "key", "revoke", keys[0].ID)
			reported("revoked " + whose)
			run("", "key", "revoke", keys[0].ID) // as a script may that is run again
			if !strings.HasPrefix(report, "eventsd: "+whose+" was revoked before, at 20") {
				t.Errorf("a second revoke reports %s", report)
			}
			table := run("", "key", "list")
			lines := strings.Split(table, "\n")
			if len(lines) != 5 || !strings.HasPrefix(lines[0], "ID ") ||
				!strings.Contains(lines[1], first[len(first)-4:]) ||
				strings.HasSuffix(lines[1], "-") || !strings.HasSuffix(lines[2], "-") {
				t.Errorf("key list =\n%s", table)
			}
			run(`[{"event":{"id":"evt_1","host_id":"`+keys[0].UserID+`","title":"One",`+
				`"start_at":"2027-03-01T10:00:00Z","end_at":"2027-03-01T12:00:00Z"}},`+
				`{"guest":{"event_id":"evt_1","name":"Grace"}}]`, "apply")
			reported("applied 2 records")
			run(`[{"event":{"id":"evt_1","title":"One"}},{"delete":{"guest":"gst_none"}},`+
				`{"guest":{"event_id":"evt_1","email":"a@example.com"}}]`, "apply")
			reported("applied 3 records, of which 2 changed nothing")
			file := filepath.Join(dir, "draft.json")
			draft := []byte(`[{"event":{"id":"evt_1","status":"draft"}}]`)
			if err := os.WriteFile(file, draft, 0o600); err != nil {
				t.Fatal(err)
			}
			run("", "apply", file)
			run("[]", "apply", "-")
			all := run("", "dump")
			if strings.Contains(all, "svc_live_") || !strings.Contains(all, `"status":"draft"`) ||
				!strings.Contains(all, `"Grace"`) {
				t.Errorf("dump = %s", all)
			}
			if !running {
				p = start(t, nil, "-addr", "127.0.0.1:0", "-data", data)
			}
			for key, want := range map[string]int{first: 401, second: 200, third: 200} {
				p.lines["api_key"] = key
				status, body, _ := p.get(base + "/events?status=draft")
				if status != want || want == 200 && !strings.Contains(body, "evt_1") {
					t.Errorf("GET /events?status=draft with a key = %d %s, want %d", status, body, want)
				}
			}
			for _, file := range []string{data, data + ".lock", data + ".sock"} {
				info, err := os.Stat(file)
				if err != nil {
					t.Fatal(err)
				}
				if got := info.Mode().Perm(); got != 0o600 {
					t.Errorf("%s has the mode %v, want 0600", file, got)
				}
			}
			if code := p.stop(); code != 0 {
				t.Errorf("exit status %d: %s", code, p.stderr)
			}
			// The dump is a seed.
			seedFile := filepath.Join(dir, "seed.json")
			if err := os.WriteFile(seedFile, []byte(all), 0o600); err != nil {
				t.Fatal(err)
			}
			q := start(t, nil, "-memory", "-addr", "127.0.0.1:0", "-seed", seedFile)
			q.lines["api_key"] = second
			status, body, _ := q.get(base + "/events/evt_1/guests")
			if status != 200 || !strings.Contains(body, "Grace") {
				t.Errorf("a dump as a seed: GET guests = %d %s", status, body)
			}
			left, _ := os.ReadFile(data)
			for _, secret := range []string{first, second, third} {
				if bytes.Contains(left, []byte(secret)) || strings.Contains(p.stderr.String(), secret) {
					t.Errorf("a secret is in the data file or the log")
				}
			}
		})
	}
}

// TestStaleSocket: a socket that a killed server left is replaced, and anything else in its place is not.
func TestStaleSocket(t *testing.T) {
	t.Parallel()
	data := filepath.Join(tempDir(t), "events.json")
	l, err := net.Listen("unix", data+".sock")
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if code, _, stderr := command(nil, "", "status", "-data", data); code != 1 {
		t.Errorf("status without a server = %d %s, want 1", code, stderr)
	}
	p := start(t, nil, "-addr", "127.0.0.1:0", "-data", data)
	if code, _, stderr := command(nil, "", "status", "-data", data); code != 0 {
		t.Errorf("status = %d %s, want 0", code, stderr)
	}
	p.stop()
	if _, err := os.Lstat(data + ".sock"); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
	if err := os.WriteFile(data+".sock", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	p = start(t, nil, "-addr", "127.0.0.1:0", "-data", data)
	if b, _ := os.ReadFile(data + ".sock"); string(b) != "mine" {
		t.Errorf("the file in the place of the socket holds %q, want it as it was", b)
	}
	const warning = `level=WARN msg="the operator's commands cannot reach this server" error="listen unix `
	if got := p.stderr.String(); !strings.Contains(got, warning) {
		t.Errorf("the log of a server without a socket is %s, want a warning", got)
	}
}

// What needs the lock of a server without a socket says which process has it.
func TestFileInUse(t *testing.T) {
	t.Parallel()
	data := filepath.Join(tempDir(t), strings.Repeat("x", 90), "events.json") // too long for a socket
	if err := os.Mkdir(filepath.Dir(data), 0o700); err != nil {
		t.Fatal(err)
	}
	start(t, nil, "-addr", "127.0.0.1:0", "-data", data)
	want := fmt.Sprintf("%s is in use by process %d: stop it first", data, os.Getpid())
	for _, args := range [][]string{{"serve", "-addr", "127.0.0.1:0"}, {"key", "list"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			code, _, stderr := command(map[string]string{"EVENTSD_DATA": data}, "", args...)
			if code != 1 || !strings.Contains(stderr, want) {
				t.Errorf("eventsd %q = %d %s, want 1 and %s", args, code, stderr, want)
			}
		})
	}
}

// TestSeed: a seed is applied to an empty store, once.
func TestSeed(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	data, file := filepath.Join(dir, "events.json"), filepath.Join(dir, "seed.json")
	if err := os.WriteFile(file, []byte(seed), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, "-addr", "127.0.0.1:0", "-data", data, "-seed", file)
	if _, made := p.lines["api_key"]; made {
		t.Errorf("a key was made beside those of the seed: %s", p.stdout)
	}
	p.lines["api_key"] = "svc_live_ada"
	if status, body, _ := p.get(base + "/events/one/guests"); status != 200 {
		t.Errorf("GET = %d %s", status, body)
	}
	p.stop()
	p = start(t, nil, "-addr", "127.0.0.1:0", "-data", data, "-seed", file)
	p.stop()
	if !strings.Contains(p.stderr.String(), "seed was skipped") {
		t.Errorf("stderr does not say that the seed was skipped: %s", p.stderr)
	}
	// Without a key in it, the first key belongs to the oldest user.
	const users = `[
		{"user":{"id":"usr_b","name":"B","email":"b@example.com","created_at":"2025-01-02T00:00:00Z"}},
		{"user":{"id":"usr_z","name":"Z","email":"z@example.com","created_at":"2025-01-01T00:00:00Z"}},
		{"user":{"id":"usr_a","name":"A","email":"a@example.com","created_at":"2025-01-01T00:00:00Z"}}]`
	if err := os.WriteFile(file, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	p = start(t, nil, "-addr", "127.0.0.1:0", "-memory", "-seed", file)
	if p.lines["api_key"] == "" {
		t.Errorf("a seed without a key: %s %s", p.stdout, p.stderr)
	}
	status, body, _ := p.get(base + "/users/me")
	if status != 200 || !strings.Contains(body, `"id":"usr_a"`) {
		t.Errorf("GET /users/me with the first key = %d %s, want usr_a", status, body)
	}
}

// A command whose output cannot be printed fails.
func TestStdoutFails(t *testing.T) {
	t.Parallel()
	data := filepath.Join(tempDir(t), "events.json")
	makeFile(t, data, seed)
	for _, args := range [][]string{
		{"dump", "-data", data}, {"key", "list", "-data", data},
		{"check", "-data", data}, {"version"}, {"-memory", "-addr", "127.0.0.1:0"},
	} {
		r, w := io.Pipe()
		r.Close()
		var stderr bytes.Buffer
		code := events.Run(t.Context(), args, environment(nil), strings.NewReader(""), w, &stderr)
		if code == 0 || !strings.Contains(stderr.String(), "closed pipe") {
			t.Errorf("eventsd %q with stdout closed = %d %s, want a failure", args, code, &stderr)
		}
	}
}

// When Run has returned because its context is done, nothing of it goes on, also if a
// seed was being read from a pipe that has no end: no file is made later, no lock is
// held, and nothing is written.
func TestStopWhileReadingSeed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		late bool // the stop comes while the seed is read
		args []string
	}{
		{"serve, before it begins", false, nil},
		{"serve", true, nil},
		{"double, before it begins", false, []string{"double"}},
		{"double", true, []string{"double"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := tempDir(t)
			data := filepath.Join(dir, "events.json")
			env := environment(map[string]string{"EVENTSD_DATA": data, "EVENTSD_ADDR": "127.0.0.1:0",
				"EVENTSD_SEED": "-"})
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			stdin, writer := io.Pipe()
			var out, stderr bytes.Buffer // not locked: the race detector sees a write after Run
			if tt.late {
				go func() {
					io.WriteString(writer, "[") // returns once it is read
					stop()
				}()
			} else {
				stop()
			}
			code := events.Run(ctx, tt.args, env, stdin, &out, &stderr)
			said := stderr.String()
			if code != 1 || out.Len() > 0 || !strings.HasSuffix(said, "context canceled\n") {
				t.Errorf("Run = %d, %q, %q; want 1 and that its context was canceled", code, &out, said)
			}
			go func() { // if a reader is left, the pipe ends now after all
				io.WriteString(writer, seed[1:])
				writer.Close()
			}()
			time.Sleep(20 * time.Millisecond) // in which it could go on
			stdin.Close()
			if stderr.String() != said {
				t.Errorf("later stderr is %s", &stderr)
			}
			store, err := events.Open(data, nil)
			if err != nil {
				t.Fatal(err)
			}
			store.Close()
		})
	}
}

// The double ends with its standard input where it is asked to.
func TestUntilEOF(t *testing.T) {
	t.Parallel()
	stdin, runner := io.Pipe()
	stdout, out := io.Pipe()
	ended := make(chan int, 1)
	var stderr lockedBuffer
	go func() {
		args := []string{"double", "-until-eof"}
		ended <- events.Run(t.Context(), args, environment(nil), stdin, out, &stderr)
		out.Close()
	}()
	for sc := bufio.NewScanner(stdout); sc.Scan() && !strings.HasPrefix(sc.Text(), "ready: "); {
	}
	select {
	case code := <-ended:
		t.Fatalf("the double ended before its standard input: %d %s", code, &stderr)
	case <-time.After(50 * time.Millisecond):
	}
	runner.Close()
	if code := <-ended; code != 0 {
		t.Errorf("exit status %d: %s", code, &stderr)
	}
}

// untilClosed waits until nobody listens at an address.
func untilClosed(addr string) {
	for {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		conn.Close()
	}
}

// With -v there is a line for each request, without keys, queries and bodies.
func TestRequestLog(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "demo", "-addr", "127.0.0.1:0", "-v", "-log", "json")
	p.get(base + "/events?limit=1")
	p.get(base + "/events/svc_live_mistaken_for_an_id")
	p.get("/healthz")
	p.stop()
	want := []string{
		`"path":"/api/public/v1/events","route":"GET /api/public/v1/events","status":200,"took_ms":`,
		`"path":"/api/public/v1/events/…n_id","route":"GET /api/public/v1/events/{id}","status":404`,
		`"path":"/healthz","route":"","status":200`,
	}
	for line := range strings.Lines(p.stderr.String()) {
		secret := strings.Contains(line, "limit") || strings.Contains(line, "svc_live_")
		if !json.Valid([]byte(line)) || secret {
			t.Errorf("log line %q", line)
		}
		isRequest := strings.Contains(line, `"msg":"request","method":"GET"`)
		if isRequest && len(want) > 0 && strings.Contains(line, want[0]) {
			want = want[1:]
		}
	}
	if len(want) > 0 {
		t.Errorf("the log lacks %s: %s", want, p.stderr)
	}
	d := start(t, nil, "double", "-v")
	d.get(base + "/users/me")
	d.stop()
	if stderr := d.stderr.String(); !strings.Contains(stderr, " user=usr_owner key=key_owner_000001\n") {
		t.Errorf("the log of a double is %s, want the user of a request", stderr)
	}
}

// TestDamage: a damaged file is refused and left as it is.
func TestDamage(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	data := filepath.Join(dir, "events.json")
	store, err := events.Open(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.ApplyJSON([]byte(seed)); err != nil {
		t.Fatal(err)
	}
	s := &service{t, &testStore{mode: inMemory}}
	s.use(store)
	s.create(newEvent, asBob) // behind the snapshot
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"EVENTSD_DATA": data, "EVENTSD_ADDR": "127.0.0.1:0"}
	code, out, stderr := command(env, "", "check")
	if code != 0 || !strings.HasSuffix(out, "\nusers: 2\nkeys: 3\nevents: 5\nguests: 3\nfound: clean\n") {
		t.Errorf("check = %d %s %s", code, out, stderr)
	}
	if code, _, stderr := command(env, "", "dump"); code != 0 || stderr != "" {
		t.Errorf("dump = %d %s", code, stderr)
	}
	whole, _ := os.ReadFile(data)
	for _, cut := range []int{1, 2, 20} { // a copy that lacks its end looks like a crash
		if err := os.WriteFile(data, whole[:len(whole)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, stderr := command(env, "", "check")
		isTold := strings.Contains(out, "\nformat: events/") && !strings.Contains(out, "found: clean")
		if code != 0 || !isTold || stderr != "" {
			t.Errorf("check of a file without its last %d bytes = %d %s %s, want 0", cut, code, out, stderr)
		}
		code, out, stderr = command(env, "", "dump")
		if code != 0 || out == "" || !strings.Contains(stderr, "interrupted write removed") {
			t.Errorf("dump of a file without its last %d bytes = %d %s, want a warning", cut, code, stderr)
		}
	}
	damaged := bytes.Replace(whole, []byte(`"name":"Grace Hopper"`), []byte(`"name":"Grace Hoppex"`), 1)
	if err := os.WriteFile(data, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprint("line ", 1+bytes.Count(damaged[:bytes.Index(damaged, []byte("Hoppex"))], []byte("\n")))
	code, out, stderr = command(env, "", "check")
	if code != 1 || out != "" || !strings.Contains(stderr, line) {
		t.Errorf("check of a damaged file = %d %s %s, want 1 and %s", code, out, stderr, line)
	}
	for _, args := range [][]string{{"serve"}, {"dump"}, {"key", "list"}} {
		code, out, stderr := command(env, "", args...)
		if code != 1 || out != "" || !strings.Contains(stderr, line) ||
			!strings.Contains(stderr, "a backup") {
			t.Errorf("%s on a damaged file = %d %s %s, want 1, %s and what to do",
				args, code, out, stderr, line)
		}
	}
	if now, _ := os.ReadFile(data); !bytes.Equal(now, damaged) {
		t.Errorf("the damaged file was changed")
	}
}

// Each change by an operator's command is one line of the server's log, without -v. In a
// double it is one with -v alone.
func TestOperatorLog(t *testing.T) {
	t.Parallel()
	const records = `[{"user":{"id":"usr_ada","name":"Ada","email":"ada@example.com"}},` +
		`{"event":{"id":"evt_1","host_id":"usr_ada","title":"One","start_at":"2030-03-01T10:00:00Z",` +
		`"end_at":"2030-03-01T12:00:00Z"}},{"guest":{"event_id":"evt_1","name":"Grace"}},` +
		`{"guest":{"event_id":"evt_1","name":"Alan"}},{"delete":{"key":"key_none"}}]`
	data := filepath.Join(tempDir(t), "events.json")
	env := map[string]string{"EVENTSD_DATA": data}
	p := start(t, env, "-addr", "127.0.0.1:0", "-log", "json", "-first-key=false")
	operate := func(stdin string, args ...string) string {
		t.Helper()
		code, out, stderr := command(env, stdin, args...)
		if code != 0 {
			t.Fatalf("eventsd %q = %d %s", args, code, stderr)
		}
		return out
	}
	operate(records, "apply")
	var issued struct{ ID, Key, User string }
	json.Unmarshal([]byte(operate("", "key", "issue", "-json", "-user", "usr_ada")), &issued)
	operate("", "key", "revoke", issued.ID)
	operate("", "key", "list")
	operate("", "dump")
	command(env, `[{"user":{}}]`, "apply") // refused, so nothing was changed
	p.stop()
	want := []string{
		`"msg":"ready","version":"(devel)","rows":0,"bytes":113}`,
		`"msg":"applied records","users":1,"user_ids":"usr_ada","keys":0,"events":1,"event_ids":"evt_1",` +
			`"guests":2,"guest_ids":"gst_… gst_…","deletes":0,"unchanged":1`,
		`"msg":"issued a key","key":"` + issued.ID + `","user":"usr_ada"`,
		`"msg":"revoked a key","key":"` + issued.ID + `"`,
		`"msg":"stopped"}`,
	}
	log := p.stderr.String()
	for i, line := range strings.Split(strings.TrimSpace(log), "\n") {
		isLogged := strings.Contains(line, "making a new data file") || // by the first change
			strings.Contains(line, "the data file was written anew")
		if isLogged {
			continue
		}
		line = regexp.MustCompile(`gst_[a-z0-9]+`).ReplaceAllString(line, "gst_…")
		if len(want) == 0 || !strings.Contains(line, want[0]) {
			t.Errorf("line %d of the log is %s, want %s", i, line, want)
			break
		}
		want = want[1:]
	}
	if len(want) > 0 {
		t.Errorf("the log lacks %s: %s", want, log)
	}
	for _, verbose := range []bool{false, true} {
		d := start(t, nil, "double", fmt.Sprintf("-v=%v", verbose))
		req, _ := http.NewRequest("POST", d.lines["control_url"]+"/records", strings.NewReader(records))
		req.Header.Set("Authorization", "Bearer "+d.lines["control_token"])
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		d.stop()
		log := d.stderr.String()
		if resp.StatusCode != 200 || strings.Contains(log, "records applied") != verbose ||
			strings.Contains(log, "msg=ready") != verbose {
			t.Errorf("POST /records to a double with -v=%v = %s and logged %s", verbose, resp.Status, log)
		}
	}
}

// The ready line can be pasted into a shell.
func TestReadyLinePasted(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl")
	}
	p := start(t, nil, "-memory", "-addr", "127.0.0.1:0")
	out, err := exec.Command("sh", "-c", p.lines["ready"]).Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), `"has_more":`) {
		t.Errorf("%s\nprints %s, want a list", p.lines["ready"], out)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	data := filepath.Join(tempDir(t), "events.json")
	env := map[string]string{"EVENTSD_DATA": data, "EVENTSD_ADDR": "127.0.0.1:0"}
	code, out, stderr := command(env, "", "status")
	if code != 1 || out != "" || !strings.Contains(stderr, "nobody listens on "+data+".sock") {
		t.Errorf("status without a server = %d %q %q, want 1", code, out, stderr)
	}
	makeFile(t, env["EVENTSD_DATA"], seed)
	began := time.Now().Truncate(time.Second)
	p := start(t, env)
	code, out, stderr = command(env, "", "status", "-json")
	type status struct {
		Version   string
		PID       int
		StartedAt time.Time `json:"started_at"`
		BaseURL   string    `json:"base_url"`
		Data      string
		Bytes     int64
		Users     int
		Keys      int
		Events    int
		Guests    int
		Error     *string
	}
	if code != 0 {
		t.Fatalf("status -json = %d %s", code, stderr)
	}
	var got status
	in := json.NewDecoder(strings.NewReader(out))
	in.DisallowUnknownFields()
	if err := in.Decode(&got); err != nil {
		t.Fatalf("status -json prints %s: %v", out, err)
	}
	info, err := os.Stat(data)
	if err != nil {
		t.Fatal(err)
	}
	if got.StartedAt.Before(began) {
		t.Errorf("started_at = %v, want not before %v", got.StartedAt, began)
	}
	want := status{
		Version:   "(devel)",
		PID:       os.Getpid(),
		StartedAt: got.StartedAt,
		BaseURL:   p.lines["base_url"],
		Data:      data,
		Bytes:     info.Size(),
		Users:     2,
		Keys:      3,
		Events:    4,
		Guests:    3,
	}
	if got != want {
		t.Errorf("status -json:\n got %+v\nwant %+v", got, want)
	}
	p.get(base + "/users/me")
	if code, _, stderr := command(env, `[{"delete":{"user":"usr_ada"}}]`, "apply"); code != 0 {
		t.Fatal(code, stderr)
	}
	_, out, _ = command(env, "", "status")
	for _, want := range []string{
		"version: (devel)\npid: ", "\ndata: " + data + "\nbytes: ",
		"\nusers: 1\nkeys: 1\nevents: 1\nguests: 0\nerror: none\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("status =\n%s\nwant %q", out, want)
		}
	}
}

// A dump to a file is whole or not there, and is for nobody else to read.
func TestDumpFile(t *testing.T) {
	t.Parallel()
	for _, running := range []bool{true, false} {
		dir := tempDir(t)
		data, file := filepath.Join(dir, "events.json"), filepath.Join(dir, "backup.json")
		env := map[string]string{"EVENTSD_DATA": data, "EVENTSD_O": filepath.Join(dir, "not.json")}
		makeFile(t, env["EVENTSD_DATA"], seed)
		p := &process{stop: func() int { return 0 }}
		if running {
			p = start(t, env, "-addr", "127.0.0.1:0")
		}
		_, printed, _ := command(env, "", "dump", "-o", "-")
		code, out, stderr := command(env, "", "dump", "-o", file)
		b, _ := os.ReadFile(file)
		info, err := os.Stat(file)
		if code != 0 || out != "" || string(b) != printed {
			t.Errorf("dump -o FILE = %d %q %q, and the file has %s, want %s", code, out, stderr, b, printed)
		}
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file of dump -o has %v, %v, want the mode 0600", info, err)
		}
		if code, _, stderr := command(env, "", "dump", "-o", dir); code != 1 {
			t.Errorf("dump -o %s = %d %s, want 1", dir, code, stderr)
		}
		p.stop()
		before, _ := os.ReadFile(file)
		if err := os.WriteFile(data, []byte("[\n"), 0o600); err != nil { // from which nothing can be read
			t.Fatal(err)
		}
		code, _, stderr = command(env, "", "dump", "-o", file)
		if b, _ := os.ReadFile(file); code == 0 || !bytes.Equal(b, before) {
			t.Errorf("dump -o FILE of nothing = %d %s, and the file has %s", code, stderr, b)
		}
		left, _ := filepath.Glob(filepath.Join(dir, "*"))
		if len(left) != 3 { // with the lock file
			t.Errorf("there are %s", left)
		}
	}
}

// A dump of one user has what belongs to that user and nothing else, from a server and from a file,
// and can be applied to a store without the user.
func TestDumpUser(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	env := map[string]string{"EVENTSD_DATA": filepath.Join(dir, "events.json")}
	makeFile(t, env["EVENTSD_DATA"], seed)
	all := events.NewStore(nil)
	if err := all.ApplyJSON([]byte(seed)); err != nil {
		t.Fatal(err)
	}
	for _, running := range []bool{false, true} {
		if running {
			start(t, env, "-addr", "127.0.0.1:0")
		}
		var got []string
		for _, user := range []string{"usr_ada", "usr_bob"} {
			code, out, stderr := command(env, "", "dump", "-user", user)
			alone := events.NewStore(nil)
			if err := alone.ApplyJSON([]byte(out)); code != 0 || stderr != "" || err != nil {
				t.Errorf("dump -user %s = %d %s %s, %v", user, code, out, stderr, err)
			}
			ids := recordIDs(alone)
			if !strings.HasPrefix(ids, user+" ") || strings.Count(ids, "usr_") != 1 {
				t.Errorf("dump -user %s has %s", user, ids)
			}
			got = append(got, strings.TrimSpace(ids))
		}
		if want := strings.TrimSpace(recordIDs(all)); strings.Join(got, " ") != want {
			t.Errorf("the dumps of all users have %q, the store has %s", got, want)
		}
		withUser := maps.Clone(env)
		withUser["EVENTSD_USER"] = "usr_ada" // it is for key issue: a backup has everything
		_, whole, _ := command(env, "", "dump")
		if code, out, stderr := command(withUser, "", "dump"); code != 0 || out != whole {
			t.Errorf("dump with EVENTSD_USER = %d %s %s, want %s", code, out, stderr, whole)
		}
		code, out, stderr := command(env, "", "dump", "-user", "usr_nobody")
		if code != 1 || out != "" || !strings.Contains(stderr, `user "usr_nobody": not found`) {
			t.Errorf("dump of nobody = %d %q %s, want 1", code, out, stderr)
		}
	}
}

// A name that is not used is reported.
func TestKeyIssueName(t *testing.T) {
	t.Parallel()
	env := map[string]string{"EVENTSD_DATA": filepath.Join(tempDir(t), "events.json")}
	makeFile(t, env["EVENTSD_DATA"], seed)
	for name, want := range map[string]string{"Ada Lovelace": "", "Ada King": "-name was not used: " +
		"the user with this email is Ada Lovelace\n"} {
		code, _, stderr := command(env, "", "key", "issue", "-email", "ada@example.com", "-name", name)
		if code != 0 || !strings.HasSuffix(stderr, want) || strings.Contains(stderr, "not used") != (want != "") {
			t.Errorf("key issue -name %s = %d %s, want %q", name, code, stderr, want)
		}
	}
}

// The pages are tested in a browser by .ci/browser.go. Here is what needs none: how they are
// sent, what stands in them, and that nothing from outside becomes a part of them.

// getPage gets a page of a host from the server of a process.
func (p *process) getPage(method, path, host string, header http.Header) (*http.Response, string) {
	p.t.Helper()
	req, err := http.NewRequest(method, strings.TrimSuffix(p.lines["base_url"], base)+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if req.Host = host; header != nil {
		req.Header = header
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp, string(body)
}

// inside is the text between a tag, which a page has once, and its end.
func inside(t *testing.T, page, tag string) string {
	t.Helper()
	if n := strings.Count(page, "<"+tag); n != 1 {
		t.Fatalf("the page has %d tags <%s, want 1", n, tag)
	}
	_, text, _ := strings.Cut(page, "<"+tag+">")
	text, _, found := strings.Cut(text, "</"+tag+">")
	if !found {
		t.Fatalf("the page has no <%s> with an end", tag)
	}
	return text
}

// A page is sent with a policy that lets its own script and style run and nothing else,
// and it has no secret but a key that is public.
func TestPageSent(t *testing.T) {
	t.Parallel()
	const chosen, token = "svc_live_chosen_0123456789", "a_token_of_the_test"
	const noKey, inspectorLink = `<input id="key" value=""`, `<a href="/_control/">`
	for _, tt := range []struct {
		name, path, host string
		args             []string
		want, lacks      []string
	}{
		{"serve", "/", "", []string{"-memory", "-addr", "127.0.0.1:0", "-api-key", chosen},
			[]string{noKey, "The operator of this"}, []string{chosen, inspectorLink}},
		{"demo", "/", "", []string{"demo", "-addr", "127.0.0.1:0"},
			[]string{`value="svc_live_demo"`, "This is a demo"}, []string{inspectorLink}},
		{"demo of a domain", "/", "demo.example", []string{"demo", "-addr", "127.0.0.1:0"},
			[]string{`value="svc_live_demo"`, "http://demo.example/api/public/v1/events"}, nil},
		{"double", "/", "", []string{"double", "-api-key", chosen, "-control-token", token},
			[]string{`value="` + chosen + `"`, "This is a test double", inspectorLink}, []string{token}},
		{"double, by a name without a dot", "/", "double:8080", []string{"double", "-api-key", chosen},
			[]string{`value="` + chosen + `"`}, nil},
		{"inspector", "/_control/", "", []string{"double", "-api-key", chosen, "-control-token", token},
			[]string{`<input id="token"`, "/_control/requests"}, []string{chosen, token}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, nil, tt.args...)
			resp, page := p.getPage("GET", tt.path, tt.host, nil)
			hash := func(tag string) string {
				sum := sha256.Sum256([]byte(inside(t, page, tag)))
				return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
			}
			policy := "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
				"img-src data:; connect-src 'self'; script-src " + hash("script") + "; style-src " + hash("style")
			for name, want := range map[string]string{
				"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy,
				"Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cache-Control": "no-store",
				"X-Content-Type-Options": "nosniff", "Access-Control-Allow-Origin": "",
				"Access-Control-Expose-Headers": "",
			} {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
			if resp.StatusCode != 200 || resp.ContentLength != int64(len(page)) {
				t.Errorf("GET %s = %s with the length %d, want 200 and %d",
					tt.path, resp.Status, resp.ContentLength, len(page))
			}
			want := append(tt.want, `<link rel="icon" href="data:,">`, "<noscript>")
			if tt.host == "" {
				want = append(want, p.lines["base_url"])
			}
			for _, text := range want {
				if !strings.Contains(page, text) {
					t.Errorf("the page lacks %s", text)
				}
			}
			for _, text := range append(tt.lacks, " style=", " onclick=", "https://", " src=") {
				if strings.Contains(page, text) {
					t.Errorf("the page has %s", text)
				}
			}
			if left := regexp.MustCompile(`\{\{[a-z]+\}\}`).FindString(page); left != "" {
				t.Errorf("the page has %s", left)
			}
			if head, body := p.getPage("HEAD", tt.path, tt.host, nil); head.StatusCode != 200 || body != "" ||
				head.ContentLength != resp.ContentLength {
				t.Errorf("HEAD %s = %s %v %q", tt.path, head.Status, head.Header, body)
			}
			post, body := p.getPage("POST", tt.path, tt.host, nil)
			if post.StatusCode != 405 || post.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("POST %s = %s %s, want 405", tt.path, post.Status, body)
			}
		})
	}
}

// Without a script, the page has lines that work when they are pasted.
func TestPageWithoutScript(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl")
	}
	for _, tt := range []struct {
		args []string
		path string
		want []string
	}{
		{[]string{"demo", "-addr", "127.0.0.1:0"}, "/",
			[]string{`"id":"usr_ada"`, `"title":"Hello"`, `"has_more":false`}},
		{[]string{"double", "-control-token", "TOKEN"}, "/_control/", []string{`"data":[`, `"status":503`}},
	} {
		p := start(t, nil, tt.args...)
		_, page := p.getPage("GET", tt.path, "", nil)
		_, lines, _ := strings.Cut(inside(t, page, "noscript"), "<pre>")
		lines, _, _ = strings.Cut(lines, "</pre>")
		if n := strings.Count(lines, "curl "); n != 3 {
			t.Errorf("%s has %d curl lines, want 3", tt.path, n)
		}
		out, err := exec.Command("sh", "-ec", html.UnescapeString(lines)).Output()
		for _, want := range tt.want {
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%s\nprints %s, %v; want %s", lines, out, err, want)
			}
		}
	}
}
