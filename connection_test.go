// Tests of what the API does with slow, large and broken requests: the limits of
// bodies, and what only a connection shows.
package events_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/events"
)

// Limits.

// slowCreate is a create whose body arrives up to its end and waits there.
type slowCreate struct {
	sent    io.Reader
	waiting chan struct{}                  // closed when all of sent has been read
	end     chan func([]byte) (int, error) // takes what the reads behind it do
	ending  func([]byte) (int, error)
	w       *httptest.ResponseRecorder
	answer  chan answer
}

func (c *slowCreate) Read(p []byte) (int, error) {
	if n, _ := c.sent.Read(p); n > 0 {
		return n, nil
	}
	if c.w.Flushed { // it was refused, and its rest is read away
		return 0, io.EOF
	}
	if c.ending == nil {
		close(c.waiting)
		c.ending = <-c.end
	}
	return c.ending(p)
}

// startSlow begins a create with a body of n bytes. It returns it when all of them
// have been read and the end is waited for, or nil and the answer that came before.
func (s *service) startSlow(n int) (*slowCreate, answer) {
	c := &slowCreate{
		sent:    strings.NewReader(newEvent + strings.Repeat(" ", n-len(newEvent))),
		waiting: make(chan struct{}),
		end:     make(chan func([]byte) (int, error), 1),
		w:       httptest.NewRecorder(),
		answer:  make(chan answer, 1),
	}
	go func() {
		r := httptest.NewRequest("POST", base+"/events/create", c)
		r.Header.Set("x-service-api-key", s.key)
		s.handler.ServeHTTP(c.w, r)
		c.answer <- answer{c.w.Code, c.w.Result().Header, c.w.Body.String()}
	}()
	select {
	case <-c.waiting:
		return c, answer{}
	case a := <-c.answer:
		if !c.w.Flushed {
			s.t.Errorf("%s was not sent before the rest of the body was read", a)
		}
		return nil, a
	}
}

// finish ends the body as read says and returns the answer.
func (c *slowCreate) finish(read func([]byte) (int, error)) answer {
	c.end <- read
	return <-c.answer
}

// The usual ends of a body: it has arrived, its client has gone, or its time is over.
func whole([]byte) (int, error)    { return 0, io.EOF }
func cutShort([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
func late([]byte) (int, error)     { return 0, os.ErrDeadlineExceeded }

const (
	bodyLimit  = 1 << 20   // bytes of a body
	bodyBudget = 128 << 20 // bytes that bodies hold together, beyond bodyFree of each
	bodyFree   = 64 << 10
)

// fill starts slow creates, large ones first, until even small ones among the large
// are refused.
func (s *service) fill() (held []*slowCreate) {
	s.t.Helper()
	total := 0
	for size := bodyLimit; size > bodyFree; size /= 2 {
		for {
			c, a := s.startSlow(size - 1)
			if c == nil {
				s.checkForm("POST", base+"/events/create", a)
				if a.status != 503 || a.header.Get("Retry-After") != "1" ||
					a.header.Get("Connection") != "close" || !strings.Contains(a.body, `"server_error"`) {
					s.t.Fatalf("beyond the budget = %s, want 503, Retry-After and Connection: close", a)
				}
				break
			}
			held = append(held, c)
			if total += size - 1 - bodyFree; total > bodyBudget {
				s.t.Fatalf("%d bodies hold %d bytes, want at most %d", len(held), total, bodyBudget)
			}
		}
	}
	if total < bodyBudget*9/10 {
		s.t.Fatalf("%d bodies hold %d bytes, want almost %d", len(held), total, bodyBudget)
	}
	return held
}

// TestSlowBodies: large bodies that do not end hold a bounded amount of memory,
// others go on meanwhile, and however a request ends, its memory is free again.
func TestSlowBodies(t *testing.T) {
	s := newService(t, nil)
	held := s.fill()
	n := len(held)

	for name, a := range map[string]answer{
		"201 a small create":       s.create(newEvent + strings.Repeat(" ", bodyFree-len(newEvent))),
		"200 a read":               s.do("GET", base+"/events", ""),
		"503 a create of 128 KiB":  s.create(newEvent + strings.Repeat(" ", 128<<10)),
		"413 a create of 2 MiB":    s.create(strings.Repeat(" ", 2*bodyLimit)),
		"401 one without a key":    s.as("").create(strings.Repeat(" ", 128<<10)),
		"415 one of another type":  s.create(strings.Repeat(" ", 128<<10), "Content-Type: text/plain"),
		"201 another small create": s.create(newEvent),
	} {
		if status, what, _ := strings.Cut(name, " "); fmt.Sprint(a.status) != status {
			t.Errorf("with the budget used up, %s = %s, want %s", what, a, status)
		}
	}

	// A client that sends all of its body before it reads sees the 503, too.
	srv := httptest.NewServer(s.handler)
	defer srv.Close()
	large := strings.NewReader(strings.Repeat(" ", bodyLimit))
	status, header, _ := s.sendFirst(srv, "POST", "/events/create", "", large)
	if status != 503 || header.Get("Retry-After") != "1" || header.Get("Connection") != "close" {
		t.Errorf("a create beyond the budget over TCP = %d %v, want 503", status, header)
	}

	ends := []struct {
		name   string
		status int
		read   func([]byte) (int, error)
	}{
		{"whole", 201, whole},
		{"not JSON", 400, func(p []byte) (int, error) { return copy(p[:1], "x"), io.EOF }},
		{"too long", 413, func(p []byte) (int, error) { return copy(p, "xx"), io.EOF }},
		{"a panic", 500, func([]byte) (int, error) { panic("a reader that panics") }},
		{"out of time", 408, late},
		{"cut short", 408, cutShort},
	}
	for i, c := range held {
		end := ends[min(i, len(ends)-1)]
		a := c.finish(end.read)
		if a.status != end.status {
			t.Fatalf("a slow body that ends as %q = %s, want %d", end.name, a, end.status)
		}
		if i < len(ends) {
			s.checkForm("POST", base+"/events/create", a)
		}
	}
	again := s.fill()
	if len(again) != n {
		t.Errorf("%d bodies fit after %d others have ended, want as many", len(again), n)
	}
	for _, c := range again {
		c.finish(cutShort)
	}
}

// TestWaitingBodies: so do bodies that have arrived and wait for the store.
func TestWaitingBodies(t *testing.T) {
	var mu sync.Mutex // held while the store cannot go on
	ids := 0
	s := newService(t, &events.Config{NewID: func(kind, owner string) string {
		mu.Lock()
		defer mu.Unlock()
		ids++
		return fmt.Sprintf("%08d", ids)
	}})
	mu.Lock()
	held := s.fill()
	waiting, slow := held[:5], held[5:]
	for _, c := range waiting {
		c.end <- whole
	}
	for _, c := range slow {
		c.finish(cutShort)
	}
	again := s.fill()
	if len(again) != len(slow) {
		t.Errorf("while %d bodies wait for the store there is room for %d others, want %d",
			len(waiting), len(again), len(slow))
	}
	mu.Unlock()
	for _, c := range again {
		c.finish(cutShort)
	}
	for _, c := range waiting {
		if a := <-c.answer; a.status != 201 {
			t.Errorf("a create that waited for the store = %s, want 201", a)
		}
	}
}

// Connections.

// sendFirst sends a whole request, and only then reads the answer.
func (s *service) sendFirst(srv *httptest.Server, method, path, contentType string, body io.Reader) (
	status int, header http.Header, text string) {
	s.t.Helper()
	req, _ := http.NewRequestWithContext(s.t.Context(), method, srv.URL+base+path, body)
	req.Header.Set("x-service-api-key", s.key)
	req.Header.Set("Content-Type", contentType)
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if err := req.Write(conn); err != nil {
		s.t.Errorf("%s %s: the request does not get through: %v", method, path, err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		s.t.Errorf("%s %s: no answer: %v", method, path, err)
		return 0, nil, ""
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Errorf("%s %s: %v", method, path, err)
	}
	if resp.Close {
		resp.Header.Set("Connection", "close") // net/http takes it out
	}
	return resp.StatusCode, resp.Header, string(b)
}

// TestRefusedBodies: a client that sends 10 MiB before it reads gets to see why
// they were refused.
func TestRefusedBodies(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	srv := httptest.NewServer(s.handler)
	t.Cleanup(srv.Close)
	ten := strings.Repeat("x", 10<<20)
	for _, tt := range []struct {
		method, path, key, contentType string
		status                         int
	}{
		{"POST", "/events/create", s.key, "", 413},
		{"POST", "/events/create", "svc_live_none", "", 401},
		{"POST", "/nowhere", s.key, "", 404},
		{"PUT", "/events/create", s.key, "", 405},
		{"POST", "/events/create?x=1", s.key, "", 400},
		{"POST", "/events/create", s.key, "text/plain", 415},
	} {
		for name, body := range map[string]io.Reader{
			"with a length": strings.NewReader(ten),
			"chunked":       io.MultiReader(strings.NewReader(ten)),
		} {
			status, header, text := s.as(tt.key).sendFirst(srv, tt.method, tt.path, tt.contentType, body)
			closes := header.Get("Connection") == "close"
			if status != tt.status || !closes || !strings.Contains(text, `{"error":{`) {
				t.Errorf("%s %s with 10 MiB %s = %d %v %s, want %d and Connection: close",
					tt.method, tt.path, name, status, header, text, tt.status)
			}
		}
	}
}

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
	t.Run("a connection that ends anyway", func(t *testing.T) {
		const part = 50_000
		head := fmt.Sprintf("POST /nowhere HTTP/1.1\r\nConnection: close\r\nContent-Length: %d", 4*part)
		conn, in := s.dial(srv, head)
		for range 4 {
			time.Sleep(10 * time.Millisecond) // time to answer and to close
			if _, err := io.WriteString(conn, strings.Repeat("x", part)); err != nil {
				t.Errorf("a body of 200 kB with Connection: close: %v", err)
			}
		}
		if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != 404 {
			t.Errorf("POST /nowhere with Connection: close and 200 kB = %v, %v, want 404", resp, err)
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
	t.Run("Expect, refused while the body is read", func(t *testing.T) {
		conn, in := s.dial(srv, expecting+"Transfer-Encoding: chunked")
		if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
			t.Fatalf("%q, %v, want 100 Continue", line, err)
		}
		in.ReadString('\n')
		const size = 10 << 20
		_, err := fmt.Fprintf(conn, "%x\r\n%s\r\n0\r\n\r\n", size, strings.Repeat("x", size))
		if err != nil {
			t.Errorf("10 MiB in chunks after 100 Continue: %v", err)
		}
		if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != 413 {
			t.Errorf("10 MiB in chunks after 100 Continue = %v, %v, want 413", resp, err)
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
