package eventstest_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/events"
)

// Test suites in other languages read these lines: they are a contract.
func TestReadyLines(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ready.json")
	p := eventsd(t, "double", "-ready-file", file)
	names := []string{"base_url", "api_key", "control_url", "control_token", "inspector", "ready"}
	if !slices.Equal(p.order, names) {
		t.Errorf("lines %q, want %q", p.order, names)
	}
	host, found := strings.CutSuffix(p.lines["base_url"], events.BasePath)
	if !found || !strings.HasPrefix(host, "http://127.0.0.1:") || p.lines["control_url"] != host+"/_control" {
		t.Errorf("lines %q", p.lines)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var ready map[string]any
	if err := json.Unmarshal(raw, &ready); err != nil {
		t.Fatal(err)
	}
	if pid := ready["pid"]; pid != float64(os.Getpid()) {
		t.Errorf("pid %v", pid)
	}
	delete(ready, "pid")
	if !slices.Equal(slices.Sorted(maps.Keys(ready)), slices.Sorted(slices.Values(names))) {
		t.Errorf("ready file %s, want the lines and pid", raw)
	}
	for name, value := range ready {
		if p.lines[name] != value {
			t.Errorf("%s is %q in the ready file and %q on stdout", name, value, p.lines[name])
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 && os.PathSeparator == '/' {
		t.Errorf("ready file: %v, %v", info.Mode(), err)
	}
	if a := send(t, http.DefaultClient, "GET", host+"/healthz", ""); a.status != 200 {
		t.Errorf("GET /healthz = %d", a.status)
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit status %d: %s", code, p.stderr)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the ready file is there after the end: %v", err)
	}
}

// The end of the process does not wait for requests that faults hold.
func TestProcessStops(t *testing.T) {
	t.Parallel()
	p := eventsd(t, "double")
	a := p.control(t, "PUT", "/faults", `[{"operation":"GET /events","delay":"1h"}]`)
	if a.status != 200 {
		t.Fatalf("PUT /faults = %d %s", a.status, a.body)
	}
	var client sync.WaitGroup
	client.Go(func() {
		send(t, http.DefaultClient, "GET", p.lines["base_url"]+"/events", "", "x-service-api-key: "+p.lines["api_key"])
	})
	until(t, "the request is held", func() bool { return strings.Contains(p.control(t, "GET", "/faults", "").body, `"hits":1`) })
	if code := p.stop(); code != 0 {
		t.Errorf("exit status %d: %s", code, p.stderr)
	}
	client.Wait()
}

func TestProcessFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad, good := filepath.Join(dir, "bad.json"), filepath.Join(dir, "good.json")
	os.WriteFile(bad, []byte(`[{"user":{"name":"x"}}]`), 0o600)
	os.WriteFile(good, []byte(conformanceSeed), 0o600)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // for what starts nevertheless
	defer cancel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-time", "tomorrow"}, "-time must be a date-time such as"},
		{[]string{"-control-token", "a b"}, "-control-token must"},
		{[]string{"-seed", filepath.Join(dir, "none")}, "the seed"},
		{[]string{"-seed", bad}, "record 1: user: email is required"},
		{[]string{"-seed", good, "-time", "2024-01-01T00:00:00Z"}, "created_at must not be later than now"},
		{[]string{"-addr", "nowhere"}, "-addr"},
		{[]string{"-data", "x"}, "flag provided but not defined"},
		{[]string{"more"}, "double takes a command behind --"},
	} {
		var out, errs strings.Builder
		code := events.Run(ctx, append([]string{"double"}, tt.args...), func(string) string { return "" }, nil, &out, &errs)
		if code != 2 || !strings.Contains(errs.String(), tt.want) || strings.Count(errs.String(), "\n") != 1 || out.Len() > 0 {
			t.Errorf("double %q: exit status %d, stdout %q, stderr %q, want %q", tt.args, code, &out, &errs, tt.want)
		}
	}
	p := eventsd(t, "double", "-time", "2031-01-01T00:00:00+01:00", "-control-token", "mine", "-seed", good)
	if a := p.control(t, "GET", "/clock", ""); a.body != `{"now":"2030-12-31T23:00:00Z"}` || p.lines["control_token"] != "mine" {
		t.Errorf("GET /clock = %d %s", a.status, a.body)
	}
	if a := send(t, http.DefaultClient, "GET", p.lines["base_url"]+"/event", "", "x-service-api-key: "+ada); a.status != 404 {
		t.Errorf("GET /event = %d", a.status)
	}
	p.stop()
	if log := p.stderr.String(); !strings.Contains(log, "GET /api/public/v1/event of usr_ada: the API has no such route") || strings.Contains(log, ada) {
		t.Errorf("stderr: %s", log)
	}
}
