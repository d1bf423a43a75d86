package operator

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The client gives up on a server that is silent, and says what may have happened.
// The clock is that of the bubble, so no test waits.
func TestClientGivesUp(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("1,"), 1<<20)
	apply := func(c client) error { return c.ApplyJSON(large) }
	dump := func(c client) error { _, err := c.RecordsJSON(); return err }
	issue := func(c client) error { _, err := c.IssueKeyJSON([]byte("{}")); return err }
	readAll := func(r *http.Request) { io.Copy(io.Discard, r.Body) }
	for _, tt := range []struct {
		name  string
		call  func(client) error
		serve func(r *http.Request, conn net.Conn) // then it is silent
		after time.Duration
		want  string // the end of the error; empty: there is none
	}{
		{"an apply of which nothing is read", apply, func(*http.Request, net.Conn) {},
			quietTimeout, "did not answer: it was silent for too long"},
		{"an apply of which a part is read, slowly", apply, func(r *http.Request, _ net.Conn) {
			for range 5 {
				time.Sleep(quietTimeout - time.Second)
				io.CopyN(io.Discard, r.Body, 100<<10)
			}
		}, 6*quietTimeout - 5*time.Second, "did not answer: it was silent for too long"},
		{"an apply that is read", apply, func(r *http.Request, _ net.Conn) { readAll(r) },
			applyTimeout, "did not answer: it was silent for too long; the records may have been applied"},
		{"an apply that takes long", apply, func(r *http.Request, conn net.Conn) {
			readAll(r)
			time.Sleep(applyTimeout - time.Second)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}, applyTimeout - time.Second, ""},
		{"a key", issue, func(r *http.Request, _ net.Conn) { readAll(r) },
			quietTimeout, "did not answer: it was silent for too long; the key may have been issued"},
		{"a dump", dump, func(*http.Request, net.Conn) {},
			quietTimeout, "did not answer: it was silent for too long"},
		{"a dump that begins", dump, func(_ *http.Request, conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[")
			time.Sleep(quietTimeout - time.Second)
			io.WriteString(conn, "1,")
		}, 2*quietTimeout - time.Second, "broke off its answer: it was silent for too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				go func() {
					r, err := http.ReadRequest(bufio.NewReader(theirs))
					if err != nil {
						t.Error(err)
						return
					}
					tt.serve(r, theirs)
				}()
				start := time.Now()
				err := tt.call(client{func() (net.Conn, error) { return ours, nil }})
				took := time.Since(start)
				theirs.Close()
				if _, isFailure := err.(*ServerError); err != nil && !isFailure || (err == nil) != (tt.want == "") ||
					err != nil && !strings.HasSuffix(err.Error(), tt.want) {
					t.Errorf("the error is %v, want %q", err, tt.want)
				}
				if took != tt.after {
					t.Errorf("it came after %v, want %v", took, tt.after)
				}
			})
		})
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for array, want := range map[string]int{
		"[]": 0, " [ ] ": 0, "[1]": 1, `[{"user":{"name":"],["}},[2],"3"]`: 3, "": 0, "[1,": 1,
	} {
		if got := count([]byte(array)); got != want {
			t.Errorf("count(%q) = %d, want %d", array, got, want)
		}
	}
}
