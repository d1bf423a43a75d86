package operator

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"example.com/events/internal/command"
)

// How long the client waits for the running server.
const (
	quietTimeout = 10 * time.Second // without a byte in either direction
	applyTimeout = 60 * time.Second // once the records are sent: they may be many
)

// liveConn is a connection that fails when nothing has moved on it for too long.
type liveConn struct{ net.Conn }

func (c liveConn) Read(p []byte) (int, error)  { return c.moved(c.Conn.Read(p)) }
func (c liveConn) Write(p []byte) (int, error) { return c.moved(c.Conn.Write(p)) }

func (c liveConn) moved(n int, err error) (int, error) {
	if err == nil {
		err = c.SetDeadline(time.Now().Add(quietTimeout))
	}
	return n, err
}

// ask sends a request to the routes that [StoreRoutes] returns. The path is a key
// of that table, in which the id stands for {id}.
type ask func(method, path, id string, body []byte) (answer []byte, err error)

// ask is the [ask] of routes in this process.
func (routes Routes) ask(method, path, id string, body []byte) ([]byte, error) {
	return routes[path][method].Do(Request{ID: id, Body: body})
}

// askServer returns the [ask] of a running server to which there is a connection.
func askServer(conn net.Conn) ask {
	conn = liveConn{conn}
	return func(method, path, id string, body []byte) (answer []byte, err error) {
		target := "http://operator" + strings.Replace(path, "{id}", url.PathEscape(id), 1)
		req, err := http.NewRequest(method, target, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		_ = conn.SetDeadline(time.Now().Add(quietTimeout)) // fails only on a closed connection
		doubt := ""
		// If this fails, nothing was applied, and a refusal may have come already.
		if req.Write(conn) == nil && method != http.MethodGet {
			doubt = "; it may have been applied"
			if path == "/records" {
				_ = conn.SetDeadline(time.Now().Add(applyTimeout))
			}
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), req)
		if err == nil {
			answer, err = io.ReadAll(resp.Body)
		}
		if err != nil {
			return nil, command.Failed(fmt.Errorf("the running server did not answer: %w%s", err, doubt))
		}
		if resp.StatusCode < http.StatusMultipleChoices {
			return answer, nil
		}
		var e struct{ Error struct{ Message string } }
		if json.Unmarshal(answer, &e) != nil || resp.StatusCode >= http.StatusInternalServerError {
			return nil, command.Failed(fmt.Errorf("the running server answered %s: its log has the cause "+
				"under the id %s", resp.Status, resp.Header.Get("X-Request-Id")))
		}
		return nil, errors.New(e.Error.Message)
	}
}

// into asks and decodes the answer.
func (a ask) into(answer any, method, path, id string, body []byte) error {
	raw, err := a(method, path, id, body)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, answer)
}
