// Command ogen creates an event and lists events by the client that ogen wrote.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/ogen-go/ogen/ogenerrors"

	"generated/ogengen"
)

// apiKey is sent as x-service-api-key.
type apiKey string

func (k apiKey) ApiKey(context.Context, ogengen.OperationName) (ogengen.ApiKey, error) {
	return ogengen.ApiKey{APIKey: string(k)}, nil
}

func (apiKey) Bearer(context.Context, ogengen.OperationName) (ogengen.Bearer, error) {
	return ogengen.Bearer{}, ogenerrors.ErrSkipClientSecurity
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("ogen: ")
	client, err := ogengen.NewClient(os.Getenv("EVENTS_BASE_URL"), apiKey(os.Getenv("EVENTS_API_KEY")))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	start := time.Date(2030, 7, 1, 18, 0, 0, 0, time.FixedZone("", 2*60*60))
	answer, err := client.CreateEvent(ctx, &ogengen.NewEvent{
		Title:        "Launch party",
		StartAt:      ogengen.DateTime(start),
		EndAt:        ogengen.DateTime(start.Add(time.Hour)),
		LocationCity: ogengen.NewOptNilString("Paris"),
	}, ogengen.CreateEventParams{IdempotencyKey: ogengen.NewOptString("ogen")})
	if err != nil {
		log.Fatal(err)
	}
	created, isCreated := answer.(*ogengen.EventHeaders)
	if !isCreated {
		log.Fatalf("the create answered %+v", answer)
	}
	event := created.Response
	if !time.Time(event.StartAt).Equal(start) || event.LocationCity.Value != "Paris" ||
		!event.LocationCountry.Null || created.Location == "" {
		log.Fatalf("the create answered %+v", event)
	}
	page, err := client.ListEvents(ctx, ogengen.ListEventsParams{Limit: ogengen.NewOptInt(1)})
	if err != nil {
		log.Fatal(err)
	}
	list, isList := page.(*ogengen.EventList)
	if !isList || len(list.Data) != 1 || list.Data[0].ID != event.ID || list.NextCursor.Null {
		log.Fatalf("the list answered %+v", page)
	}
	guests, err := client.ListGuests(ctx, ogengen.ListGuestsParams{ID: "evt_engines"})
	if err != nil {
		log.Fatal(err)
	}
	if _, isList := guests.(*ogengen.GuestList); !isList {
		log.Fatalf("the guests answered %+v", guests)
	}
	fmt.Println("ogen: created and listed", event.ID)
}
