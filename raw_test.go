package events_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestRawHTTP sends bytes over a connection to the server as it is run: what
// net/http refuses before us (its own text), and what reaches us (JSON).
func TestRawHTTP(t *testing.T) {
	t.Parallel()
	p := start(t, nil, "demo", "-addr", "127.0.0.1:0")
	addr := strings.TrimSuffix(strings.TrimPrefix(p.lines["base_url"], "http://"), base)
	const key = "x-service-api-key: svc_live_demo\r\n"
	const host = "Host: x\r\n"
	get := "GET " + base + "/users/me HTTP/1.1\r\n" + host + key
	post := "POST " + base + "/events/create HTTP/1.1\r\n" + host + key
	second := get + "\r\n"
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(newEvent), newEvent)
	tests := []struct {
		name, request string
		answers       string // statuses, in order, until the connection ends or is silent
	}{
		{"plain", get + "\r\n", "200"},
		{"two, one behind the other", get + "\r\n" + second, "200 200"},
		{"HTTP/1.0", "GET " + base + "/users/me HTTP/1.0\r\n" + key + "\r\n", "200"},
		{"HTTP/1.0 that would go on", "GET " + base + "/users/me HTTP/1.0\r\nConnection: keep-alive\r\n" + key + "\r\n" + second, "200"},
		{"a length and chunks, HTTP/1.0", "POST " + base + "/nowhere HTTP/1.0\r\nConnection: keep-alive\r\n" + key + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n67\r\n" + second, "404"},
		{"absolute form", "GET http://elsewhere" + base + "/users/me HTTP/1.1\r\n" + host + key + "\r\n", "200"},
		{"absolute form without a path", "GET http://elsewhere HTTP/1.1\r\n" + host + key + "\r\n", "404"},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\n" + host + "\r\n", "404"},
		{"CONNECT", "CONNECT x:80 HTTP/1.1\r\n" + host + "\r\n", "404"},
		{"CONNECT with a path", "CONNECT " + base + "/events HTTP/1.1\r\n" + host + key + "\r\n", "405"},
		{"TRACE", "TRACE " + base + "/events HTTP/1.1\r\n" + host + key + "\r\n", "405"},
		{"a method of our own", "BREW " + base + "/events HTTP/1.1\r\n" + host + key + "\r\n", "405"},
		{"doubled slash at the root", "GET /" + base + "/events HTTP/1.1\r\n" + host + key + "\r\n", "404"},
		{"a key with blanks around", "GET " + base + "/users/me HTTP/1.1\r\n" + host + "x-service-api-key: \t svc_live_demo \t\r\n\r\n", "200"},
		{"GET with a body", get + "Content-Length: 3\r\n\r\nabc" + second, "200 200"},
		{"a chunked body", post + "Transfer-Encoding: chunked\r\n\r\n" + chunked + second, "201"},
		{"a length and chunks", post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked + second, "201"},
		{"a length and chunks on a GET", get + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + second, "200"},
		{"a length and chunks without a key", "GET " + base + "/users/me HTTP/1.1\r\n" + host + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + second, "401"},
		{"the same length twice", post + fmt.Sprintf("Content-Length: %d\r\nContent-Length: %[1]d\r\n\r\n%s", len(newEvent), newEvent), "201"},
		{"a body cut short", post + "Content-Length: 5000\r\n\r\n" + newEvent, "400"},
		{"too much behind the length", post + fmt.Sprintf("Content-Length: %d\r\n\r\n%sGARBAGE\r\n\r\n", len(newEvent), newEvent), "201 400"},
		{"two lengths", post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef", "400"},
		{"length +3", post + "Content-Length: +3\r\n\r\nabc", "400"},
		{"negative length", post + "Content-Length: -3\r\n\r\nabc", "400"},
		{"transfer encoding identity", post + "Transfer-Encoding: identity\r\n\r\n", "501"},
		{"transfer encoding gzip, chunked", post + "Transfer-Encoding: gzip, chunked\r\n\r\n", "501"},
		{"space before the colon", get + "X-A : b\r\n\r\n", "400"},
		{"no host", "GET " + base + "/users/me HTTP/1.1\r\n" + key + "\r\n", "400"},
		{"two hosts", get + host + "\r\n", "400"},
		{"NUL in a value", get + "X-A: a\x00b\r\n\r\n", "400"},
		{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "404"},
		{"HTTP/3.0", "GET / HTTP/3.0\r\n" + host + "\r\n", "505"},
		{"no HTTP", "hello\r\n\r\n", "400"},
		{"broken escape in the path", "GET " + base + "/events/%zz HTTP/1.1\r\n" + host + key + "\r\n", "400"},
		{"odd Expect", get + "Expect: gold\r\n\r\n", "417"},
		{"headers of 24 KiB", get + "X-A: " + strings.Repeat("a", 24<<10) + "\r\n\r\n", "431"},
		{"headers of 15 KiB", get + "X-A: " + strings.Repeat("a", 15<<10) + "\r\n\r\n", "200"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(5 * time.Second))
			io.WriteString(conn, tt.request)
			conn.(*net.TCPConn).CloseWrite()
			var got []string
			in := bufio.NewReader(conn)
			for {
				resp, err := http.ReadResponse(in, &http.Request{Method: strings.SplitN(tt.request, " ", 2)[0]})
				if err != nil {
					break
				}
				body, _ := io.ReadAll(resp.Body)
				got = append(got, fmt.Sprint(resp.StatusCode))
				ours := resp.Header.Get("Cache-Control") == "no-store"
				if json := resp.Header.Get("Content-Type") == "application/json"; json != ours {
					t.Errorf("answer %s %v %s, want JSON with our headers or neither", resp.Status, resp.Header, body)
				}
			}
			if strings.Join(got, " ") != tt.answers {
				t.Errorf("%.200q is answered %s, want %s", tt.request, got, tt.answers)
			}
		})
	}
}
