// Command embed serves the API inside a program of its own. It creates a user and an API key
// in a store in memory, serves the API on a free port, and sends it one request.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"example.com/events"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	store := events.NewStore(nil) // on a file: events.Open("events.json", nil)
	defer store.Close()

	ada := events.User{ID: "usr_ada", Name: "Ada Lovelace", Email: "ada@example.com"}
	if _, err := store.Put(events.Record{User: &ada}); err != nil {
		return err
	}
	secret, _, err := store.IssueKey(ada.ID)
	if err != nil {
		return err
	}

	// The handler serves everything under events.BasePath, so other routes fit next to it.
	mux := http.NewServeMux()
	mux.Handle(events.BasePath+"/", events.New(store))
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "pong") })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
	}
	go server.Serve(listener)
	defer server.Close()

	url := "http://" + listener.Addr().String() + events.BasePath + "/users/me"
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("x-service-api-key", secret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	return nil
}
