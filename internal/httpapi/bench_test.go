package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// nullWriter is a ResponseWriter that drops the response.
type nullWriter struct{ header http.Header }

func (w *nullWriter) Header() http.Header               { return w.header }
func (w *nullWriter) Write(p []byte) (int, error)       { return len(p), nil }
func (w *nullWriter) WriteString(s string) (int, error) { return len(s), nil }
func (w *nullWriter) WriteHeader(int)                   {}

func BenchmarkMux(b *testing.B) {
	body := strings.Repeat("x", 600)
	m := NewMux("/api/public/v1", []Route{
		{
			Operation: "GET /events",
			Query:     true,
			Handle: func(w http.ResponseWriter, r Request) error {
				q := ReadQuery(r)
				q.OneOf("status", "draft", "published")
				q.Int("limit", 50, 1, 100)
				if err := q.Err(); err != nil {
					return err
				}
				WriteJSON(w, 200, body)
				return nil
			},
		},
		{
			Operation: "GET /events/{id}",
			Handle: func(w http.ResponseWriter, r Request) error {
				if r.PathValue("id") == "" {
					return NotFound("no ID")
				}
				WriteJSON(w, 200, body)
				return nil
			},
		},
	})
	m.Authenticate = func(*http.Request) (Caller, error) { return Caller{"usr_1", "key_1"}, nil }
	for _, path := range []string{"/events/evt_1", "/events", "/events?limit=50&status=draft"} {
		b.Run(path, func(b *testing.B) {
			r := httptest.NewRequest("GET", "/api/public/v1"+path, nil)
			w := &nullWriter{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				m.ServeHTTP(w, r)
			}
		})
	}
}
