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
	"path/filepath"
	"strings"
	"time"

	"example.com/events/internal/strict"
)

// Ready is what a server says when it is ready: line by line on stdout, and as
// a JSON object in the ready file. An empty member is left out.
type Ready struct {
	BaseURL      string `json:"base_url"`
	Key          string `json:"api_key,omitempty"`
	Data         string `json:"data,omitempty"`
	Operator     string `json:"operator,omitempty"`
	ControlURL   string `json:"control_url,omitempty"`
	ControlToken string `json:"control_token,omitempty"`
	Inspector    string `json:"inspector,omitempty"`
	Ready        string `json:"ready"`
	PID          int    `json:"pid"`
}

// Print writes the file, then prints the lines: a script that waits for the last line
// finds the file, too.
func (r Ready) Print(stdout io.Writer, file *ReadyFile) error {
	if err := file.write(r); err != nil {
		return fmt.Errorf("-ready-file: %w", err)
	}
	var lines strings.Builder
	for _, line := range [][2]string{
		{"base_url", r.BaseURL}, {"api_key", r.Key}, {"data", r.Data}, {"operator", r.Operator},
		{"control_url", r.ControlURL}, {"control_token", r.ControlToken},
		{"inspector", r.Inspector}, {"ready", r.Ready},
	} {
		if line[1] != "" {
			lines.WriteString(line[0] + ": " + line[1] + "\n")
		}
	}
	_, err := io.WriteString(stdout, lines.String())
	return err
}

// ReadyFile is the ready file of a server that starts. Its zero value is none.
type ReadyFile struct {
	path, tmp string // the second is beside the first, to be renamed once it is whole
	content   []byte // as it was written; nil before
}

// NewReadyFile removes the ready file of an earlier server and makes sure that
// one can be written. It refuses a path at which any other file is, so that a wrong path
// never deletes a file. For "" it returns the zero value.
func NewReadyFile(path string) (*ReadyFile, error) {
	if path == "" {
		return &ReadyFile{}, nil
	}
	if _, err := readReady(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("-ready-file: %s is there and is no ready file; give another path", path)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return nil, fmt.Errorf("-ready-file: %s cannot be made: %w", path, errors.Unwrap(err))
	}
	tmp.Close()
	os.Remove(path)
	return &ReadyFile{path: path, tmp: tmp.Name()}, nil
}

// readReady reads a ready file. An empty file counts as one: mktemp makes it.
func readReady(path string) (r Ready, err error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return r, fs.ErrInvalid
	}
	content, err := os.ReadFile(path)
	if err == nil && len(content) > 0 && (json.Unmarshal(content, &r) != nil || r.Ready == "" || r.PID == 0) {
		err = fs.ErrInvalid
	}
	return r, err
}

func (f *ReadyFile) write(r Ready) error {
	if f.path == "" {
		return nil
	}
	r.PID = os.Getpid()
	f.content = append(strict.Encode(r), '\n')
	if err := os.WriteFile(f.tmp, f.content, 0o600); err != nil {
		return err
	}
	return os.Rename(f.tmp, f.path)
}

// Remove removes the file if it is still as it was written: the next server may
// have one at the same path by then.
func (f *ReadyFile) Remove() {
	os.Remove(f.tmp) // if it was not renamed
	if now, err := os.ReadFile(f.path); err == nil && bytes.Equal(now, f.content) {
		os.Remove(f.path)
	}
}

// Health asks the server at an address whether it is well, and returns the URL that it
// asked. If the port is 0, it takes the real one from the ready file. The error is marked
// by [Failed].
func Health(addr, readyFile string) (asked string, err error) {
	asked = URL(addr, "127.0.0.1")
	if r, err := readReady(readyFile); err == nil && strings.HasSuffix(addr, ":0") {
		asked = r.BaseURL
	}
	if u, err := url.Parse(asked); err == nil {
		asked = "http://" + u.Host // without the path of a base URL
	}
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{}} // by no proxy
	resp, err := client.Get(asked + "/healthz")
	if err != nil {
		return asked, Failed(fmt.Errorf("no answer from %s: %w", asked, errors.Unwrap(err)))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return asked, Failed(fmt.Errorf("%s answered %s: it cannot write, or is another program",
			asked, resp.Status))
	}
	return asked, nil
}
