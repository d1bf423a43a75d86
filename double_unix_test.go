//go:build unix

package events_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/events"
)

// runDouble runs "eventsd double" until it ends, for at most 10 s.
func runDouble(
	t *testing.T, stdin string, args ...string,
) (status int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var out, errs strings.Builder
	args = append([]string{"double"}, args...)
	status = events.Run(ctx, args, os.Environ(), strings.NewReader(stdin), &out, &errs)
	return status, out.String(), errs.String()
}

// TestDoubleClient isn't a test, but a client that [TestDoubleCommand] runs.
func TestDoubleClient(t *testing.T) {
	url := os.Getenv("EVENTS_BASE_URL") + os.Getenv("CLIENT_PATH")
	if url == "" {
		t.Skip("not under a double")
	}
	r, err := http.NewRequest("GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("x-service-api-key", os.Getenv("EVENTS_API_KEY"))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

// TestDoubleCommand runs scripts under a double.
func TestDoubleCommand(t *testing.T) {
	t.Setenv("CLIENT", os.Args[0]+" -test.run ^TestDoubleClient$")
	notExecutable := filepath.Join(t.TempDir(), "text")
	badSeed := filepath.Join(t.TempDir(), "seed.json")
	for _, file := range []string{notExecutable, badSeed} {
		if err := os.WriteFile(file, []byte(`[{"user":{}}]`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const unknown = `eventsd: request 1: GET /api/public/v1/event: 404: there is no such route .*` +
		`; -allow-unknown-routes lets it pass\n`
	for _, tt := range []struct {
		name           string
		args           []string // before "--", or all of them if there is no script
		script         string
		status         int
		stdout, stderr string // patterns
	}{
		{"variables", []string{"-api-key", "svc_live_a", "-control-token", "T"},
			"echo $EVENTS_BASE_URL $EVENTS_API_KEY $EVENTS_CONTROL_URL $EVENTS_CONTROL_TOKEN", 0,
			`http://127\.0\.0\.1:\d+/api/public/v1 svc_live_a http://127\.0\.0\.1:\d+/_control T\n`, ""},
		{"streams and status", nil, "cat; echo oops >&2; exit 3", 3, "from stdin", `oops\n`},
		{"signal", nil, "kill -9 $$", 137, "", ""},
		{"known route", nil, "CLIENT_PATH=/users/me $CLIENT >&2", 0, "", `PASS\n`},
		{"unknown route", nil, "CLIENT_PATH=/event $CLIENT >&2", 1, "", `PASS\n` + unknown},
		{"unknown route and status", nil, "CLIENT_PATH=/event $CLIENT >&2; exit 3", 3, "", `PASS\n` + unknown},
		{"allowed route", []string{"-allow-unknown-routes"}, "CLIENT_PATH=/event $CLIENT >&2", 0, "", `PASS\n`},
		{"missing command", []string{"--", filepath.Join(t.TempDir(), "none")}, "", 127, "", "eventsd: .+\n"},
		{"text file", []string{"--", notExecutable}, "", 126, "", "eventsd: .+\n"},
		{"no command", []string{"--"}, "", 2, "", "eventsd: double needs a command after --.+\n"},
		{"no dashes", []string{"true"}, "", 2, "", "eventsd: double needs a command after --.+\n"},
		{"bad seed", []string{"-seed", badSeed}, "true", 1, "", "eventsd: .*seed.json: record 1: user: .+\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := tt.args
			if tt.script != "" {
				args = append(args, "--", "sh", "-c", tt.script)
			}
			status, stdout, stderr := runDouble(t, "from stdin", args...)
			if status != tt.status {
				t.Errorf("exit status %d, want %d", status, tt.status)
			}
			if !regexp.MustCompile("^" + tt.stdout + "$").MatchString(stdout) {
				t.Errorf("stdout %q, want %q", stdout, tt.stdout)
			}
			if !regexp.MustCompile("^" + tt.stderr + "$").MatchString(stderr) {
				t.Errorf("stderr %q, want %q", stderr, tt.stderr)
			}
		})
	}
}

// TestDoubleAlone tests the lines of a double, and that it stops at once when stdin ends, although a
// request is delayed.
func TestDoubleAlone(t *testing.T) {
	stdin, input := io.Pipe()
	output, stdout := io.Pipe()
	status := make(chan int)
	go func() {
		args := []string{"double", "-until-eof", "-control-token", "T", "-time", "2031-01-01T00:00:00+01:00"}
		status <- events.Run(t.Context(), args, nil, stdin, stdout, t.Output())
		stdout.Close()
	}()
	lines := map[string]string{}
	var names []string
	scanner := bufio.NewScanner(output)
	for lines["ready"] == "" && scanner.Scan() {
		name, value, _ := strings.Cut(scanner.Text(), ": ")
		lines[name] = value
		names = append(names, name)
	}
	want := "base_url api_key control_url control_token reference inspector ready"
	if got := strings.Join(names, " "); got != want {
		t.Fatalf("lines %s, want %s", got, want)
	}
	client := &http.Client{Transport: &http.Transport{}}
	send := func(method, url, body, header, value string) (response string, err error) {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			return "", err
		}
		r.Header.Set(header, value)
		resp, err := client.Do(r)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return string(text), err
	}
	control := func(method, path, body string) string {
		t.Helper()
		response, err := send(method, lines["control_url"]+path, body, "Authorization", "Bearer T")
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	if got, want := control("GET", "/clock", ""), `{"now":"2030-12-31T23:00:00Z"}`; got != want {
		t.Errorf("clock %s, want %s", got, want)
	}

	// No client resends a dropped request, because no connection is used twice.
	control("PUT", "/faults", `[{"operation":"GET /users/me","drop":true,"times":1}]`)
	_, err := send("GET", lines["base_url"]+"/users/me", "", "x-service-api-key", lines["api_key"])
	if err == nil {
		t.Error("a dropped request has a response")
	}

	control("PUT", "/faults", `[{"operation":"GET /users/me","delay":"1h"}]`)
	go send("GET", lines["base_url"]+"/users/me", "", "x-service-api-key", lines["api_key"])
	control("GET", "/requests?count=2&wait=10s", "")
	input.Close()
	select {
	case got := <-status:
		if got != 0 {
			t.Errorf("exit status %d, want 0", got)
		}
	case <-time.After(5 * time.Second):
		t.Error("the double still runs 5 s after stdin ended")
	}
}
