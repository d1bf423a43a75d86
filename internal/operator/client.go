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
	"time"
)

// How long the client waits for the running server.
const (
	quietTimeout = 10 * time.Second // for a read or a write
	applyTimeout = 10 * time.Minute // once the records are sent: they may be many, and the disk slow
)

// client is the [Store] of a running server, and the connection to it. A read or a write
// fails when it takes longer than a timeout.
type client struct {
	net.Conn
	timeout time.Duration
	doubt   string // ends the error of a read
}

// Read has an error that is not io.EOF, as a server never closes the connection before the
// client does.
func (c *client) Read(p []byte) (int, error) {
	c.SetDeadline(time.Now().Add(c.timeout)) // fails only on a closed connection
	n, err := c.Conn.Read(p)
	if err != nil {
		err = fmt.Errorf("the running server did not answer: %w%s", err, c.doubt)
	}
	return n, err
}

func (c *client) Write(p []byte) (int, error) {
	c.SetDeadline(time.Now().Add(c.timeout))
	return c.Conn.Write(p)
}

// ask sends a request for an operation of [StoreRoutes]. It writes the answer to w, piece
// by piece as it comes. If it returns an error, the answer may have been written in part.
func (c *client) ask(w io.Writer, method, path string, body []byte) error {
	// This cannot fail: methods and paths are constants, but for an id that is escaped.
	req, _ := http.NewRequest(method, "http://operator"+path, bytes.NewReader(body))
	c.timeout = quietTimeout
	c.doubt = ""
	// If this fails, nothing was applied, and a refusal may come nevertheless.
	if req.Write(c) == nil && method != "GET" {
		c.doubt = "; it may have been applied"
		if path == "/records" {
			c.timeout = applyTimeout
		}
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), req)
	if err != nil {
		return err
	}
	if resp.StatusCode < 300 {
		_, err = io.Copy(w, resp.Body)
		return err
	}
	var e struct{ Error struct{ Message string } }
	err = json.NewDecoder(resp.Body).Decode(&e)
	if err != nil {
		return fmt.Errorf("the running server answered %s, and is no server of this program", resp.Status)
	}
	if resp.StatusCode >= 500 {
		return fmt.Errorf("the running server answered %s: %s", resp.Status, e.Error.Message)
	}
	return errors.New(e.Error.Message)
}

// decode asks and decodes the answer.
func decode[T any](c *client, method, path string, body []byte) (answer T, err error) {
	var raw bytes.Buffer
	err = c.ask(&raw, method, path, body)
	if err == nil {
		err = json.Unmarshal(raw.Bytes(), &answer)
	}
	return answer, err
}

func (c *client) IssueKeyJSON(request []byte) (map[string]string, error) {
	return decode[map[string]string](c, "POST", "/keys", request)
}

func (c *client) Keys() ([]byte, error) {
	list, err := decode[struct{ Data json.RawMessage }](c, "GET", "/keys", nil)
	return list.Data, err
}

func (c *client) RevokeKey(id string) error {
	return c.ask(io.Discard, "DELETE", "/keys/"+url.PathEscape(id), nil)
}

func (c *client) WriteRecords(w io.Writer) error {
	return c.ask(w, "GET", "/records", nil)
}

func (c *client) UserRecords(userID string) (write func(io.Writer) error, err error) {
	return func(w io.Writer) error {
		return c.ask(w, "GET", "/records?user="+url.QueryEscape(userID), nil)
	}, nil
}

// ApplyRecords returns no ids: they are in the log of the server.
func (c *client) ApplyRecords(records []byte) (map[string]int, map[string][]string, error) {
	count, err := decode[map[string]int](c, "POST", "/records", records)
	return count, nil, err
}
