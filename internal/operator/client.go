package operator

import (
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

// call sends a request to the server of a data file or, if none is running, serves it from the file. It
// decodes the response into result, unless result is nil.
func (c *Commands) call(ctx context.Context, data, method, path string, body io.Reader, result any) error {
	client, err := c.dial(data, method == "GET")
	if err != nil {
		return err
	}
	err = client.call(ctx, method, path, body, result)
	closeErr := client.Close()
	return cmp.Or(err, closeErr)
}

// A client sends one request to the routes of a data file.
type client struct {
	conn net.Conn
	file io.Closer // data file to close, or nil
}

// dial connects to the server that has a data file open. If none is running, it opens the file and serves
// its routes in this process. For a request that only reads, it closes the file at once, so other processes
// don't wait for its lock while the output is printed.
func (c *Commands) dial(data string, readOnly bool) (*client, error) {
	conn, err := dialSocket(data)
	if err == nil {
		return &client{conn: conn}, nil
	}
	if !errors.Is(err, errNoServer) {
		return nil, err
	}
	handler, file, err := c.Open(data)
	if err != nil {
		conn, dialErr := dialSocket(data) // a server that was starting holds the lock, and listens now
		if dialErr == nil {
			return &client{conn: conn}, nil
		}
		return nil, err
	}
	if readOnly {
		err := file.Close()
		if err != nil {
			return nil, err
		}
		file = nil
	}
	conn, server := net.Pipe()
	httpapi.ServeConn(&http.Server{Handler: handler}, server)
	return &client{conn, file}, nil
}

// Close closes the connection and the file.
func (c *client) Close() error {
	c.conn.Close()
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// send sends a request and returns the body of the response, or the error in it.
func (c *client) send(ctx context.Context, method, path string, body io.Reader) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://operator"+path, body)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return c.conn, nil },
		DisableKeepAlives: true,
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("no response from the server: %w", err)
	}
	if response.StatusCode < 300 {
		return response.Body, nil
	}
	defer response.Body.Close()
	var e struct{ Error struct{ Message string } }
	err = json.NewDecoder(response.Body).Decode(&e)
	if err != nil {
		return nil, fmt.Errorf("the socket belongs to another program: it responded with %s", response.Status)
	}
	return nil, errors.New(e.Error.Message)
}

// call sends a request and decodes the response into result, unless result is nil.
func (c *client) call(ctx context.Context, method, path string, body io.Reader, result any) error {
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Close()
	if result == nil {
		return nil
	}
	return json.NewDecoder(response).Decode(result)
}
