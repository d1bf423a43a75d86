package events_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"time"

	"example.com/events"
)

// Serve the API from memory.
func Example() {
	store := events.NewStore(nil)
	ada := events.User{ID: "usr_ada", Name: "Ada Lovelace", Email: "ada@example.com"}
	_, err := store.Put(events.Record{User: &ada})
	if err != nil {
		fmt.Println(err)
		return
	}
	secret, _, err := store.IssueKey("usr_ada")
	if err != nil {
		fmt.Println(err)
		return
	}
	srv := httptest.NewServer(events.New(store)) // or http.ListenAndServe
	defer srv.Close()

	req, _ := http.NewRequest("GET", srv.URL+events.BasePath+"/events", nil)
	req.Header.Set("x-service-api-key", secret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.Status, string(body))
	// Output: 200 OK {"data":[],"has_more":false,"next_cursor":null}
}

// Mount the API next to your own routes.
func ExampleNew() {
	mux := http.NewServeMux()
	mux.Handle(events.BasePath+"/", events.New(events.NewStore(nil)))
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "pong") })
	for _, path := range []string{"/ping", events.BasePath + "/events"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Println(path, w.Code)
	}
	// Output:
	// /ping 200
	// /api/public/v1/events 401
}

// Data in a file survives a restart.
func ExampleOpen() {
	dir, _ := os.MkdirTemp("", "events")
	defer os.RemoveAll(dir)
	for range 2 {
		store, err := events.Open(dir+"/events.json", nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(len(slices.Collect(store.Records())), "records")
		ada := events.User{Name: "Ada Lovelace", Email: "ada@example.com"}
		_, err = store.Put(events.Record{User: &ada})
		if err != nil {
			fmt.Println(err)
		}
		store.Close()
	}
	// Output:
	// 0 records
	// 1 records
}

// Add an event and publish it.
func ExampleStore_ApplyJSON() {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	store := events.NewStore(&events.Config{Now: func() time.Time { return now }})
	err := store.ApplyJSON([]byte(`[
		{"user":{"id":"usr_ada","name":"Ada Lovelace","email":"ada@example.com"}},
		{"event":{"id":"evt_1","host_id":"usr_ada","title":"Engines","status":"draft",
			"start_at":"2030-03-01T10:00:00Z","end_at":"2030-03-01T12:00:00Z"}}]`))
	fmt.Println(err)
	err = store.ApplyJSON([]byte(`[{"event":{"id":"evt_1","status":"published"}}]`))
	fmt.Println(err)
	r, err := store.Get("evt_1")
	fmt.Println(r.Event.Title, r.Event.Status, err)
	err = store.ApplyJSON([]byte(`[{"guest":{"event_id":"evt_2","name":"Grace Hopper"}}]`))
	fmt.Println(err)
	// Output:
	// <nil>
	// <nil>
	// Engines published <nil>
	// record 1: guest: event_id "evt_2" is not known
}

// Add an event as a draft and publish it.
func ExampleStore_Put() {
	store := events.NewStore(nil)
	start := time.Date(2030, 3, 1, 10, 0, 0, 0, time.UTC)
	_, err := store.Put(
		events.Record{User: &events.User{ID: "usr_ada", Name: "Ada Lovelace", Email: "ada@example.com"}},
		events.Record{Event: &events.Event{ID: "evt_1", HostID: "usr_ada", Title: "Engines",
			StartAt: start, EndAt: start.Add(time.Hour), Status: "draft"}},
	)
	fmt.Println(err)

	r, err := store.Get("evt_1")
	fmt.Println(r.Event.Title, r.Event.Status, err)
	r.Event.Status = "published"
	stored, err := store.Put(r)
	fmt.Println(stored[0].Event.Title, stored[0].Event.Status, err)

	_, err = store.Get("evt_2")
	fmt.Println(errors.Is(err, events.ErrNotFound), err)
	// Output:
	// <nil>
	// Engines draft <nil>
	// Engines published <nil>
	// true not found: no user, key, event or guest has the ID "evt_2"; Records lists them all
}

// Issue a key and revoke it.
func ExampleStore_RevokeKey() {
	store := events.NewStore(nil)
	ada := events.User{ID: "usr_ada", Name: "Ada Lovelace", Email: "ada@example.com"}
	store.Put(events.Record{User: &ada})
	secret, key, err := store.IssueKey("usr_ada")
	fmt.Println(len(secret) > 30, key.UserID, err)
	fmt.Println(store.RevokeKey(key.ID))
	fmt.Println(store.RevokeKey("key_nobody"))
	// Output:
	// true usr_ada <nil>
	// <nil>
	// key "key_nobody": not found
}

// Run the command in your own program.
func ExampleRun() {
	environ := []string{"EVENTSD_ADDR=nowhere"}
	code := events.Run(context.Background(), []string{"serve"}, environ, nil, os.Stdout, io.Discard)
	fmt.Println("exit status", code)
	// Output: exit status 2
}
