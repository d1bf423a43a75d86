package events_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"example.com/events"
)

// discard is a ResponseWriter that costs nothing.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header               { return d.header }
func (d *discard) WriteHeader(status int)            { d.status = status }
func (d *discard) Write(p []byte) (int, error)       { return len(p), nil }
func (d *discard) WriteString(p string) (int, error) { return len(p), nil }

// filled is a store with n events of one host, a tenth of them drafts.
func filled(b *testing.B, store *events.Store, n int) {
	b.Helper()
	if err := store.ApplyJSON([]byte(seed)); err != nil {
		b.Fatal(err)
	}
	at := time.Date(2027, 1, 2, 18, 0, 0, 0, time.UTC)
	records := make([]events.Record, n)
	for i := range records {
		status := "published"
		if i%10 == 0 {
			status = "draft"
		}
		records[i].Event = &events.Event{
			ID: fmt.Sprintf("evt_%012d", i), HostID: "usr_ada", Status: status,
			Title: fmt.Sprintf("Event number %d of a measurement", i), Description: new("A short text that says what it is."),
			StartAt: at, EndAt: at.Add(2 * time.Hour), Timezone: "Europe/Lisbon",
			LocationType: new("in_person"), LocationCity: new("Lisbon"), LocationCountry: new("PT"),
		}
	}
	if err := store.Apply(records...); err != nil {
		b.Fatal(err)
	}
}

// request is one to the handler itself, without a connection.
func request(method, target, body string) *http.Request {
	u, err := url.ParseRequestURI(base + target)
	if err != nil {
		panic(err)
	}
	return &http.Request{Method: method, URL: u, Host: "localhost", ContentLength: int64(len(body)),
		Header: http.Header{"X-Service-Api-Key": {"svc_live_ada"}}, Body: io.NopCloser(strings.NewReader(body))}
}

// BenchmarkRead has reads of which each takes more steps than the one before: the key,
// the path, the query and the list, the cursor, and then longer lists.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		store := events.NewStore(nil)
		filled(b, store, n)
		handler := events.New(store)
		page := httptest.NewRecorder()
		handler.ServeHTTP(page, request("GET", "/events?limit=1", ""))
		_, cursor, _ := strings.Cut(page.Body.String(), `"next_cursor":"`)
		cursor, _, _ = strings.Cut(cursor, `"`)
		for _, read := range [][2]string{
			{"me", "/users/me"}, {"one", "/events/evt_000000000777"}, {"list1", "/events?limit=1"},
			{"cursor", "/events?limit=1&cursor=" + cursor}, {"list50", "/events?limit=50"},
			{"list100", "/events?limit=100"}, {"drafts50", "/events?limit=50&status=draft"},
		} {
			b.Run(fmt.Sprintf("%s/%d", read[0], n), func(b *testing.B) {
				b.ReportAllocs()
				r := request("GET", read[1], "")
				w := &discard{header: http.Header{}}
				for b.Loop() {
					clear(w.header)
					handler.ServeHTTP(w, r)
				}
				if w.status != 200 {
					b.Fatalf("status %d", w.status)
				}
			})
		}
	}
}

func BenchmarkCreate(b *testing.B) {
	for _, kind := range []string{"memory", "file"} {
		for _, n := range []int{1_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				store := events.NewStore(nil)
				if kind == "file" {
					var err error
					if store, err = events.Open(b.TempDir()+"/events.json", nil); err != nil {
						b.Fatal(err)
					}
				}
				defer store.Close()
				filled(b, store, n)
				handler := events.New(store)
				b.ReportAllocs()
				b.SetParallelism(32)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					w := &discard{header: http.Header{}}
					for pb.Next() {
						clear(w.header)
						handler.ServeHTTP(w, request("POST", "/events/create", newEvent))
						if w.status != 201 {
							b.Fatalf("status %d", w.status)
						}
					}
				})
			})
		}
	}
}

// BenchmarkOpen is the start with a file of 100,000 events.
func BenchmarkOpen(b *testing.B) {
	path := b.TempDir() + "/events.json"
	store, err := events.Open(path, nil)
	if err != nil {
		b.Fatal(err)
	}
	filled(b, store, 100_000)
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		store, err := events.Open(path, nil)
		if err != nil {
			b.Fatal(err)
		}
		store.Close()
	}
}

// BenchmarkApply merges records into events that exist: a thousand at a time.
func BenchmarkApply(b *testing.B) {
	store := events.NewStore(nil)
	filled(b, store, 100_000)
	const n = 1000
	arrays := [2][]byte{}
	for i, status := range []string{"draft", "published"} {
		for k := range n {
			record := fmt.Sprintf(`{"event":{"id":"evt_%012d","status":%q}}`, k*97, status)
			arrays[i] = append(append(arrays[i], ','), record...)
		}
		arrays[i][0] = '['
		arrays[i] = append(arrays[i], ']')
	}
	b.ReportAllocs()
	round := 0
	for b.Loop() {
		if err := store.ApplyJSON(arrays[round%2]); err != nil {
			b.Fatal(err)
		}
		round++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/record")
}
