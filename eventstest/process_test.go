package eventstest_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"example.com/events"
)

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

// The clock of a double starts where -time says, and its token is the one of -control-token.
func TestProcessFlags(t *testing.T) {
	t.Parallel()
	p := eventsd(t, "double", "-time", "2031-01-01T00:00:00+01:00", "-control-token", "mine")
	if p.lines["control_token"] != "mine" {
		t.Errorf("control_token: %s", p.lines["control_token"])
	}
	if a := p.control(t, "GET", "/clock", ""); a.body != `{"now":"2030-12-31T23:00:00Z"}` {
		t.Errorf("GET /clock = %d %s", a.status, a.body)
	}
}

// The first key has the secret that was chosen, and a reset keeps it.
func TestProcessKey(t *testing.T) {
	t.Parallel()
	const secret = "svc_live_chosen_by_the_user"
	for _, tt := range []struct{ secret, seed, err string }{
		{secret, "[]", ""},
		{secret, `[{"key":{"user_id":"usr_owner","secret":"` + secret + `"}}]`, ""},
		{secret, `[{"user":{"id":"usr_ada","name":"Ada","email":"a@example.com"}},` +
			`{"key":{"user_id":"usr_ada","secret":"` + secret + `"}}]`, "user_id"},
		{secret, `[{"key":{"id":"key_owner_000001","user_id":"usr_owner","secret":"svc_live_another"}}]`, ""},
		{secret, `[{"delete":{"key":"key_owner_000001"}}]`, ""},
		{secret, `[{"delete":{"user":"usr_owner"}}]`, "is not known"},
		{"", `[{"user":{"name":"Ada"}}]`, "email is required"},
	} {
		seed := filepath.Join(t.TempDir(), "seed.json")
		if err := os.WriteFile(seed, []byte(tt.seed), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"double", "-addr", "127.0.0.1:0", "-seed", seed}
		if tt.secret != "" {
			args = append(args, "-api-key", tt.secret)
		}
		if tt.err != "" {
			var errs strings.Builder
			code := events.Run(t.Context(), args, nil, nil, t.Output(), &errs)
			if code == 0 || !strings.Contains(errs.String(), tt.err) || strings.Contains(errs.String(), secret) {
				t.Errorf("%q on %s: %d %q, want an error with %q", tt.secret, tt.seed, code, &errs, tt.err)
			}
			continue
		}
		p := eventsd(t, args...)
		key := p.lines["api_key"]
		if tt.secret != "" && key != tt.secret {
			t.Errorf("%q on %s: api_key %s", tt.secret, tt.seed, key)
		}
		for range 2 {
			a := send(t, http.DefaultClient, "GET", p.lines["base_url"]+"/users/me", "", "x-service-api-key: "+key)
			if a.status != 200 {
				t.Errorf("%q on %s: GET /users/me with the key = %d", tt.secret, tt.seed, a.status)
			}
			p.control(t, "POST", "/reset", "")
		}
	}
}

// These are no tests but commands, which TestProcessVerdict runs beside a double.

func TestChildKnown(t *testing.T)   { child(t, "/users/me") }
func TestChildUnknown(t *testing.T) { child(t, "/users/me", "/event", "/event") }
func TestChildFails(t *testing.T) {
	child(t, "/event")
	if os.Getenv("EVENTS_CONTROL_URL") != "" {
		t.Fail()
	}
}

// child sends requests to the double that the environment names.
func child(t *testing.T, paths ...string) {
	if os.Getenv("EVENTS_CONTROL_URL") == "" {
		t.Skip("not beside a double")
	}
	for _, path := range paths {
		send(t, http.DefaultClient, "GET", os.Getenv("EVENTS_BASE_URL")+path, "",
			"x-service-api-key: "+os.Getenv("EVENTS_API_KEY"))
	}
}

// A run fails if its command sent requests to unknown routes.
func TestProcessVerdict(t *testing.T) {
	t.Parallel()
	unknown := "GET /api/public/v1/event of usr_owner: 404: the API has no such route; below /api/public/v1 it has " +
		known + "; -allow-unknown-routes lets it pass\n"
	for _, tt := range []struct {
		name  string
		flags []string
		child string
		code  int
		want  []string // the lines at the end of stderr
	}{
		{"all is well", nil, "TestChildKnown", 0, nil},
		{"unknown routes", nil, "TestChildUnknown", 1,
			[]string{"eventsd: request 2: " + unknown, "eventsd: request 3: " + unknown}},
		{"which are allowed", []string{"-allow-unknown-routes"}, "TestChildUnknown", 0, nil},
		{"of a command that fails", nil, "TestChildFails", 1, []string{"eventsd: request 1: " + unknown}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"double"}, tt.flags...)
			args = append(args, "--", os.Args[0], "-test.run", "^"+tt.child+"$")
			var out, errs strings.Builder
			code := events.Run(t.Context(), args, nil, nil, &out, &errs)
			got := slices.Collect(strings.Lines(errs.String()))
			got = slices.DeleteFunc(got, func(line string) bool { return !strings.HasPrefix(line, "eventsd: ") })
			if code != tt.code || !slices.Equal(got, tt.want) {
				t.Errorf("%d %q, want %d %q; stdout %q", code, &errs, tt.code, tt.want, &out)
			}
			if n := strings.Count(errs.String(), "no such route"); tt.name == "unknown routes" && n != 2 {
				t.Errorf("%d lines about 2 unknown routes: %q", n, &errs)
			}
		})
	}
}
