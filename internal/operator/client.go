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
	"slices"
	"strings"
	"time"

	"example.com/events/internal/command"
)

// How long the client waits for the running server.
const (
	quietTimeout = 10 * time.Second // for a read or a write
	applyTimeout = 10 * time.Minute // once the records are sent: they may be many, and the disk slow
)

// liveConn is a connection of which a read or a write fails when it takes longer than a
// timeout.
type liveConn struct {
	net.Conn
	timeout time.Duration
}

func (c *liveConn) Read(p []byte) (int, error) {
	_ = c.SetDeadline(time.Now().Add(c.timeout)) // fails only on a closed connection
	return c.Conn.Read(p)
}

func (c *liveConn) Write(p []byte) (int, error) {
	_ = c.SetDeadline(time.Now().Add(c.timeout))
	return c.Conn.Write(p)
}

// answerBody is the body of an answer without control characters, which could steer a
// terminal: JSON has none but for tabs and line ends. An error is returned as broken
// makes it.
type answerBody struct {
	io.Reader
	broken func(error) error
}

func (a answerBody) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	for i, b := range p[:n] {
		if b < ' ' && !slices.Contains([]byte("\n\t\r"), b) {
			p[i] = '?'
		}
	}
	if err != nil && err != io.EOF {
		err = a.broken(err)
	}
	return n, err
}

// ask sends a request for an operation of [StoreRoutes], in whose path the id stands for
// {id}. It writes the answer to w, piece by piece as it comes. If it returns an error, the
// answer may have been written in part.
type ask func(w io.Writer, operation, id string, body []byte) error

// ask is the [ask] of routes in this process.
func (routes Routes) ask(w io.Writer, operation, id string, body []byte) error {
	i := slices.IndexFunc(routes, func(rt Route) bool { return rt.Operation == operation })
	if routes[i].Stream != nil {
		return command.Failed(routes[i].Stream(w))
	}
	answer, err := routes[i].Do(Request{ID: id, Body: body})
	if err != nil {
		return err
	}
	_, err = w.Write(answer)
	return command.Failed(err)
}

// askServer returns the [ask] of a running server to which there is a connection.
func askServer(c net.Conn) ask {
	conn := &liveConn{c, quietTimeout}
	return func(w io.Writer, operation, id string, body []byte) error {
		method, path, _ := strings.Cut(operation, " ")
		target := "http://operator" + strings.Replace(path, "{id}", url.PathEscape(id), 1)
		req, err := http.NewRequest(method, target, bytes.NewReader(body))
		if err != nil {
			return err
		}
		doubt := ""
		broken := func(err error) error {
			return command.Failed(fmt.Errorf("the running server did not answer: %w%s", err, doubt))
		}
		// If this fails, nothing was applied, and a refusal may come nevertheless.
		if req.Write(conn) == nil && method != http.MethodGet {
			doubt = "; it may have been applied"
			if path == "/records" {
				conn.timeout = applyTimeout
			}
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), req)
		if err != nil {
			return broken(err)
		}
		answer := answerBody{resp.Body, broken}
		if resp.StatusCode < http.StatusMultipleChoices {
			_, err = io.Copy(w, answer)
			return command.Failed(err)
		}
		refused, err := io.ReadAll(answer)
		if err != nil {
			return err
		}
		var e struct{ Error struct{ Message string } }
		if json.Unmarshal(refused, &e) != nil || resp.StatusCode >= http.StatusInternalServerError {
			return command.Failed(fmt.Errorf("the running server answered %s: its log has the cause "+
				"under the id %s", resp.Status, resp.Header.Get("X-Request-Id")))
		}
		return errors.New(e.Error.Message)
	}
}

// into asks for an operation without an id and decodes the answer.
func (a ask) into(answer any, operation string, body []byte) error {
	var raw bytes.Buffer
	if err := a(&raw, operation, "", body); err != nil {
		return err
	}
	return json.Unmarshal(raw.Bytes(), answer)
}
