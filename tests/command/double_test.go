//go:build unix

package command

import (
	"strings"
	"sync"
	"testing"
)

const newEvent = `{"title":"Launch","start_at":"2030-03-01T18:00:00Z","end_at":"2030-03-01T20:00:00Z"}`

// runningDouble is a double as a test suite in another language sees it.
type runningDouble struct {
	*process
	t *testing.T
}

// control sends a request to the control API, and fails the test unless the response has the status.
func (d runningDouble) control(method, path, body string, want int) (response string) {
	d.t.Helper()
	status, response, err := call(method, d.line("control_url")+path, "", body)
	if err != nil {
		d.t.Fatal(err)
	}
	if status != want {
		d.t.Fatalf("%s %s %s: got %d %s, want %d", method, path, body, status, response, want)
	}
	return response
}

// api sends a request to the API, and returns its status. It may be called from any goroutine.
func (d runningDouble) api(method, path, body string) (status int) {
	status, _, err := call(method, d.line("base_url")+path, d.line("api_key"), body)
	if err != nil {
		d.t.Error(err)
	}
	return status
}

// A reset returns to the state at the start, and requests in flight get their responses.
func TestReset(t *testing.T) {
	t.Parallel()
	d := runningDouble{start(t, tempDir(t), "exec eventsd double"), t}
	state := func() (text string) {
		for _, path := range []string{"/records", "/keys", "/faults", "/requests", "/problems", "/clock"} {
			text += d.control("GET", path, "", 200) + "\n"
		}
		return text
	}
	want := state()
	d.control("POST", "/faults", `{"operation":"GET /users/me","delay":"1h"}`, 201)
	var clients sync.WaitGroup
	clients.Go(func() {
		if status := d.api("GET", "/users/me", ""); status != 200 {
			t.Errorf("status of a request that was delayed until the reset: got %d, want 200", status)
		}
	})
	d.control("GET", "/requests?count=1&wait=20s", "", 200)
	for range 2 {
		clients.Go(func() {
			for range 20 {
				if status := d.api("POST", "/events/create", newEvent); status != 201 {
					t.Errorf("status of a create during resets: got %d, want 201", status)
				}
			}
		})
	}
	for range 5 {
		d.control("POST", "/reset", "", 204)
		d.control("POST", "/keys", `{"name":"Grace"}`, 201)
		d.control("POST", "/clock/advance", `{"by":"1h"}`, 200)
		d.control("POST", "/faults", `{"operation":"GET /events","drop_request":true}`, 201)
		d.api("GET", "/event", "")
	}
	clients.Wait()
	d.control("POST", "/reset", "", 204)
	if got := state(); got != want {
		t.Errorf("state after a reset: got\n%s\nwant, as at the start,\n%s", got, want)
	}
	d.api("POST", "/events/create", newEvent)
	if got := d.control("GET", "/records", "", 200); !strings.Contains(got, `"id":"evt_owner_000001"`) {
		t.Errorf("records after a reset and a create: got %s, want evt_owner_000001", got)
	}
}
