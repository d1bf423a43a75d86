package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// How long the client waits for the running server.
const (
	dialTimeout  = time.Second
	quietTimeout = 10 * time.Second // without a byte in either direction
	applyTimeout = 60 * time.Second // the same, once the records are sent: they may be many
)

// Dial returns the store of the server that listens on a Unix socket, or an
// error where none answers.
func Dial(socket string) (Store, error) {
	dial := func() (net.Conn, error) { return net.DialTimeout("unix", socket, dialTimeout) }
	conn, err := dial()
	if err != nil {
		return nil, err
	}
	conn.Close()
	return client{dial}, nil
}

// A ServerError is a failure of the running server, not of what it was asked.
type ServerError struct {
	Message string
	ID      string // of the request in the server's log, or ""
}

func (e *ServerError) Error() string {
	if e.ID == "" {
		return "the running server " + e.Message
	}
	return "the running server failed: its log has the cause under the id " + e.ID
}

// client is the store of a running server.
type client struct{ dial func() (net.Conn, error) }

// watched is a reader that reports each Read, and whether it was the last.
type watched struct {
	io.Reader
	report func(last bool)
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	w.report(err != nil)
	return n, err
}

// do sends a request and returns the body of its answer. It gives up where the
// server stays silent. Where no answer came although the whole request was sent,
// the error says what may have happened.
func (c client) do(method, path string, body []byte, mayHave string) ([]byte, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	silence := time.AfterFunc(quietTimeout, cancel)
	var sent atomic.Bool
	upload := watched{bytes.NewReader(body), func(last bool) {
		silence.Reset(quietTimeout)
		if last && method == http.MethodPost && path == "/records" {
			silence.Reset(applyTimeout)
		}
		sent.Store(last)
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://operator"+path, upload)
	if err != nil {
		return nil, err
	}
	req.ContentLength = int64(len(body))
	failed := func(how string, err error) error {
		if ctx.Err() != nil {
			err = errors.New("it was silent for too long")
		}
		if !sent.Load() {
			mayHave = ""
		}
		return &ServerError{Message: how + ": " + err.Error() + mayHave}
	}
	dial := func(context.Context, string, string) (net.Conn, error) { return c.dial() }
	resp, err := (&http.Transport{DialContext: dial, DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return nil, failed("did not answer", err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	b.Grow(int(max(0, resp.ContentLength)) + bytes.MinRead) // a dump may be large
	download := watched{resp.Body, func(bool) { silence.Reset(quietTimeout) }}
	if _, err := b.ReadFrom(download); err != nil {
		return nil, failed("broke off its answer", err)
	}
	if resp.StatusCode >= 300 {
		return nil, refusal(resp, b.Bytes())
	}
	return b.Bytes(), nil
}

// refusal is the error of an answer that is no success.
func refusal(resp *http.Response, body []byte) error {
	var e struct{ Error struct{ Message string } }
	if json.Unmarshal(body, &e) != nil || e.Error.Message == "" {
		return &ServerError{Message: "answered " + resp.Status + ": " + strings.TrimSpace(string(body))}
	}
	if resp.StatusCode >= 500 {
		return &ServerError{e.Error.Message, resp.Header.Get("X-Request-Id")}
	}
	return errors.New(e.Error.Message)
}

func (c client) IssueKeyJSON(request []byte) ([]byte, error) {
	return c.do("POST", "/keys", request, "; the key may have been issued")
}

func (c client) KeysJSON() ([]byte, error) {
	keys, err := c.do("GET", "/keys", nil, "")
	if err != nil {
		return nil, err
	}
	var list struct{ Data json.RawMessage }
	err = json.Unmarshal(keys, &list)
	return list.Data, err
}

func (c client) RevokeKey(id string) error {
	_, err := c.do("DELETE", "/keys/"+url.PathEscape(id), nil, "; the key may have been revoked")
	return err
}

func (c client) RecordsJSON() ([]byte, error) { return c.do("GET", "/records", nil, "") }

func (c client) ApplyJSON(records []byte) error {
	_, err := c.do("POST", "/records", records, "; the records may have been applied")
	return err
}
