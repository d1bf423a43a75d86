package eventstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/events"
	"example.com/events/eventstest"
)

// These tests cover New and its options, what fails a test, and the end of a test.

var modes = map[string][]eventstest.Option{
	"listener":    nil,
	"no listener": {eventstest.NoListener()},
}

func TestNew(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			srv := eventstest.New(t, opts...)
			if srv.Owner.ID != "usr_owner" {
				t.Errorf("Owner.ID: got %q, want usr_owner", srv.Owner.ID)
			}
			if srv.Owner.Name != "Test Owner" {
				t.Errorf("Owner.Name: got %q, want Test Owner", srv.Owner.Name)
			}
			var me events.User
			got := send(srv, getMe)
			if err := json.Unmarshal([]byte(got.Body), &me); err != nil {
				t.Fatalf("%s: got %d %s (%v), want a user", getMe, got.Status, got.Body, err)
			}
			if me != srv.Owner {
				t.Errorf("%s: got %+v, want %+v", getMe, me, srv.Owner)
			}
		})
	}
}

// Client adds no key, so that a client that forgets its key fails its tests.
func TestClientAddsNothing(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			srv := eventstest.New(t, opts...)
			resp, err := srv.Client().Get(srv.URL + "/users/me")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != 401 {
				t.Errorf("status: got %d, want 401", resp.StatusCode)
			}
			got := slices.Sorted(maps.Keys(srv.Requests("")[0].Header))
			if want := []string{"Accept-Encoding", "User-Agent"}; !slices.Equal(got, want) {
				t.Errorf("headers: got %q, want those of net/http, %q", got, want)
			}
		})
	}
}

func TestHandler(t *testing.T) {
	srv := eventstest.New(t, eventstest.NoListener())
	proxy := httptest.NewServer(srv.Handler())
	defer proxy.Close()
	srv.URL = proxy.URL + events.BasePath
	srv.Fail(list, eventstest.Fault{Status: 503, Times: 1})
	for _, want := range []int{503, 200} {
		got := sendWith(proxy.Client(), srv, list)
		if got.Status != want {
			t.Errorf("status: got %d, want %d", got.Status, want)
		}
	}
	if n := len(srv.Requests(list)); n != 2 {
		t.Errorf("requests: got %d, want 2", n)
	}
}

func TestOptions(t *testing.T) {
	start := time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)
	srv := eventstest.New(t,
		eventstest.NoListener(),
		eventstest.StartTime(start.In(time.FixedZone("", 3600))),
		eventstest.NewEventStatus("draft"),
		eventstest.Seed(events.Record{Event: &events.Event{
			ID: "evt_1", HostID: "usr_owner", Title: "One", StartAt: start, EndAt: start.Add(time.Hour)}}),
		eventstest.SeedJSON([]byte(`[{"event":{"id":"evt_1","status":"published"}},
			{"user":{"id":"usr_owner","timezone":"Europe/Paris"}}]`)))
	if srv.Now() != start {
		t.Errorf("Now(): got %v, want %v", srv.Now(), start)
	}
	if got := send(srv, getMe); !strings.Contains(got.Body, `"timezone":"Europe/Paris"`) {
		t.Errorf("%s: got %s, want the time zone Europe/Paris", getMe, got.Body)
	}
	send(srv, create)
	for query, want := range map[string]string{
		"?status=published": `"id":"evt_1"`,
		"?status=draft":     `"created_at":"2031-05-06T07:08:09Z"`,
	} {
		got := send(srv, list+query)
		if !strings.Contains(got.Body, want) {
			t.Errorf("%s%s: got %s, want %s", list, query, got.Body, want)
		}
		if n := strings.Count(got.Body, `"id"`); n != 1 {
			t.Errorf("%s%s: got %d events, want 1", list, query, n)
		}
	}
}

// Misuse fails the test immediately. Package testdouble tests which arguments are refused.
func TestMisuseFailsTest(t *testing.T) {
	start := func(t *fakeT, opts ...eventstest.Option) *eventstest.Server {
		return eventstest.New(t, append(opts, eventstest.NoListener())...)
	}
	for _, tt := range []struct {
		name string
		call func(t *fakeT)
		want string
	}{
		{"seed", func(t *fakeT) { start(t, eventstest.SeedJSON([]byte(`[{"user":{}}]`))) },
			"seed: record 1: user"},
		{"seed that is no array", func(t *fakeT) { start(t, eventstest.SeedJSON([]byte("{}"))) }, "array"},
		{"status of new events", func(t *fakeT) { start(t, eventstest.NewEventStatus("x")) },
			`NewEventStatus("x"): must be draft or published`},
		{"problem kind", func(t *fakeT) { start(t, eventstest.Allow(eventstest.UnusedFault, "retry")) },
			`Allow: problem kind "retry" is not known: it must be one of unknown_route, unsafe_retry, ` +
				"unused_fault"},
		{"start of the clock", func(t *fakeT) {
			start(t, eventstest.StartTime(time.Date(10000, 1, 2, 0, 0, 0, 0, time.UTC)))
		}, "New: the start time must be after 0001-01-01T00:00:00Z and before the year 10000"},
		{"zero time", func(t *fakeT) { start(t, eventstest.StartTime(time.Time{})) },
			"the start time must be after"},
		{"key", func(t *fakeT) { start(t).NewKey("") }, `NewKey(""): name is required`},
		{"clock", func(t *fakeT) { start(t).Advance(-1) },
			"Advance: the clock goes forward only, from 2030-01-01T00:00:00Z"},
		{"fault", func(t *fakeT) { start(t).Fail("GET /event", eventstest.Fault{}) },
			`Fail: operation "GET /event" is not known: it must be one of GET /users/me, `},
		{"requests", func(t *fakeT) { start(t).Requests("GET /event") }, `Requests: operation "GET /event"`},
		{"requests of a user", func(t *fakeT) { start(t).Requests("", "grace") }, `Requests: user "grace"`},
		{"await", func(t *fakeT) { start(t).Await(1, "GET /event") }, `Await: operation "GET /event"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fake := runTest(t, tt.call)
			if !strings.Contains(fake.fatal, tt.want) {
				t.Errorf("fatal error: got %q, want %q", fake.fatal, tt.want)
			}
			if want := "eventstest_test.go"; fake.file != want {
				t.Errorf("file of the error: got %s, want %s", fake.file, want)
			}
		})
	}
}

// TestDeterministic tests that the responses to a user don't depend on other users.
func TestDeterministic(t *testing.T) {
	script := func(srv *eventstest.Server, name string) string {
		key, owner := srv.NewKey(name)
		transcript := fmt.Sprintln(key, owner)
		for range 5 {
			transcript += send(srv, create, "x-service-api-key: "+key).Body + "\n"
		}
		return transcript + send(srv, list+"?limit=2", "x-service-api-key: "+key).Body
	}
	want := script(eventstest.New(t), "Tester 7")
	if id := "evt_tester_7_3ga2_000005"; !strings.Contains(want, id) {
		t.Fatalf("transcript: got %s, want the event %s in it", want, id)
	}
	srv := eventstest.New(t)
	transcripts := make([]string, 16)
	var clients sync.WaitGroup
	for i := range transcripts {
		clients.Go(func() { transcripts[i] = script(srv, fmt.Sprint("Tester ", i)) })
	}
	clients.Wait()
	if got := transcripts[7]; got != want {
		t.Errorf("transcript with other users: got\n%s\nwant, as without:\n%s", got, want)
	}
}

func TestNewKey(t *testing.T) {
	srv := eventstest.New(t, eventstest.SeedJSON([]byte(
		`[{"user":{"id":"usr_grace","name":"Grace","email":"grace@example.com"}}]`)))
	for _, tt := range []struct{ name, id string }{
		{"Grace", "usr_grace_2"}, // the seed has usr_grace
		{"grace", "usr_grace_3"},
		{"Grace Hopper", "usr_grace_hopper_ylbw"},
	} {
		key, owner := srv.NewKey(tt.name)
		if owner.ID != tt.id {
			t.Errorf("NewKey(%q): got owner %s, want %s", tt.name, owner.ID, tt.id)
		}
		if owner.Name != tt.name {
			t.Errorf("NewKey(%q): got name %q, want %q", tt.name, owner.Name, tt.name)
		}
		got := send(srv, create, "x-service-api-key: "+key)
		want := strings.Replace(tt.id, "usr_", "/events/evt_", 1) + "_000001"
		if location := got.Header.Get("Location"); !strings.HasSuffix(location, want) {
			t.Errorf("first event of %s: got %s, want %s", tt.id, location, want)
		}
	}
}

func TestClock(t *testing.T) {
	srv := eventstest.New(t)
	for _, want := range []string{
		`"created_at":"2030-01-01T00:00:00Z"`,
		`"created_at":"2030-01-02T00:00:00.000000001Z"`,
	} {
		if got := send(srv, create); !strings.Contains(got.Body, want) {
			t.Errorf("event: got %s, want %s", got.Body, want)
		}
		srv.Advance(24*time.Hour + 1)
	}
}

// TestUnknownRoutes tests which requests fail a test when it ends.
func TestUnknownRoutes(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		unknown      bool
	}{
		{"GET", events.BasePath + "/events", false},
		{"HEAD", events.BasePath + "/%65vents?x=1", false},
		{"GET", events.BasePath + "/events/evt_1/guests", false},
		{"OPTIONS", events.BasePath + "/event", false},
		{"GET", "/", false},
		{"GET", "/healthz", false},
		{"GET", "/openapi.json", false},
		{"GET", "/favicon.ico", false},
		{"GET", "/apple-touch-icon-120x120.png", false},
		{"GET", "/.well-known/appspecific/com.chrome.devtools.json", false},
		{"GET", "/healthz/x", true},
		{"GET", "/v1/.well-known/x", true},
		{"GET", events.BasePath + "/event", true},
		{"GET", events.BasePath + "/events/", true},
		{"GET", events.BasePath + "/events/a%2Fb", true},
		{"PUT", events.BasePath + "/events/evt_1", true},
		{"GET", "/v1/events", true},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			run := func(opts ...eventstest.Option) []string {
				return runTest(t, func(t *fakeT) {
					srv := eventstest.New(t, append(opts, eventstest.NoListener())...)
					srv.URL = strings.TrimSuffix(srv.URL, events.BasePath)
					send(srv, tt.method+" "+tt.path)
				}).errors
			}
			var want []string // beginnings of errors
			if tt.unknown {
				want = []string{fmt.Sprintf(
					"eventstest: request to an unknown route: 1: %s %s of usr_owner: 40", tt.method, tt.path)}
			}
			if got := run(); !slices.EqualFunc(got, want, strings.HasPrefix) {
				t.Errorf("errors: got %q, want %q", got, want)
			}
			if got := run(eventstest.Allow(eventstest.UnknownRoute)); got != nil {
				t.Errorf("errors with Allow(UnknownRoute): got %q, want none", got)
			}
		})
	}
}

// Any web page can send no-cors requests, so those to unknown routes are no problem.
func TestForeignRequests(t *testing.T) {
	for mode, want := range map[string]int{"no-cors": 0, "cors": 1, "navigate": 1} {
		fake := runTest(t, func(t *fakeT) {
			send(eventstest.New(t, eventstest.NoListener()), "GET /event", "Sec-Fetch-Mode: "+mode)
		})
		if n := len(fake.errors); n != want {
			t.Errorf("errors after a %s request: got %q, want %d", mode, fake.errors, want)
		}
	}
}

// TestUnusedFaults tests when a fault that never applied fails a test.
func TestUnusedFaults(t *testing.T) {
	const problem = "eventstest: fault that never applied: status 503 for GET /events; " +
		`use eventstest.Allow("unused_fault") if that is intended`
	for _, tt := range []struct {
		name string
		opts []eventstest.Option
		test func(srv *eventstest.Server, f *eventstest.InjectedFault)
		want []string // errors
	}{
		{"unused", nil, func(srv *eventstest.Server, f *eventstest.InjectedFault) {}, []string{problem}},
		{"another operation", nil, func(srv *eventstest.Server, f *eventstest.InjectedFault) {
			send(srv, getMe)
		}, []string{problem}},
		{"wrong key", nil, func(srv *eventstest.Server, f *eventstest.InjectedFault) {
			send(srv, list, "x-service-api-key: svc_live_wrong")
		}, []string{problem}},
		{"used", nil, func(srv *eventstest.Server, f *eventstest.InjectedFault) { send(srv, list) }, nil},
		{"used and cleared", nil, func(srv *eventstest.Server, f *eventstest.InjectedFault) {
			send(srv, list)
			f.Clear()
		}, nil},
		{"cleared", nil, func(srv *eventstest.Server, f *eventstest.InjectedFault) { f.Clear() }, nil},
		{"allowed", []eventstest.Option{eventstest.Allow(eventstest.UnusedFault, eventstest.UnknownRoute)},
			func(srv *eventstest.Server, f *eventstest.InjectedFault) {}, nil},
		{"others are allowed", []eventstest.Option{eventstest.Allow(eventstest.UnknownRoute)},
			func(srv *eventstest.Server, f *eventstest.InjectedFault) {}, []string{problem}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fake := runTest(t, func(t *fakeT) {
				srv := eventstest.New(t, append(tt.opts, eventstest.NoListener())...)
				tt.test(srv, srv.Fail(list, eventstest.Fault{Status: 503}))
			})
			if !slices.Equal(fake.errors, tt.want) {
				t.Errorf("errors: got %q, want %q", fake.errors, tt.want)
			}
		})
	}
}

// A skipped test doesn't fail.
func TestSkipped(t *testing.T) {
	fake := runTest(t, func(t *fakeT) {
		srv := eventstest.New(t, eventstest.NoListener())
		srv.Fail(list, eventstest.Fault{Status: 503})
		send(srv, "GET /event")
		t.skipped = true
	})
	if fake.errors != nil {
		t.Errorf("errors: got %q, want none", fake.errors)
	}
}

func TestFailureLog(t *testing.T) {
	run := func(fail bool) string {
		return runTest(t, func(t *fakeT) {
			srv := eventstest.New(t)
			for range 20 {
				send(srv, getMe)
			}
			srv.Fail(list, eventstest.Fault{Status: 503, Header: http.Header{"Retry-After": nil}})
			send(srv, list+"?limit=3")
			if fail {
				t.Errorf("failed")
			}
		}).log
	}
	if log := run(false); log != "" {
		t.Errorf("log of a test that passes: got %q, want none", log)
	}
	log := run(true)
	if n := strings.Count(log, "\n"); n != 20 {
		t.Errorf("log of a test that fails: got %d requests, want 20", n)
	}
	_, last, _ := strings.Cut(log, "\n  21: +")
	want := "s GET /api/public/v1/events?limit=3 of usr_owner: 503: " +
		"a test fault refused this request; it was not handled (status 503, header)"
	if !strings.HasSuffix(last, want) {
		t.Errorf("log of a test that fails: got %q, want %q at its end", log, want)
	}
}

// TestCleanup tests that the end of a test waits for no request and no connection.
func TestCleanup(t *testing.T) {
	var clients sync.WaitGroup
	var end time.Time
	var unfinished net.Conn
	fake := runTest(t, func(inner *fakeT) {
		srv := eventstest.New(inner)
		srv.Fail(list, eventstest.Fault{Delay: time.Hour})
		clients.Go(func() { send(srv, list) })
		srv.Await(1, list)
		dial(t, srv, "")
		unfinished = dial(t, srv, "GET ")
		dial(t, srv, "POST "+events.BasePath+"/events/create HTTP/1.1\r\nHost: x\r\n"+
			"x-service-api-key: "+srv.Key+"\r\nContent-Length: 10\r\n\r\n{")
		end = time.Now()
	})
	clients.Wait()
	if took := time.Since(end); took > 3*time.Second { // net/http waits 5 s for a new connection
		t.Errorf("time of the cleanup: got %v, want at most 3s", took)
	}
	unfinished.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := unfinished.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read on a connection after the cleanup: got %v, want it to be closed", err)
	}
	if fake.Failed() {
		t.Errorf("got fatal error %q and errors %q, want none", fake.fatal, fake.errors)
	}
}

// Without a listener, no connection can be closed: a delayed request ends because its fault does.
func TestCleanupWithoutListener(t *testing.T) {
	var ended sync.WaitGroup
	response := httptest.NewRecorder()
	runTest(t, func(inner *fakeT) {
		srv := eventstest.New(inner, eventstest.NoListener())
		srv.Fail(getMe, eventstest.Fault{Delay: sendTimeout})
		r := httptest.NewRequest("GET", events.BasePath+"/users/me", nil)
		r.Header.Set("x-service-api-key", srv.Key)
		ended.Go(func() { srv.Handler().ServeHTTP(response, r) })
		srv.Await(1, getMe)
	})
	done := make(chan bool)
	go func() { ended.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute): // half of the delay
		t.Fatal("a delayed request: got no response 1m0s after the test, want one")
	}
	if response.Code != 200 {
		t.Errorf("status of the delayed response: got %d, want 200", response.Code)
	}
}

// TestBubble tests a server inside a bubble, and one that was created outside.
func TestBubble(t *testing.T) {
	outside := eventstest.New(t, eventstest.NoListener())
	outside.Fail(list, eventstest.Fault{Delay: time.Minute, Times: 1})
	synctest.Test(t, func(t *testing.T) {
		inside := eventstest.New(t, eventstest.NoListener())
		inside.Fail(list, eventstest.Fault{Delay: time.Minute, Times: 1})
		for _, srv := range []*eventstest.Server{inside, outside} {
			start := time.Now()
			got := send(srv, list)
			if got.Status != 200 {
				t.Errorf("status: got %d (%v), want 200", got.Status, got.err)
			}
			if took := time.Since(start); took != time.Minute {
				t.Errorf("time of the response: got %v, want 1m", took)
			}
			cleared := srv.Fail(list, eventstest.Fault{Delay: time.Minute})
			start = time.Now()
			go func() {
				time.Sleep(time.Second)
				cleared.Clear()
			}()
			send(srv, list)
			if took := time.Since(start); took != time.Second {
				t.Errorf("time of the response until Clear: got %v, want 1s", took)
			}
			go func() {
				time.Sleep(time.Second)
				send(srv, getMe)
			}()
			start = time.Now()
			srv.Await(1, getMe)
			if took := time.Since(start).Round(time.Second); took != time.Second {
				t.Errorf("time of Await: got %v, want 1s", took)
			}
		}
	})
}

// New needs NoListener in a bubble, where it would hang. Without a listener, other clients get an error that
// says which to use.
func TestNoListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const want = "eventstest: New: a server in a synctest bubble needs the option NoListener"
		fake := runTest(t, func(t *fakeT) { eventstest.New(t) })
		if !strings.HasPrefix(fake.fatal, want) {
			t.Errorf("fatal error: got %q, want %q at its beginning", fake.fatal, want)
		}
	})
	const want = "http://use-Server.Client-with-NoListener.invalid" // part of the other client's error
	if url := eventstest.New(t, eventstest.NoListener()).URL; !strings.HasPrefix(url, want) {
		t.Errorf("URL: got %s, want %s at its beginning", url, want)
	}
}

// A test that fails in a bubble ends, whatever is going on: the bubble panics if anything is blocked in it.
func TestBubbleFails(t *testing.T) {
	for name, begin := range map[string]func(srv *eventstest.Server){
		"a response is not read": func(srv *eventstest.Server) {
			r, err := http.NewRequest("GET", srv.URL+"/openapi", nil)
			if err != nil {
				panic(err)
			}
			r.Header.Set("x-service-api-key", srv.Key)
			srv.Client().Do(r)
		},
		"half a response is not read": func(srv *eventstest.Server) {
			srv.Fail(getMe, eventstest.Fault{CutResponse: true})
			srv.Client().Get(srv.URL + "/users/me")
		},
		"a request is delayed": func(srv *eventstest.Server) {
			srv.Fail(list, eventstest.Fault{Delay: time.Minute})
			go send(srv, list)
			srv.Await(1, list)
		},
		"a request is under way": func(srv *eventstest.Server) { go send(srv, create) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := runTest(t, func(t *fakeT) {
					allow := eventstest.Allow(eventstest.UnusedFault)
					begin(eventstest.New(t, eventstest.NoListener(), allow))
					t.Fatalf("failed")
				})
				if fake.fatal != "failed" {
					t.Errorf("fatal error: got %q, want failed", fake.fatal)
				}
			})
		})
	}
}

// TestParallelServers uses many servers in parallel.
func TestParallelServers(t *testing.T) {
	for range 10 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			srv := eventstest.New(t)
			lost := srv.Fail(create, eventstest.Fault{DropResponse: true, Times: 1})
			if got := send(srv, create, "Idempotency-Key: 1"); got.err == nil {
				t.Errorf("a create whose response is lost: got status %d, want an error", got.Status)
			}
			if n := lost.Hits(); n != 1 {
				t.Errorf("Hits(): got %d, want 1", n)
			}
			got := send(srv, create, "Idempotency-Key: 1")
			if want := `"id":"evt_owner_000001"`; !strings.Contains(got.Body, want) {
				t.Errorf("event: got %s, want %s", got.Body, want)
			}
			statuses := []int{}
			for _, r := range srv.Await(2, create) {
				statuses = append(statuses, r.Status)
			}
			if want := []int{201, 201}; !slices.Equal(statuses, want) {
				t.Errorf("statuses: got %v, want %v", statuses, want)
			}
		})
	}
}

// manyEvents is a seed of n events.
func manyEvents(n int) eventstest.Option {
	start := time.Date(2030, 3, 1, 18, 0, 0, 0, time.UTC)
	records := make([]events.Record, n)
	for i := range records {
		records[i].Event = &events.Event{
			HostID: "usr_owner", Title: "Launch", StartAt: start, EndAt: start.Add(time.Hour)}
	}
	return eventstest.Seed(records...)
}

func BenchmarkNew(b *testing.B) {
	for name, opts := range modes {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				runTest(b, func(t *fakeT) { eventstest.New(t, opts...) })
			}
		})
	}
}

func BenchmarkNewKey(b *testing.B) {
	for _, n := range []int{0, 5000} {
		b.Run(fmt.Sprint(n, " events"), func(b *testing.B) {
			srv := eventstest.New(b, eventstest.NoListener(), manyEvents(n))
			for b.Loop() {
				srv.NewKey("Grace")
			}
		})
	}
}

func BenchmarkRequestsOfUser(b *testing.B) {
	for _, n := range []int{0, 5000} {
		b.Run(fmt.Sprint(n, " events"), func(b *testing.B) {
			srv := eventstest.New(b, eventstest.NoListener(), manyEvents(n))
			for b.Loop() {
				srv.Requests("", "usr_owner")
			}
		})
	}
}

// BenchmarkWaiters measures requests while others wait for the journal, which is full.
func BenchmarkWaiters(b *testing.B) {
	for _, n := range []int{0, 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			srv := eventstest.New(b)
			for range 1000 {
				send(srv, getMe)
			}
			var waiters sync.WaitGroup
			ctx, cancel := context.WithCancel(b.Context())
			for range n {
				waiters.Go(func() {
					for ctx.Err() == nil {
						srv.Await(1, create)
					}
				})
			}
			for b.Loop() {
				send(srv, getMe)
			}
			b.StopTimer()
			cancel()
			send(srv, create)
			waiters.Wait()
		})
	}
}
