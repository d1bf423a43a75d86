// Command oapi creates an event and lists events by the client that oapi-codegen wrote.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"generated/oapigen"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("oapi-codegen: ")
	addKey := func(_ context.Context, r *http.Request) error {
		r.Header.Set("X-Service-Api-Key", os.Getenv("EVENTS_API_KEY"))
		return nil
	}
	client, err := oapigen.NewClientWithResponses(os.Getenv("EVENTS_BASE_URL"),
		oapigen.WithRequestEditorFn(addKey))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	start := time.Date(2030, 7, 1, 18, 0, 0, 0, time.FixedZone("", 2*60*60))
	created, err := client.CreateEventWithResponse(ctx,
		&oapigen.CreateEventParams{IdempotencyKey: new("oapi-codegen")},
		oapigen.NewEvent{
			Title:       "Launch party",
			StartAt:     start,
			EndAt:       start.Add(time.Hour),
			MeetingUrl:  new("https://example.com/x"),
			Description: new(""),
		})
	if err != nil {
		log.Fatal(err)
	}
	event := created.JSON201
	if event == nil || !event.StartAt.Equal(start) || *event.MeetingUrl != "https://example.com/x" ||
		event.LocationCity != nil || created.Headers201.Location == "" {
		log.Fatalf("the create answered %s", created.Body)
	}
	page, err := client.ListEventsWithResponse(ctx, &oapigen.ListEventsParams{Limit: new(1)})
	if err != nil {
		log.Fatal(err)
	}
	list := page.JSON200
	if list == nil || len(list.Data) != 1 || list.Data[0].Id != event.Id || list.NextCursor == nil {
		log.Fatalf("the list answered %s", page.Body)
	}
	refused, err := client.CreateEventWithResponse(ctx, nil, oapigen.NewEvent{})
	if err != nil || refused.JSON400 == nil || refused.JSON400.Error.Code != "bad_request" {
		log.Fatalf("an empty event answered %+v, %v", refused, err)
	}
	fmt.Println("oapi-codegen: created and listed", event.Id)
}
