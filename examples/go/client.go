// Package consumer is a small client of the events API, with tests against its test double.
package consumer

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Client lists and creates events. BaseURL ends with /api/public/v1.
type Client struct {
	BaseURL, Key string
	HTTP         *http.Client
}

// Event has the fields of an event that this client uses.
type Event struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Status string `json:"status"` // draft, published, or one that the API gets later
}

// Events returns all events, newest first. It reads them page by page.
func (c *Client) Events(ctx context.Context) (events []Event, err error) {
	query := url.Values{"limit": {"100"}}
	for {
		text, err := c.send(ctx, "GET", "/events?"+query.Encode(), nil)
		if err != nil {
			return nil, err
		}
		var page struct {
			Data       []Event `json:"data"`
			NextCursor string  `json:"next_cursor"` // null on the last page
		}
		if err := json.Unmarshal(text, &page); err != nil {
			return nil, err
		}
		events = append(events, page.Data...)
		if page.NextCursor == "" {
			return events, nil
		}
		query.Set("cursor", page.NextCursor)
	}
}

// Create creates an event of one hour.
func (c *Client) Create(ctx context.Context, title string, start time.Time) (event Event, err error) {
	body, err := json.Marshal(map[string]any{
		"title":    title,
		"start_at": start,
		"end_at":   start.Add(time.Hour),
	})
	if err != nil {
		return event, err
	}
	text, err := c.send(ctx, "POST", "/events/create", body)
	if err != nil {
		return event, err
	}
	return event, json.Unmarshal(text, &event)
}

// temporary has the statuses after which the same request may succeed. Other errors are final.
var temporary = []int{408, 429, 500, 502, 503, 504}

// send sends a request and returns the response body. If the connection breaks or the status is temporary,
// it waits and tries again, up to four times. All attempts have the same Idempotency-Key, so a create that
// arrives twice creates one event.
func (c *Client) send(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	key := rand.Text()
	for backoff := time.Second; ; backoff *= 2 {
		r, err := http.NewRequestWithContext(ctx, method, c.BaseURL+path, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("x-service-api-key", c.Key)
		if body != nil {
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Idempotency-Key", key)
		}
		status, header, text, err := c.receive(r)
		if err == nil {
			if status < 300 {
				return text, nil
			}
			err = fmt.Errorf("%s %s: status %d: %s", method, path, status, text)
			if !slices.Contains(temporary, status) {
				return nil, err
			}
		}
		if backoff > 8*time.Second {
			return nil, err
		}
		select {
		case <-time.After(pause(header, backoff)):
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), err)
		}
	}
}

// receive sends a request once and reads the whole response. An error means that the connection broke.
func (c *Client) receive(r *http.Request) (status int, header http.Header, text []byte, err error) {
	resp, err := c.HTTP.Do(r)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, text, err
}

// pause returns how long to wait before the next attempt: as long as Retry-After says, which is a number of
// seconds or a date, otherwise 10 % more or less than backoff, so that clients don't all return at once.
func pause(header http.Header, backoff time.Duration) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(value); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return time.Until(date)
	}
	return backoff*9/10 + mathrand.N(backoff/5)
}
