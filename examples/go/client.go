// Package consumer is a small client of the events API, with tests against its test double.
package consumer

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Client creates events. BaseURL ends with /api/public/v1.
type Client struct {
	BaseURL, Key string
	HTTP         *http.Client
}

// Event has the fields of an event that this client uses.
type Event struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

const maxAttempts = 3

// Create creates an event of one hour. It tries again if there is no response, half of one, or a server
// error. All attempts have the same Idempotency-Key, so they create one event.
func (c *Client) Create(ctx context.Context, title string, start time.Time) (event Event, err error) {
	body, err := json.Marshal(map[string]any{
		"title":    title,
		"start_at": start,
		"end_at":   start.Add(time.Hour),
	})
	if err != nil {
		return event, err
	}
	key := rand.Text()
	for range maxAttempts {
		var retry bool
		event, retry, err = c.create(ctx, body, key)
		if !retry {
			break
		}
	}
	return event, err
}

// create sends one attempt, and reports whether another one may succeed.
func (c *Client) create(ctx context.Context, body []byte, key string) (event Event, retry bool, err error) {
	r, err := http.NewRequestWithContext(ctx, "POST", c.BaseURL+"/events/create", bytes.NewReader(body))
	if err != nil {
		return event, false, err
	}
	r.Header.Set("x-service-api-key", c.Key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	resp, err := c.HTTP.Do(r)
	if err != nil {
		return event, ctx.Err() == nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		return event, resp.StatusCode >= 500, fmt.Errorf("create %s: %s", body, resp.Status)
	}
	err = json.NewDecoder(resp.Body).Decode(&event)
	return event, err != nil && ctx.Err() == nil, err
}
