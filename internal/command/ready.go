package command

import (
	"cmp"
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

// Ready is what a server says when it is ready: line by line on stdout, and as
// a JSON object in the ready file, if its path is not "". An empty member is left out.
type Ready struct {
	BaseURL      string `json:"base_url"`
	Key          string `json:"api_key,omitempty"`
	Data         string `json:"data,omitempty"`
	Operator     string `json:"operator,omitempty"`
	ControlURL   string `json:"control_url,omitempty"`
	ControlToken string `json:"control_token,omitempty"`
	Inspector    string `json:"inspector,omitempty"`
	Ready        string `json:"ready"`
	PID          int    `json:"pid,omitempty"` // in the file alone
}

// String is the lines that are printed.
func (r Ready) String() string { return Lines(strict.Encode(r)) }

// WriteFile writes the ready file, which comes before the lines: a script that waits for the
// last line finds the file, too.
func (r Ready) WriteFile(path string) error {
	if path == "" {
		return nil
	}
	r.PID = os.Getpid()
	err := replace(path, func(w io.Writer) error {
		_, err := w.Write(append(strict.Encode(r), '\n'))
		return err
	})
	if err != nil {
		return fmt.Errorf("-ready-file: %w", err)
	}
	return nil
}

// RemoveFile removes the file if it is still as WriteFile wrote it: the next server may
// have one at the same path by then.
func (r Ready) RemoveFile(path string) {
	r.PID = os.Getpid()
	now, err := readReady(path)
	if err == nil && now == r {
		os.Remove(path)
	}
}

// Lines is a JSON object with a line for each member: its name and its value.
func Lines(object []byte) string {
	value, _ := strict.Parse(object) // it was just encoded
	var lines strings.Builder
	for _, member := range value.Members {
		fmt.Fprintf(&lines, "%s: %s\n", member.Name, cmp.Or(member.Value.Text, "none"))
	}
	return lines.String()
}

// PrepareReadyFile removes the ready file of an earlier server and makes sure that
// one can be written. It refuses a path at which any other file is, so that a wrong path
// never deletes a file. It puts no file at the path: a script may wait for one there.
func PrepareReadyFile(path string) error {
	if path == "" {
		return nil
	}
	_, err := readReady(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("-ready-file: %s is there and is no ready file; give another path", path)
	}
	tried := errors.New("tried")
	err = replace(path, func(io.Writer) error { return tried })
	if !errors.Is(err, tried) {
		return fmt.Errorf("-ready-file: %w", err)
	}
	os.Remove(path)
	return nil
}

// readReady reads a ready file. An empty file counts as one: mktemp makes it.
func readReady(path string) (r Ready, err error) {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return r, fs.ErrInvalid
	}
	content, err := os.ReadFile(path)
	if err != nil || len(content) == 0 {
		return r, err
	}
	if json.Unmarshal(content, &r) != nil || r.Ready == "" || r.PID == 0 {
		return r, fs.ErrInvalid
	}
	return r, nil
}

// Health asks the server at an address whether it is well, and returns the URL that it
// asked. If the port is 0, it takes the real one from the ready file.
func Health(addr, readyFile string) (asked string, err error) {
	asked = URL(addr, "127.0.0.1")
	ready, missing := readReady(readyFile)
	base, err := url.Parse(ready.BaseURL)
	if missing == nil && err == nil && strings.HasSuffix(addr, ":0") {
		asked = "http://" + base.Host // without the path of a base URL
	}
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{}} // by no proxy
	resp, err := client.Get(asked + "/healthz")
	if err != nil {
		return "", fmt.Errorf("no answer from %s: %w", asked, errors.Unwrap(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		err = fmt.Errorf("%s answered %s: it cannot write, or is another program", asked, resp.Status)
	}
	return asked, err
}
