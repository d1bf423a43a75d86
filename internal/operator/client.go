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
	quietTimeout = 10 * time.Second // without a byte in either direction
	applyTimeout = 60 * time.Second // once the records are sent: they may be many
)

// liveConn is a connection that fails when nothing has moved on it for too long.
type liveConn struct{ net.Conn }

func (c liveConn) Read(p []byte) (int, error)  { return c.moved(c.Conn.Read(p)) }
func (c liveConn) Write(p []byte) (int, error) { return c.moved(c.Conn.Write(p)) }

func (c liveConn) moved(n int, err error) (int, error) {
	if err == nil {
		err = c.wait(quietTimeout)
	}
	return n, err
}

// wait sets for how long nothing may move from now on.
func (c liveConn) wait(most time.Duration) error { return c.SetDeadline(time.Now().Add(most)) }

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
	conn := liveConn{c}
	return func(w io.Writer, operation, id string, body []byte) error {
		method, path, _ := strings.Cut(operation, " ")
		target := "http://operator" + strings.Replace(path, "{id}", url.PathEscape(id), 1)
		req, err := http.NewRequest(method, target, bytes.NewReader(body))
		if err != nil {
			return err
		}
		_ = conn.wait(quietTimeout) // fails only on a closed connection
		doubt := ""
		// If this fails, nothing was applied, and a refusal may have come already.
		if req.Write(conn) == nil && method != http.MethodGet {
			doubt = "; it may have been applied"
			if path == "/records" {
				_ = conn.wait(applyTimeout)
			}
		}
		broken := func(err error) error {
			return command.Failed(fmt.Errorf("the running server did not answer: %w%s", err, doubt))
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), req)
		if err != nil {
			return broken(err)
		}
		if resp.StatusCode < http.StatusMultipleChoices {
			return conn.copy(w, resp.Body, broken)
		}
		refused, err := io.ReadAll(resp.Body)
		if err != nil {
			return broken(err)
		}
		var e struct{ Error struct{ Message string } }
		if json.Unmarshal(refused, &e) != nil || resp.StatusCode >= http.StatusInternalServerError {
			return command.Failed(fmt.Errorf("the running server answered %s: its log has the cause "+
				"under the id %s", resp.Status, resp.Header.Get("X-Request-Id")))
		}
		return errors.New(e.Error.Message)
	}
}

// copy copies an answer to w, which may take its time: it may be a terminal. An error of
// the answer is returned as broken makes it.
func (c liveConn) copy(w io.Writer, answer io.Reader, broken func(error) error) error {
	part := make([]byte, 64<<10)
	for {
		n, readErr := answer.Read(part)
		for i, b := range part[:n] {
			if b < ' ' && !slices.Contains([]byte("\n\t\r"), b) {
				part[i] = '?' // JSON has no other control characters, which could steer a terminal
			}
		}
		_, err := w.Write(part[:n])
		if err != nil {
			return command.Failed(err)
		}
		_ = c.wait(quietTimeout)
		if readErr == io.EOF {
			return nil
		}
		if readErr != nil {
			return broken(readErr)
		}
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
