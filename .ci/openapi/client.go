// Command client creates and lists events with the client that oapi-codegen generated, while kin-openapi
// validates each request and response. Then it gets an event with values that openapi.json doesn't know, also
// with the client that ogen generated.
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
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/ogen-go/ogen/ogenerrors"

	"client/api"
	"client/ogen"
)

// A validator sends requests. It fails for a response that openapi.json doesn't describe, and for a request
// that is invalid by openapi.json if its status isn't 400, and the other way round.
type validator struct{ router routers.Router }

func (v validator) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent []byte
	if r.Body != nil {
		sent, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	route, params, err := v.router.FindRoute(r)
	if err != nil {
		return nil, err
	}
	request := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params, Route: route,
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true,
			AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
		},
	}
	invalid := openapi3filter.ValidateRequest(r.Context(), request)
	if sent != nil {
		r.Body = io.NopCloser(bytes.NewReader(sent))
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	received, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(received))
	if (invalid != nil) != (response.StatusCode == http.StatusBadRequest) {
		return nil, fmt.Errorf("%s %s: got %s %s, but by openapi.json: %v",
			r.Method, sent, response.Status, received, invalid)
	}
	return response, openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: request, Status: response.StatusCode, Header: response.Header,
		Body: io.NopCloser(bytes.NewReader(received)), Options: request.Options,
	})
}

// security gives ogen's client an API key.
type security struct{ key string }

func (s security) ApiKey(context.Context, ogen.OperationName) (ogen.ApiKey, error) {
	return ogen.ApiKey{APIKey: s.key}, nil
}

func (s security) Bearer(context.Context, ogen.OperationName) (ogen.Bearer, error) {
	return ogen.Bearer{}, ogenerrors.ErrSkipClientSecurity
}

func check(ok bool, what string, response any, err error) {
	if err != nil {
		log.Fatalf("%s: %v", what, err)
	}
	if !ok {
		log.Fatalf("%s: got %s", what, response)
	}
}

func main() {
	ctx := context.Background()
	document, err := openapi3.NewLoader().LoadFromFile("openapi.json")
	check(true, "load", nil, err)
	check(true, "validate", nil, document.Validate(ctx))
	router, err := gorillamux.NewRouter(document)
	check(true, "routes", nil, err)
	sender := &http.Client{Transport: validator{router}}
	client, err := api.NewClientWithResponses(os.Getenv("EVENTS_BASE_URL"), api.WithHTTPClient(sender),
		api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("X-Service-Api-Key", os.Getenv("EVENTS_API_KEY"))
			return nil
		}))
	check(true, "client", nil, err)
	other, err := ogen.NewClient(os.Getenv("EVENTS_BASE_URL"), security{os.Getenv("EVENTS_API_KEY")},
		ogen.WithClient(sender))
	check(true, "ogen's client", nil, err)

	start := time.Date(2030, 7, 1, 18, 0, 0, 0, time.FixedZone("", 2*60*60))
	end := start.Add(time.Hour)
	once := &api.CreateEventParams{IdempotencyKey: new("once")}
	created, err := client.CreateEventWithResponse(ctx, once,
		api.NewEvent{Title: "Launch party", StartAt: start, EndAt: end, Description: new("")})
	check(err == nil && created.JSON201 != nil && created.JSON201.StartAt.Equal(start) &&
		created.JSON201.LocationCity == nil, "create", created, err)
	list, err := client.ListEventsWithResponse(ctx, &api.ListEventsParams{Limit: new(1)})
	check(err == nil && list.JSON200 != nil && list.JSON200.NextCursor != nil &&
		list.JSON200.Data[0].Id == created.JSON201.Id, "list", list, err)
	guests, err := client.ListGuestsWithResponse(ctx, "evt_engines", nil)
	check(err == nil && guests.JSON200 != nil && len(guests.JSON200.Data) > 0, "guests", guests, err)
	missing, err := client.GetEventWithResponse(ctx, "evt_nowhere")
	check(err == nil && missing.JSON404 != nil, "missing event", missing, err)
	me, err := client.GetMeWithResponse(ctx)
	check(err == nil && me.JSON200 != nil, "me", me, err)
	tooMany, err := client.ListEventsWithResponse(ctx, &api.ListEventsParams{Limit: new(101)})
	check(err == nil && tooMany.JSON400 != nil, "limit of 101", tooMany, err)

	const rest = `"start_at":"2030-07-01T18:00:00+02:00","end_at":"2030-07-01T23:00:00+02:00"}`
	for body, status := range map[string]int{
		`{"title":"T",` + rest: 201,
		`{"title":"T","location_type":"virtual","meeting_url":"https://example.com/x",` + rest: 201,
		`{}`:                     400,
		`{"title":" \t",` + rest: 400,
		`{"title":7,` + rest:     400,
		`{"title":"T","visibility":"secret",` + rest: 400,
		`{"title":"T","seats":7,` + rest:             400,
	} {
		response, err := client.CreateEventWithBodyWithResponse(ctx, nil, "application/json",
			strings.NewReader(body))
		check(err == nil && response.StatusCode() == status, body, response, err)
	}

	title := strings.Repeat("é", 300)
	fault := `{"operation":"GET /events/{id}",
		"patch":{"status":"archived","seats":40,"title":"` + title + `"}}`
	set, err := http.Post(os.Getenv("EVENTS_CONTROL_URL")+"/faults", "application/json",
		strings.NewReader(fault))
	check(err == nil && set.StatusCode == 201, "fault", set, err)
	grown, err := client.GetEventWithResponse(ctx, created.JSON201.Id)
	check(err == nil && grown.JSON200 != nil && grown.JSON200.Status == "archived" &&
		grown.JSON200.Title == title, "new values", grown, err)
	response, err := other.GetEvent(ctx, ogen.GetEventParams{ID: created.JSON201.Id})
	event, ok := response.(*ogen.Event)
	check(ok && event.Status == "archived" && event.Title == title, "new values, by ogen", response, err)
	fmt.Println("oapi-codegen, kin-openapi and ogen: created, listed and got", event.ID)
}
