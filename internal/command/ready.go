package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"example.com/events/internal/strict"
)

// Ready is what a server says when it is ready: lines on stdout, in this order, and the same as
// a JSON object in a [ReadyFile].
type Ready []Line

// Line is a line that is printed as "name: value".
type Line struct{ Name, Value string }

// Add adds a line.
func (r *Ready) Add(name, value string) { *r = append(*r, Line{name, value}) }

// String is the lines that are printed.
func (r Ready) String() string {
	var lines strings.Builder
	for _, l := range r {
		fmt.Fprintf(&lines, "%s: %s\n", l.Name, Printable(l.Value))
	}
	return lines.String()
}

// file is the content of the ready file: the lines, and the id of the process as "pid".
func (r Ready) file() []byte {
	object := []byte("{")
	for _, l := range r {
		object = fmt.Appendf(object, "%s:%s,", strict.Encode(l.Name), strict.Encode(l.Value))
	}
	return fmt.Appendf(object, "\"pid\":%d}\n", os.Getpid())
}

// ReadyFile is the file that a script waits for and reads.
type ReadyFile struct {
	Path string // "" if there is none

	// Check returns an error if the path leads to a file that the server needs for itself: the
	// ready file would replace it, and be removed at the end.
	Check func(path string) error
}

// Prepare removes the ready file of an earlier server and makes sure that one can be written.
// It refuses a path at which any other file is, so that a wrong path never deletes a file. It
// puts no file at the path: a script may wait for one there.
func (f ReadyFile) Prepare() error {
	if f.Path == "" {
		return nil
	}
	err := f.Check(f.Path)
	if err != nil {
		return fmt.Errorf("-ready-file: %w", err)
	}
	_, err = readReady(f.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("-ready-file: %s is there and is no ready file; give another path", f.Path)
	}
	err = tryReplace(f.Path)
	if err != nil {
		return fmt.Errorf("-ready-file: %w", err)
	}
	os.Remove(f.Path)
	return nil
}

// Write writes the file, which comes before the lines are printed: a script that waits for the
// last line finds the file, too.
func (f ReadyFile) Write(lines Ready) error {
	if f.Path == "" {
		return nil
	}
	err := f.Check(f.Path) // again, as the server may have made its files since
	if err == nil {
		err = replace(f.Path, func(w io.Writer) error {
			_, err := w.Write(lines.file())
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("-ready-file: %w", err)
	}
	return nil
}

// Remove removes the file if it is still as Write wrote it: the next server may have one at
// the same path by then.
func (f ReadyFile) Remove(lines Ready) {
	now, err := readReady(f.Path)
	if err == nil && bytes.Equal(now, lines.file()) {
		os.Remove(f.Path)
	}
}

const maxReady = 64 << 10 // bytes of a ready file; a longer file is none

// readReady reads a ready file. An empty file counts as one: mktemp makes it. Others may be
// able to write to its folder: what they put at its path is neither followed nor waited for.
func readReady(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxReady+1))
	if err != nil || len(content) == 0 {
		return nil, err
	}
	if len(content) > maxReady {
		return nil, fs.ErrInvalid
	}
	var ready struct {
		Ready string
		PID   int
	}
	err = json.Unmarshal(content, &ready)
	if err != nil || ready.Ready == "" || ready.PID == 0 {
		return nil, fs.ErrInvalid
	}
	return content, nil
}

// Health asks the server at an address whether it is well, and returns the URL that it
// asked. If the port is 0, it takes the real one from the line base_url of the ready file.
func Health(addr, readyFile string) (asked string, err error) {
	asked = URL(addr, "127.0.0.1")
	if strings.HasSuffix(addr, ":0") {
		asked = readyHost(readyFile, asked)
	}
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{}} // by no proxy
	resp, err := client.Get(asked + "/healthz")
	if err != nil {
		return "", fmt.Errorf("no answer from %s: %w", asked, errors.Unwrap(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode == 200 {
		return asked, nil
	}
	var told struct{ Error struct{ Message string } }
	reason := "it is another program"
	body := io.LimitReader(resp.Body, maxReady)
	if json.NewDecoder(body).Decode(&told) == nil && told.Error.Message != "" {
		reason = told.Error.Message
	}
	return "", fmt.Errorf("%s answered %s: %s", asked, resp.Status, reason)
}

// readyHost is the URL without a path of the server that wrote a ready file, or else another.
func readyHost(readyFile, otherwise string) string {
	content, err := readReady(readyFile)
	if err != nil {
		return otherwise
	}
	var ready struct {
		BaseURL string `json:"base_url"`
	}
	err = json.Unmarshal(content, &ready)
	if err != nil {
		return otherwise
	}
	base, err := url.Parse(ready.BaseURL)
	if err != nil || base.Host == "" {
		return otherwise
	}
	return "http://" + base.Host
}
