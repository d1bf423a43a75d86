package operator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"example.com/events/internal/httpapi"
)

// errNoServer is returned by dialSocket if no server listens on the socket.
var errNoServer = errors.New("no server answers")

// call sends a request to the server of a data file and writes the response body to w. If no server is
// running, it opens the file and serves the routes to itself.
func (c *CLI) call(ctx context.Context, data, method, path string, body io.Reader, w io.Writer) error {
	conn, err := dialSocket(data)
	if err == nil {
		return roundTrip(ctx, conn, method, path, body, w)
	}
	if !errors.Is(err, errNoServer) {
		return err
	}
	handler, file, err := c.Open(data)
	if err != nil {
		conn, dialErr := dialSocket(data) // the lock may belong to a server that has just started
		if dialErr == nil {
			return roundTrip(ctx, conn, method, path, body, w)
		}
		return err
	}
	if method == "GET" { // reads work on a closed file, so release the lock before printing
		err := file.Close()
		if err != nil {
			return err
		}
	}
	conn, server := net.Pipe()
	httpapi.ServeConn(&http.Server{Handler: handler}, server)
	err = roundTrip(ctx, conn, method, path, body, w)
	closeErr := file.Close()
	return cmp.Or(err, closeErr)
}

// callJSON is like call, but decodes the JSON response into value and returns its text.
func (c *CLI) callJSON(
	ctx context.Context, data, method, path string, body io.Reader, value any,
) (text []byte, err error) {
	var response bytes.Buffer
	err = c.call(ctx, data, method, path, body, &response)
	if err != nil {
		return nil, err
	}
	return response.Bytes(), json.Unmarshal(response.Bytes(), value)
}

// roundTrip sends one request on a connection, writes the response body to w and closes the connection. For
// an error response, it returns the message as an error.
func roundTrip(
	ctx context.Context, conn net.Conn, method, path string, body io.Reader, w io.Writer,
) error {
	defer conn.Close()
	r, err := http.NewRequestWithContext(ctx, method, "http://operator"+path, body)
	if err != nil {
		return err
	}
	transport := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		DisableKeepAlives: true,
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return fmt.Errorf("no response from the server, which may have made the change: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode < 300 {
		_, err := io.Copy(w, response.Body)
		return err
	}
	message := errorMessage(response)
	if message == "" {
		return fmt.Errorf("the socket belongs to another program: it responded with %s", response.Status)
	}
	return errors.New(message)
}

// errorMessage returns the message of an error response, or "" if another program sent it.
func errorMessage(response *http.Response) string {
	var e struct{ Error struct{ Message string } }
	json.NewDecoder(response.Body).Decode(&e) // fails if there is no message
	return e.Error.Message
}
