// Tests of what only a connection shows.
package events_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/events"
)

// dial sends the head of a request with the key and returns its connection.
func (s *service) dial(srv *httptest.Server, head string) (net.Conn, *bufio.Reader) {
	s.t.Helper()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	method, rest, _ := strings.Cut(head, " ")
	fmt.Fprintf(conn, "%s %s%s\r\nHost: x\r\nx-service-api-key: %s\r\n\r\n", method, base, rest, s.key)
	return conn, bufio.NewReader(conn)
}

func TestConnections(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	srv := httptest.NewServer(s.handler)
	t.Cleanup(srv.Close)
	post := func(body io.Reader) (*http.Response, string) {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), "POST", srv.URL+base+"/events/create", body)
		req.Header.Set("x-service-api-key", s.key)
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatalf("POST: %v", err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("POST: %v", err)
		}
		return resp, string(b)
	}
	t.Run("a chunked request is taken and its connection closed", func(t *testing.T) {
		resp, b := post(io.MultiReader(strings.NewReader(newEvent)))
		if resp.StatusCode != 201 || !resp.Close {
			t.Errorf("chunked = %s %s, close %v, want 201 and a closed one", resp.Status, b, resp.Close)
		}
		resp, b = post(strings.NewReader(newEvent))
		if resp.StatusCode != 201 || resp.Close {
			t.Errorf("with a length = %s %s, close %v, want 201 and an open one", resp.Status, b, resp.Close)
		}
	})
	t.Run("a body that was read keeps its connection", func(t *testing.T) {
		// net/http would not read away a body of this size.
		resp, b := post(strings.NewReader(`{"title":"` + strings.Repeat("x", 500_000) + `"}`))
		if resp.StatusCode != 400 || resp.Close {
			t.Errorf("500 kB without a date = %s %s, close %v, want 400 and an open connection",
				resp.Status, b, resp.Close)
		}
	})
	const expecting = "POST /events/create HTTP/1.1\r\nExpect: 100-continue\r\n"
	t.Run("Expect, refused before a byte of the body", func(t *testing.T) {
		_, in := s.dial(srv, expecting+"Content-Length: 2000000")
		all, err := io.ReadAll(in) // the server does not wait for the body: it closes
		if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 413 ") {
			t.Errorf("2 MB with Expect = %q, %v, want 413 and the end of the connection", all, err)
		}
	})
	t.Run("HEAD has the headers of GET and no body", func(t *testing.T) {
		for _, path := range []string{"/events", "/events/one", "/events/nowhere", "/openapi"} {
			var got [2]http.Header
			for i, method := range []string{"GET", "HEAD"} {
				req, _ := http.NewRequestWithContext(t.Context(), method, srv.URL+base+path, nil)
				req.Header.Set("x-service-api-key", s.key)
				resp, err := srv.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				b, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if method == "HEAD" && len(b) > 0 {
					t.Errorf("HEAD %s has a body of %d bytes", path, len(b))
				}
				got[i] = resp.Header
				got[i].Del("Date")
			}
			if !maps.EqualFunc(got[0], got[1], slices.Equal) {
				t.Errorf("HEAD %s has %v, GET %v", path, got[1], got[0])
			}
		}
	})
}

// TestRawHTTP sends bytes over a connection to the server as it is run: what
// net/http refuses before us (its own text), and what reaches us (JSON).
func TestRawHTTP(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "demo", "-addr", "127.0.0.1:0")
	addr := strings.TrimSuffix(strings.TrimPrefix(p.lines["base_url"], "http://"), base)
	const (
		host    = "Host: x\r\n"
		key     = "x-service-api-key: svc_live_demo\r\n"
		get     = "GET " + base + "/users/me HTTP/1.1\r\n" + host + key
		get1    = "GET " + base + "/users/me HTTP/1.0\r\n"
		keyless = "GET " + base + "/users/me HTTP/1.1\r\n" + host
		post    = "POST " + base + "/events/create HTTP/1.1\r\n" + host + key
		alive   = "Connection: keep-alive\r\n"
		chunks  = "Transfer-Encoding: chunked\r\n"
		end     = "\r\n"
		second  = get + end // a request behind the first one
	)
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(newEvent), newEvent)
	length := fmt.Sprintf("Content-Length: %d\r\n", len(newEvent))
	tests := []struct {
		name, request string
		answers       string // statuses, in order, until the connection ends or is silent
	}{
		{"plain", get + end, "200"},
		{"two, one behind the other", get + end + second, "200 200"},
		{"HTTP/1.0", get1 + key + end, "200"},
		{"HTTP/1.0 that would go on", get1 + alive + key + end + second, "200"},
		{"a length and chunks, HTTP/1.0", "POST " + base + "/nowhere HTTP/1.0\r\n" + alive + key +
			"Content-Length: 4\r\n" + chunks + end + "67\r\n" + second, "404"},
		{"absolute form", "GET http://elsewhere" + base + "/users/me HTTP/1.1\r\n" + host + key + end, "200"},
		{"absolute form without a path", "GET http://elsewhere HTTP/1.1\r\n" + host + key + end, "404"},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\n" + host + end, "404"},
		{"CONNECT", "CONNECT x:80 HTTP/1.1\r\n" + host + end, "404"},
		{"CONNECT with a path", "CONNECT " + base + "/events HTTP/1.1\r\n" + host + key + end, "405"},
		{"TRACE", "TRACE " + base + "/events HTTP/1.1\r\n" + host + key + end, "405"},
		{"a method of our own", "BREW " + base + "/events HTTP/1.1\r\n" + host + key + end, "405"},
		{"doubled slash at the root", "GET /" + base + "/events HTTP/1.1\r\n" + host + key + end, "404"},
		{"a key with blanks around", keyless + "x-service-api-key: \t svc_live_demo \t\r\n" + end, "200"},
		{"GET with a body", get + "Content-Length: 3\r\n" + end + "abc" + second, "200 200"},
		{"a chunked body", post + chunks + end + chunked + second, "201"},
		{"a length and chunks", post + "Content-Length: 5\r\n" + chunks + end + chunked + second, "201"},
		{"a length and chunks on a GET",
			get + "Content-Length: 5\r\n" + chunks + end + "0\r\n\r\n" + second, "200"},
		{"a length and chunks without a key",
			keyless + "Content-Length: 5\r\n" + chunks + end + "0\r\n\r\n" + second, "401"},
		{"the same length twice", post + length + length + end + newEvent, "201"},
		{"a body cut short", post + "Content-Length: 5000\r\n" + end + newEvent, "408"},
		{"too much behind the length", post + length + end + newEvent + "GARBAGE\r\n\r\n", "201 400"},
		{"two lengths", post + "Content-Length: 5\r\nContent-Length: 6\r\n" + end + "abcdef", "400"},
		{"length +3", post + "Content-Length: +3\r\n" + end + "abc", "400"},
		{"negative length", post + "Content-Length: -3\r\n" + end + "abc", "400"},
		{"transfer encoding identity", post + "Transfer-Encoding: identity\r\n" + end, "501"},
		{"transfer encoding gzip, chunked", post + "Transfer-Encoding: gzip, chunked\r\n" + end, "501"},
		{"space before the colon", get + "X-A : b\r\n" + end, "400"},
		{"no host", "GET " + base + "/users/me HTTP/1.1\r\n" + key + end, "400"},
		{"two hosts", get + host + end, "400"},
		{"NUL in a value", get + "X-A: a\x00b\r\n" + end, "400"},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "404"},
		{"HTTP/3.0", "GET / HTTP/3.0\r\n" + host + end, "505"},
		{"no HTTP", "hello\r\n\r\n", "400"},
		{"broken escape in the path", "GET " + base + "/events/%zz HTTP/1.1\r\n" + host + key + end, "400"},
		{"odd Expect", get + "Expect: gold\r\n" + end, "417"},
		{"headers of 24 KiB", get + "X-A: " + strings.Repeat("a", 24<<10) + "\r\n" + end, "431"},
		{"headers of 15 KiB", get + "X-A: " + strings.Repeat("a", 15<<10) + "\r\n" + end, "200"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			io.WriteString(conn, tt.request)
			conn.(*net.TCPConn).CloseWrite()
			method, _, _ := strings.Cut(tt.request, " ")
			var got []string
			in := bufio.NewReader(conn)
			for {
				resp, err := http.ReadResponse(in, &http.Request{Method: method})
				if err != nil {
					break
				}
				body, _ := io.ReadAll(resp.Body)
				got = append(got, fmt.Sprint(resp.StatusCode))
				ours := resp.Header.Get("Cache-Control") == "no-store"
				if json := resp.Header.Get("Content-Type") == "application/json"; json != ours {
					t.Errorf("answer %s %v %s, want JSON with our headers or neither",
						resp.Status, resp.Header, body)
				}
			}
			if strings.Join(got, " ") != tt.answers {
				t.Errorf("%.200q is answered %s, want %s", tt.request, got, tt.answers)
			}
		})
	}
}

// The time for an answer begins when the commit has ended: a slow disk costs no answer.
func TestSlowCommit(t *testing.T) {
	t.Parallel()
	var slow atomic.Bool
	now := func() time.Time {
		if slow.Swap(false) {
			time.Sleep(400 * time.Millisecond) // within the change, for which the create waits
		}
		return time.Now()
	}
	s := newService(t, &events.Config{Now: now})
	srv := httptest.NewUnstartedServer(s.handler)
	srv.Config.WriteTimeout = 200 * time.Millisecond
	srv.Start()
	t.Cleanup(srv.Close)
	req, err := http.NewRequest("POST", srv.URL+base+"/events/create", strings.NewReader(newEvent))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("x-service-api-key", s.key)
	slow.Store(true)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("a create with a slow commit was not answered: %v", err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Errorf("a create with a slow commit = %s", resp.Status)
	}
}
