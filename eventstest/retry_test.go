package eventstest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events/eventstest"
	"example.com/events/internal/apitest"
)

// TestUnsafeRetries tests which creates are unsafe retries.
func TestUnsafeRetries(t *testing.T) {
	drop := eventstest.Fault{DropResponse: true, Times: 1}
	dropTwice := eventstest.Fault{DropResponse: true, Times: 2}
	gateway := eventstest.Fault{DropResponse: true, Status: 504, Times: 1}
	lateGateway := eventstest.Fault{DropResponse: true, Status: 504, Delay: time.Second, Times: 1}
	half := eventstest.Fault{CutResponse: true, Times: 1}
	lateHalf := eventstest.Fault{CutResponse: true, Delay: time.Second, Times: 1}
	slow := eventstest.Fault{Delay: time.Second, Times: 1} // the client waits
	timeout := eventstest.Fault{Delay: time.Minute, Times: 1}
	timeouts := eventstest.Fault{Delay: time.Minute}
	for _, tt := range []struct {
		name  string
		fault eventstest.Fault
		steps string // see retryStep
		want  string // for each unsafe retry, its Seq and the Seq of the first create
	}{
		{"no key", drop, "none, none", "2 1"},
		{"another key", drop, "a, b", "2 1"},
		{"key only at first", drop, "a, none", "2 1"},
		{"key only at last", drop, "none, a", "2 1"},
		{"several", drop, "none, none, other body, none", "2 1, 4 1"},
		{"lost themselves", dropTwice, "a, b, b, c", "2 1, 4 1"},
		{"gateway", gateway, "none, none", "2 1"},
		{"late gateway", lateGateway, "none, none", "2 1"},
		{"half a response", half, "none, none", "2 1"},
		{"late half", lateHalf, "none, none", "2 1"},
		{"timeout", timeout, "none, none", "2 1"},
		{"timeouts", timeouts, "none, none, none", "2 1, 3 1"},
		{"after a lost replay", dropTwice, "a, a, b", "3 1"},
		{"after the timeout of a replay", timeouts, "a, a, b", "3 1"},
		{"connection left open", slow, "go a, b, sleep", "2 1"},
		{"late cancel", timeout, "go a, b, sleep", "2 1"},
		{"first key after an unsafe retry", timeout, "go a, b, a, sleep", "2 1"},
		{"reordered", drop, "none, reordered", "2 1"},
		{"null for absent", drop, "none, null", "2 1"},
		{"other form of a time", drop, "none, offset", "2 1"},
		{"after Advance", drop, "none, Advance, none", "2 1"},
		{"before Clear", drop, "none, none, Clear, ClearRequests, none", "2 1"},

		{"same key", drop, "a, a", ""},
		{"same key after a timeout", timeout, "a, a", ""},
		{"after a replay", drop, "a, a, b, none", ""},
		{"after a replay during a delay", timeout, "go a, a, b, sleep", ""},
		{"after a delay", slow, "none, none", ""},
		{"other body", drop, "none, other body", ""},
		{"other user", drop, "none, other user, none", ""},
		{"refused", drop, "none, two words", ""},
		{"after Clear", drop, "none, Clear, none", ""},
		{"after Clear and a timeout", timeout, "none, Clear, none", ""},
		{"after ClearRequests", drop, "none, ClearRequests, none", ""},
		{"status", eventstest.Fault{Status: 503, Times: 1}, "none, none, none", ""},
		{"dropped request", eventstest.Fault{DropRequest: true, Times: 1}, "none, none, none", ""},
		{"patch", eventstest.Fault{Patch: `{"title":"x"}`}, "none, none", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run := func(opts ...eventstest.Option) []string {
					return runTest(t, func(t *fakeT) {
						srv := eventstest.New(t, append(opts, eventstest.NoListener())...)
						f := srv.Fail(create, tt.fault)
						for step := range strings.SplitSeq(tt.steps, ", ") {
							retryStep(srv, f, step)
						}
					}).errors
				}
				if got := strings.Join(retries(run()), ", "); got != tt.want {
					t.Errorf("unsafe retries: got %q, want %q", got, tt.want)
				}
				if got := run(eventstest.Allow(eventstest.UnsafeRetry)); got != nil {
					t.Errorf("errors with Allow(UnsafeRetry): got %q, want none", got)
				}
			})
		})
	}
}

// retryStep does what a step says. A step that isn't listed here is a create with this Idempotency-Key, or
// with none, whose client gives up after 10 s.
func retryStep(srv *eventstest.Server, f *eventstest.InjectedFault, step string) {
	headers, body := []string{keyHeader + srv.Key}, launch
	switch step {
	case "Clear":
		f.Clear()
		return
	case "Advance":
		srv.Advance(time.Hour)
		return
	case "ClearRequests":
		srv.ClearRequests()
		return
	case "other user":
		srv.Key, _ = srv.NewKey("Grace")
		return
	case "sleep":
		time.Sleep(20 * time.Second)
		return
	case "go a":
		go retryStep(srv, f, "a")
		srv.Await(1, create)
		return
	case "other body":
		body = strings.Replace(launch, "Launch", "Lunch", 1)
	case "reordered":
		start, end, _ := strings.Cut(strings.Trim(launch, "{}"), ",")
		body = "{" + end + ", " + start + "}"
	case "null":
		body = strings.Replace(launch, "{", `{"description":null,`, 1)
	case "offset":
		body = strings.ReplaceAll(launch, `Z"`, `+00:00"`)
	case "none":
	default:
		headers = append(headers, "Idempotency-Key: "+step)
	}
	client := srv.Client()
	client.Timeout = 10 * time.Second
	apitest.Fetch(client, "POST", srv.URL+"/events/create", body, headers...)
}

var unsafeRetry = regexp.MustCompile(`^eventstest: unsafe retry: request (\d+) .* but request (\d+) `)

// retries returns the Seq numbers in the errors of unsafe retries, and other errors as they are.
func retries(errors []string) (found []string) {
	for _, err := range errors {
		numbers := unsafeRetry.FindStringSubmatch(err)
		if numbers == nil {
			found = append(found, err)
			continue
		}
		found = append(found, numbers[1]+" "+numbers[2])
	}
	return found
}

// The error of an unsafe retry names both requests, their keys and events, and the fix.
func TestUnsafeRetryError(t *testing.T) {
	fake := runTest(t, func(t *fakeT) {
		srv := eventstest.New(t)
		srv.Fail(create, eventstest.Fault{DropResponse: true, Times: 1})
		send(srv, getMe)
		send(srv, create)
		send(srv, create, "Idempotency-Key: svc_live_secret-2") // isn't shown
	})
	want := []string{"eventstest: unsafe retry: request 3 of usr_owner (Idempotency-Key …et-2) created " +
		"evt_owner_000002, but request 2 (no Idempotency-Key) had created the same event as " +
		"evt_owner_000001, and its response hadn't arrived (drop_response): send the same Idempotency-Key " +
		`with every attempt; use eventstest.Allow("unsafe_retry") if that is intended`}
	if !slices.Equal(fake.errors, want) {
		t.Errorf("errors: got %q, want %q", fake.errors, want)
	}
}

// A client may create the same event again on purpose as soon as it has the response.
func TestCreateAfterResponse(t *testing.T) {
	srv := eventstest.New(t, eventstest.NoListener())
	srv.Fail(create, eventstest.Fault{Delay: time.Millisecond, Times: 1})
	r := httptest.NewRequest("POST", srv.URL+"/events/create", strings.NewReader(launch))
	r.Header.Set("x-service-api-key", srv.Key)
	srv.Handler().ServeHTTP(onResponse{httptest.NewRecorder(), func() { send(srv, create) }}, r)
	if n := countEvents(srv); n != 2 {
		t.Errorf("events: got %d, want 2", n)
	}
}

// onResponse is a ResponseWriter that calls a function when the response begins.
type onResponse struct {
	http.ResponseWriter
	call func()
}

func (w onResponse) WriteHeader(int) { w.call() }

// TestManyLostCreates tests that a lost create isn't forgotten because of many others.
func TestManyLostCreates(t *testing.T) {
	fake := runTest(t, func(t *fakeT) {
		srv := eventstest.New(t, eventstest.NoListener())
		srv.Fail(create, eventstest.Fault{DropResponse: true})
		send(srv, create)
		key, _ := srv.NewKey("Grace")
		for i := range 1000 {
			body := strings.Replace(launch, "Launch", fmt.Sprint("Launch ", i), 1)
			apitest.Fetch(srv.Client(), "POST", srv.URL+"/events/create", body, keyHeader+key)
		}
		send(srv, create)
	})
	if got := fmt.Sprint(retries(fake.errors)); got != "[1002 1]" {
		t.Errorf("unsafe retries: got %s, want [1002 1]", got)
	}
}
