// Package consumer is a small client of the events API, and how to test one.
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

// Client creates events. BaseURL ends in /api/public/v1.
type Client struct {
	BaseURL, Key string
	HTTP         *http.Client
}

// Event is what this client reads of an event.
type Event struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

const tries = 3

// Create creates an event of one hour. It tries again if there is no answer, a part of
// one, or an error of the server. All tries have the same Idempotency-Key, so there is one event
// however many of them reach the server.
func (c *Client) Create(ctx context.Context, title string, start time.Time) (event Event, err error) {
	body, err := json.Marshal(map[string]any{"title": title, "start_at": start,
		"end_at": start.Add(time.Hour)})
	if err != nil {
		return event, err
	}
	key := rand.Text()
	for range tries {
		var again bool
		if again, err = c.create(ctx, body, key, &event); !again {
			break
		}
	}
	return event, err
}

func (c *Client) create(ctx context.Context, body []byte, key string, event *Event) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, "POST", c.BaseURL+"/events/create", bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("x-service-api-key", c.Key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	resp, err := c.HTTP.Do(r)
	if err != nil {
		return ctx.Err() == nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		return resp.StatusCode >= 500, fmt.Errorf("create %s: %s", body, resp.Status)
	}
	err = json.NewDecoder(resp.Body).Decode(event) // fails if the answer breaks off, too
	return err != nil && ctx.Err() == nil, err
}
