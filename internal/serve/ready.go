package serve

import (
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

// Ready is what a server tells when it is ready: line by line on stdout, and as
// a JSON object in the ready file.
type Ready struct {
	BaseURL      string `json:"base_url"`
	Key          string `json:"api_key,omitempty"`
	Data         string `json:"data,omitempty"`
	Operator     string `json:"operator,omitempty"`
	ControlURL   string `json:"control_url,omitempty"`
	ControlToken string `json:"control_token,omitempty"`
	Ready        string `json:"ready"`
	PID          int    `json:"pid"`
}

// Tell prints the lines. The file, which may be nil, is there with the last one:
// by then a key is shown.
func (r Ready) Tell(stdout io.Writer, file *ReadyFile) error {
	for _, line := range [][2]string{{"base_url", r.BaseURL}, {"api_key", r.Key}, {"data", r.Data}, {"operator", r.Operator},
		{"control_url", r.ControlURL}, {"control_token", r.ControlToken}} {
		if line[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(stdout, "%s: %s\n", line[0], line[1]); err != nil {
			return err
		}
	}
	if err := file.write(r); err != nil {
		return fmt.Errorf("-ready-file: %w", err)
	}
	_, err := fmt.Fprintf(stdout, "ready: %s\n", r.Ready)
	return err
}

// ReadyFile is a ready file that is to be. Nil is none.
type ReadyFile struct {
	path  string
	tmp   *os.File
	stale []byte // of an earlier server
	told  bool
}

// NewReadyFile takes away the ready file of an earlier server and makes sure
// that one can be written. It refuses a path at which something else is.
func NewReadyFile(path string) (*ReadyFile, error) {
	stale, ours := earlier(path)
	if !ours {
		return nil, fmt.Errorf("-ready-file: %s is there and is no ready file; give another path", path)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return nil, fmt.Errorf("-ready-file: %s cannot be made: %w", path, errors.Unwrap(err))
	}
	os.Remove(path)
	return &ReadyFile{path: path, tmp: tmp, stale: stale}, nil
}

const maxReady = 64 << 10 // bytes of a ready file, and far more than it takes

// earlier is what is in the ready file at a path, which may be missing or empty,
// and whether nothing else is there.
func earlier(path string) (content []byte, ours bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, true // where it is no mistake, making one will fail
	}
	if !info.Mode().IsRegular() || info.Size() > maxReady {
		return nil, false
	}
	content, err = os.ReadFile(path)
	return content, err == nil && (len(content) == 0 || readyPID(content) != 0)
}

// readyPID is the process id in what may be a ready file, else 0.
func readyPID(content []byte) int {
	var r Ready
	if json.Unmarshal(content, &r) != nil || r.Ready == "" {
		return 0
	}
	return r.PID
}

func (f *ReadyFile) write(r Ready) error {
	if f == nil {
		return nil
	}
	_, err := f.tmp.Write(append(strict.Encode(r), '\n'))
	if err = errors.Join(err, f.tmp.Close()); err != nil {
		return err
	}
	if _, err := os.Lstat(f.path); err == nil {
		return fmt.Errorf("%s came while the server started; give each server one of its own", f.path)
	}
	f.told = true
	return os.Rename(f.tmp.Name(), f.path)
}

// Remove removes the file if it is ours still: the next server may have one of
// the same name by then. Where none was written the earlier one comes back, as
// its server may be running.
func (f *ReadyFile) Remove() {
	if f == nil || f.path == "" {
		return
	}
	defer func() { f.path = "" }() // once
	f.tmp.Close()
	os.Remove(f.tmp.Name())
	now, err := os.ReadFile(f.path)
	switch {
	case err == nil && readyPID(now) == os.Getpid() && f.told:
		os.Remove(f.path)
	case errors.Is(err, fs.ErrNotExist) && !f.told && len(f.stale) > 0:
		os.WriteFile(f.path, f.stale, 0o600)
	}
}

// Health asks the server at an address, whose port a ready file may know, if it
// is well.
func Health(addr, readyFile string) error {
	base := URL(addr, "127.0.0.1")
	if file, err := os.ReadFile(readyFile); err == nil && strings.HasSuffix(addr, ":0") {
		var r Ready
		if json.Unmarshal(file, &r) == nil && r.BaseURL != "" {
			base = r.BaseURL
		}
	}
	u, err := url.Parse(base)
	if err != nil {
		return fmt.Errorf("-addr %q is not HOST:PORT", addr)
	}
	if u.Hostname() == "localhost" {
		u.Host = "127.0.0.1:" + u.Port() // an empty root has no hosts file
	}
	base = "http://" + u.Host
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{}} // by no proxy
	resp, err := client.Get(base + "/healthz")
	if err != nil {
		return fmt.Errorf("no answer from %s: %w", base, errors.Unwrap(err))
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusServiceUnavailable:
		return fmt.Errorf("%s answered %s: it cannot write", base, resp.Status)
	}
	return fmt.Errorf("%s answered %s: is it another program?", base, resp.Status)
}
