// Package speed has benchmarks of the API and the store, without the network.
package speed

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/events"
	"example.com/events/internal/apitest"
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

// newBenchmark returns a service with n events of Ada, a tenth of them drafts.
func newBenchmark(b *testing.B, mode apitest.Mode, n int) *apitest.Service {
	b.Helper()
	s := apitest.New(b, mode, nil)
	records := make([]events.Record, n)
	for i := range records {
		status := "published"
		if i%10 == 0 {
			status = "draft"
		}
		records[i].Event = newEvent(i, status)
	}
	_, err := s.Store.Put(records...)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func newEvent(i int, status string) *events.Event {
	start := time.Date(2027, 1, 2, 18, 0, 0, 0, time.UTC)
	return &events.Event{
		ID: fmt.Sprintf("evt_%012d", i), HostID: "usr_ada", Status: status,
		Title:       fmt.Sprintf("Event number %d of a measurement", i),
		Description: new("A short text that says what it is."),
		StartAt:     start, EndAt: start.Add(2 * time.Hour), Timezone: "Europe/Lisbon",
		LocationType: new("in_person"), LocationCity: new("Lisbon"), LocationCountry: new("PT"),
	}
}

// BenchmarkRead measures handlers without net/http. Each read does more than the one before.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		s := newBenchmark(b, apitest.Memory, n)
		for _, read := range []struct{ name, path string }{
			{"me", "/users/me"},
			{"one", "/events/evt_000000000777"},
			{"list1", "/events?limit=1"},
			{"cursor", "/events?limit=1&" + s.Get("/events?limit=1").Next()},
			{"list50", "/events?limit=50"},
			{"list100", "/events?limit=100"},
			{"drafts50", "/events?limit=50&status=draft"},
		} {
			b.Run(fmt.Sprintf("%s/%d", read.name, n), func(b *testing.B) {
				b.ReportAllocs()
				r := apitest.NewRequest("GET", events.BasePath+read.path, nil)
				w := &discard{header: http.Header{}}
				for b.Loop() {
					clear(w.header)
					s.Handler.ServeHTTP(w, r)
				}
				if w.status != 200 {
					b.Fatalf("status: got %d, want 200", w.status)
				}
			})
		}
	}
}

// BenchmarkNoDrafts lists the drafts of a host without drafts.
func BenchmarkNoDrafts(b *testing.B) {
	for _, n := range []int{1_000, 300_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newBenchmark(b, apitest.Memory, 0)
			records := make([]events.Record, n)
			for i := range records {
				records[i].Event = newEvent(i, "published")
			}
			if _, err := s.Store.Put(records...); err != nil {
				b.Fatal(err)
			}
			r := apitest.NewRequest("GET", events.BasePath+"/events?status=draft", nil)
			w := &discard{header: http.Header{}}
			for b.Loop() {
				clear(w.header)
				s.Handler.ServeHTTP(w, r)
			}
		})
	}
}

// BenchmarkGuests changes a guest list of 100,000.
func BenchmarkGuests(b *testing.B) {
	s := newBenchmark(b, apitest.Memory, 1)
	const n, event = 100_000, "evt_000000000000"
	start := time.Date(2027, 1, 2, 18, 0, 0, 0, time.UTC)
	records := make([]events.Record, n)
	for i := range records {
		records[i].Guest = &events.Guest{
			ID: fmt.Sprintf("gst_%06d", i), EventID: event, Name: new("Guest"),
			CreatedAt: start.Add(time.Duration(i) * time.Second),
		}
	}
	if _, err := s.Store.Put(records...); err != nil {
		b.Fatal(err)
	}
	for _, change := range []struct{ name, once, again string }{
		{"delete and backdate", `{"delete":{"guest":"gst_000777"}}`, `{"guest":{"id":"gst_000777",` +
			`"event_id":"` + event + `","name":"Guest","created_at":"2027-01-02T18:12:57Z"}}`},
		{"change", `{"guest":{"id":"gst_000777","name":"One"}}`,
			`{"guest":{"id":"gst_000777","name":"Guest"}}`},
	} {
		b.Run(change.name, func(b *testing.B) {
			for b.Loop() {
				s.Apply("[" + change.once + "]")
				s.Apply("[" + change.again + "]")
			}
		})
	}
}

func BenchmarkCreate(b *testing.B) {
	for _, mode := range []apitest.Mode{apitest.Memory, apitest.File} {
		for _, n := range []int{1_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", mode, n), func(b *testing.B) {
				s := newBenchmark(b, mode, n)
				request := apitest.NewRequest("POST", events.BasePath+"/events/create", nil)
				b.ReportAllocs()
				b.SetParallelism(32)
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					w := &discard{header: http.Header{}}
					for pb.Next() {
						clear(w.header)
						r := *request
						r.Body = io.NopCloser(strings.NewReader(apitest.NewEvent))
						s.Handler.ServeHTTP(w, &r)
						if w.status != 201 {
							b.Errorf("status: got %d, want 201", w.status)
						}
					}
				})
			})
		}
	}
}

// BenchmarkOpen measures a startup with 100,000 events.
func BenchmarkOpen(b *testing.B) {
	s := newBenchmark(b, apitest.File, 100_000)
	s.Store.Close()
	for b.Loop() {
		s.Reopen()
	}
}

// BenchmarkApply merges a thousand records at a time into events that exist.
func BenchmarkApply(b *testing.B) {
	s := newBenchmark(b, apitest.Memory, 100_000)
	const n = 1000
	var arrays [2]string
	for i, status := range []string{"draft", "published"} {
		var records []string
		for k := range n {
			records = append(records, fmt.Sprintf(`{"event":{"id":"evt_%012d","status":%q}}`, k*97, status))
		}
		arrays[i] = "[" + strings.Join(records, ",") + "]"
	}
	b.ReportAllocs()
	round := 0
	for b.Loop() {
		s.Apply(arrays[round%2])
		round++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/record")
}
