package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Ready is the lines that a server prints on stdout when it is ready, in this order.
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

const maxHealth = 64 << 10 // bytes of a response that are read

// Health asks the server at an address whether it is healthy, and returns the URL that it asked.
func Health(addr string) (asked string, err error) {
	asked = URL(addr, "127.0.0.1")
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
	body := io.LimitReader(resp.Body, maxHealth)
	if json.NewDecoder(body).Decode(&told) == nil && told.Error.Message != "" {
		reason = told.Error.Message
	}
	return "", fmt.Errorf("%s answered %s: %s", asked, resp.Status, reason)
}
