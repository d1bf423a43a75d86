// Package connections tests what happens on a connection: malformed requests, HEAD, Expect and slow commits.
package connections

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/events"
	"example.com/events/internal/apitest"
)

const base = events.BasePath

// readResponses returns the responses on a connection until it ends.
func readResponses(t *testing.T, conn net.Conn, method string) []*http.Response {
	t.Helper()
	conn.SetDeadline(time.Now().Add(time.Minute))
	in := bufio.NewReader(conn)
	var all []*http.Response
	for {
		r, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			return all
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("%s: body: got %v, want all of it", r.Status, err)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		all = append(all, r)
	}
}

// These requests reach us, or are refused by net/http in its own words.
func TestRawHTTP(t *testing.T) {
	t.Parallel()
	addr := apitest.Listen(t, apitest.New(t, apitest.Memory, nil).Handler)
	const (
		host   = "Host: x\r\n"
		key    = "x-service-api-key: svc_live_ada\r\n"
		me     = "GET " + base + "/users/me HTTP/1.1\r\n" + host
		get    = me + key
		get10  = "GET " + base + "/users/me HTTP/1.0\r\n" + key
		post   = "POST " + base + "/events/create HTTP/1.1\r\n" + host + key
		alive  = "Connection: keep-alive\r\n"
		chunks = "Transfer-Encoding: chunked\r\n"
		end    = "\r\n"
		second = get + end // another request on the same connection
	)
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(apitest.NewEvent), apitest.NewEvent)
	length := fmt.Sprintf("Content-Length: %d\r\n", len(apitest.NewEvent))
	for _, tt := range []struct {
		name, request string
		want          string // statuses
	}{
		{"one", get + end, "200"},
		{"two", get + end + second, "200 200"},
		{"HTTP/1.0", get10 + end, "200"},
		{"HTTP/1.0 with keep-alive", get10 + alive + end + second, "200"},
		{"length and chunks in HTTP/1.0", "POST " + base + "/nowhere HTTP/1.0\r\n" + key + alive +
			"Content-Length: 4\r\n" + chunks + end + "67\r\n" + second, "404"},
		{"absolute form", "GET http://elsewhere" + base + "/users/me HTTP/1.1\r\n" + host + key + end, "200"},
		{"absolute form without a path", "GET http://elsewhere HTTP/1.1\r\n" + host + key + end, "404"},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\n" + host + end, "404"},
		{"CONNECT", "CONNECT x:80 HTTP/1.1\r\n" + host + end, "404"},
		{"CONNECT with a path", "CONNECT " + base + "/events HTTP/1.1\r\n" + host + key + end, "405"},
		{"TRACE", "TRACE " + base + "/events HTTP/1.1\r\n" + host + key + end, "405"},
		{"unknown method", "BREW " + base + "/events HTTP/1.1\r\n" + host + key + end, "405"},
		{"double slash", "GET /" + base + "/events HTTP/1.1\r\n" + host + key + end, "404"},
		{"key with blanks", me + "x-service-api-key: \t svc_live_ada \t\r\n" + end, "200"},
		{"GET with a body", get + "Content-Length: 3\r\n" + end + "abc" + second, "200 200"},
		{"chunked body", post + chunks + end + chunked + second, "201"},
		{"length and chunks", post + "Content-Length: 5\r\n" + chunks + end + chunked + second, "201"},
		{"length and chunks of a GET",
			get + "Content-Length: 5\r\n" + chunks + end + "0\r\n\r\n" + second, "200"},
		{"length and chunks without a key",
			me + "Content-Length: 5\r\n" + chunks + end + "0\r\n\r\n" + second, "401"},
		{"the same length twice", post + length + length + end + apitest.NewEvent, "201"},
		{"body cut short", post + "Content-Length: 5000\r\n" + end + apitest.NewEvent, "408"},
		{"chunk cut short", post + chunks + end + "5\r\n{", "408"},
		{"trailer cut short", post + chunks + end + "1\r\n{\r\n0\r\n", "408"},
		{"malformed chunk", post + chunks + end + "1\r\n{\r\nx\r\n", "400"},
		{"long chunk", post + chunks + end + "1\r\n{}\r\n0\r\n\r\n", "400"},
		{"two lengths", post + "Content-Length: 5\r\nContent-Length: 6\r\n" + end + "abcdef", "400"},
		{"length with a sign", post + "Content-Length: +3\r\n" + end + "abc", "400"},
		{"negative length", post + "Content-Length: -3\r\n" + end + "abc", "400"},
		{"transfer encoding gzip", post + "Transfer-Encoding: gzip, chunked\r\n" + end, "501"},
		{"space before a colon", get + "X-A : b\r\n" + end, "400"},
		{"no host", "GET " + base + "/users/me HTTP/1.1\r\n" + key + end, "400"},
		{"two hosts", get + host + end, "400"},
		{"NUL in a header", get + "X-A: a\x00b\r\n" + end, "400"},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "404"},
		{"HTTP/3.0", "GET / HTTP/3.0\r\n" + host + end, "505"},
		{"no HTTP", "hello\r\n\r\n", "400"},
		{"malformed escape", "GET " + base + "/events/%zz HTTP/1.1\r\n" + host + key + end, "400"},
		{"unknown Expect", get + "Expect: gold\r\n" + end, "417"},
		{"24 KiB of headers", get + "X-A: " + strings.Repeat("a", 24<<10) + "\r\n" + end, "431"},
		{"15 KiB of headers", get + "X-A: " + strings.Repeat("a", 15<<10) + "\r\n" + end, "200"},
	} {
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
			for _, r := range readResponses(t, conn, method) {
				got = append(got, fmt.Sprint(r.StatusCode))
				ours := r.Header.Get("Cache-Control") == "no-store"
				isJSON := r.Header.Get("Content-Type") == "application/json"
				if isJSON != ours {
					t.Errorf("%s: header: got %v, want JSON with our headers, or neither", r.Status, r.Header)
				}
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("%.200q: statuses: got %s, want %s", tt.request, got, tt.want)
			}
		})
	}
}

// A client that sends Expect learns that its body is too large before it sends it.
func TestExpectContinue(t *testing.T) {
	t.Parallel()
	conn, err := net.Dial("tcp", apitest.Listen(t, apitest.New(t, apitest.Memory, nil).Handler))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s/events/create HTTP/1.1\r\nHost: x\r\nx-service-api-key: svc_live_ada\r\n"+
		"Expect: 100-continue\r\nContent-Length: 2000000\r\n\r\n", base)
	responses := readResponses(t, conn, "POST")
	if len(responses) != 1 {
		t.Fatalf("responses: got %v, want one and the end of the connection", responses)
	}
	if got := responses[0].StatusCode; got != 413 {
		t.Errorf("status: got %d, want 413", got)
	}
}

func TestHEAD(t *testing.T) {
	t.Parallel()
	url := "http://" + apitest.Listen(t, apitest.New(t, apitest.Memory, nil).Handler) + base
	for _, path := range []string{"/events", "/events/one", "/events/nowhere", "/openapi"} {
		var header [2]http.Header
		for i, method := range []string{"GET", "HEAD"} {
			r, _ := http.NewRequestWithContext(t.Context(), method, url+path, nil)
			r.Header.Set("x-service-api-key", "svc_live_ada")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			resp.Header.Del("Date")
			header[i] = resp.Header
		}
		if !maps.EqualFunc(header[0], header[1], slices.Equal) {
			t.Errorf("HEAD %s: header: got %v, want as for GET %v", path, header[1], header[0])
		}
	}
}
