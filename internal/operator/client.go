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

// timeout is how long a subcommand waits for the running server. It is long, as a
// dump or an array of records may be large and its disk slow.
const timeout = time.Minute

// ask sends a request to the routes that [StoreRoutes] returns. The path is a key
// of that table, in which the id stands for {id}.
type ask func(method, path, id string, body []byte) (answer []byte, err error)

// ask is the [ask] of routes in this process.
func (routes Routes) ask(method, path, id string, body []byte) ([]byte, error) {
	return routes[path][method].Do(Request{ID: id, Body: body})
}

// askServer returns the [ask] of a running server to which there is a connection.
func askServer(conn net.Conn) ask {
	_ = conn.SetDeadline(time.Now().Add(timeout)) // fails only on a closed connection
	return func(method, path, id string, body []byte) (answer []byte, err error) {
		path = strings.Replace(path, "{id}", url.PathEscape(id), 1)
		req, err := http.NewRequest(method, "http://operator"+path, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		_ = req.Write(conn) // where it fails, a refusal may have come before the end
		resp, err := http.ReadResponse(bufio.NewReader(conn), req)
		if err == nil {
			defer resp.Body.Close()
			answer, err = io.ReadAll(resp.Body)
		}
		if err != nil {
			return nil, command.Failed(fmt.Errorf("the running server gave no whole answer: %w; "+
				"what it was to change may have been changed", err))
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
