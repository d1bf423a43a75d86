// Command kin holds openapi.json and a server's requests and answers against each other
// by kin-openapi's validator, which has nothing in common with this project's tests.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

const (
	least   = `"title":"T","start_at":"2030-07-01T18:00:00+02:00","end_at":"2030-07-01T23:00:00+02:00"`
	created = http.StatusCreated
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("kin-openapi: ")
	document, err := openapi3.NewLoader().LoadFromFile("../openapi.json")
	if err != nil {
		log.Fatal(err)
	}
	if err := document.Validate(context.Background()); err != nil {
		log.Fatal(err)
	}
	router, err := gorillamux.NewRouter(document)
	if err != nil {
		log.Fatal(err)
	}
	tests := []struct {
		method, path, body string
		status             int
		isValid            bool // the request, by the validator
	}{
		{"POST", "/events/create", "{" + least + "}", created, true},
		{"POST", "/events/create", "{" + least + `,"description":null,"timezone":"Europe/Paris",` +
			`"location_type":"virtual","meeting_url":"https://example.com/x"}`, created, true},
		{"POST", "/events/create", "{}", 400, false},
		{"POST", "/events/create", strings.Replace("{"+least+"}", `"T"`, `" \t"`, 1), 400, false},
		{"POST", "/events/create", strings.Replace("{"+least+"}", `"T"`, `7`, 1), 400, false},
		{"POST", "/events/create", "{" + least + `,"visibility":"secret"}`, 400, false},
		{"POST", "/events/create", "{" + least + `,"seats":7}`, 400, false},
		{"GET", "/users/me", "", 200, true},
		{"GET", "/events", "", 200, true},
		{"GET", "/events?status=draft&limit=1", "", 200, true},
		{"GET", "/events?limit=101", "", 400, false},
		{"GET", "/events/evt_engines", "", 200, true},
		{"GET", "/events/evt_nowhere", "", 404, true},
		{"GET", "/events/evt_engines/guests", "", 200, true},
		{"GET", "/openapi", "", 200, true},
	}
	for _, test := range tests {
		name := fmt.Sprintf("%s %s %s", test.method, test.path, test.body)
		if err := try(router, test.method, test.path, test.body, test.status, test.isValid); err != nil {
			log.Fatalf("%s: %v", name, err)
		}
	}
	fmt.Printf("kin-openapi: %d requests and answers are as openapi.json says\n", len(tests))
}

func try(router routers.Router, method, path, body string, status int, isValid bool) error {
	newRequest := func(base string) *http.Request {
		r, err := http.NewRequest(method, base+path, strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		r.Header.Set("X-Service-Api-Key", os.Getenv("EVENTS_API_KEY"))
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		return r
	}
	// The servers of openapi.json are a path, so the router gets that path alone.
	r := newRequest("/api/public/v1")
	route, params, err := router.FindRoute(r)
	if err != nil {
		return err
	}
	options := &openapi3filter.Options{
		IncludeResponseStatus: true,
		AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
	}
	input := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route, Options: options,
	}
	err = openapi3filter.ValidateRequest(context.Background(), input)
	if (err == nil) != isValid {
		return fmt.Errorf("is valid: %v, want %v: %v", err == nil, isValid, err)
	}
	answer, err := http.DefaultClient.Do(newRequest(os.Getenv("EVENTS_BASE_URL")))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != status {
		return fmt.Errorf("%s %s, want %d", answer.Status, text, status)
	}
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input,
		Status:                 answer.StatusCode,
		Header:                 answer.Header,
		Body:                   io.NopCloser(bytes.NewReader(text)),
		Options:                options,
	})
}
