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

// errNoServer is wrapped by errors of dialSocket if the data file has no socket that a server listens on.
var errNoServer = errors.New("no server can be reached")

// A reader reads the body of a response.
type reader func(body io.Reader) error

// decode returns a reader that decodes JSON into a value.
func decode(value any) reader {
	return func(body io.Reader) error { return json.NewDecoder(body).Decode(value) }
}

// copyTo returns a reader that copies the body to w.
func copyTo(w io.Writer) reader {
	return func(body io.Reader) error {
		_, err := io.Copy(w, body)
		return err
	}
}

// call sends a request to the server of a data file, and reads the response. If no server is running, it
// opens the file and serves its routes to itself.
func (c *Commands) call(ctx context.Context, data, method, path string, body io.Reader, read reader) error {
	conn, err := dialSocket(data)
	if err == nil {
		return exchange(ctx, conn, method, path, body, read)
	}
	if !errors.Is(err, errNoServer) {
		return err
	}
	handler, file, err := c.Open(data)
	if err != nil {
		conn, dialErr := dialSocket(data) // a server that was starting holds the lock, and listens now
		if dialErr == nil {
			return exchange(ctx, conn, method, path, body, read)
		}
		return err
	}
	if method == "GET" { // others needn't wait for the lock while the response is printed
		err := file.Close()
		if err != nil {
			return err
		}
	}
	conn, server := net.Pipe()
	httpapi.ServeConn(&http.Server{Handler: handler}, server)
	err = exchange(ctx, conn, method, path, body, read)
	closeErr := file.Close()
	return cmp.Or(err, closeErr)
}

// exchange sends one request on a connection, reads the response and closes the connection. If the response
// is an error, it returns the message.
func exchange(
	ctx context.Context, conn net.Conn, method, path string, body io.Reader, read reader,
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
		return fmt.Errorf("no response from the server: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode < 300 {
		return read(response.Body)
	}
	message := errorMessage(response)
	if message == "" {
		return fmt.Errorf("the socket belongs to another program: it responded with %s", response.Status)
	}
	return errors.New(message)
}

// errorMessage returns the message in a response with an error, or "" if another program sent it.
func errorMessage(response *http.Response) string {
	var e struct{ Error struct{ Message string } }
	json.NewDecoder(response.Body).Decode(&e) // fails if there is no message
	return e.Error.Message
}
