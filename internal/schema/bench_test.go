package schema_test

import (
	"testing"
	"time"

	"example.com/events/internal/schema"
	"example.com/events/internal/strict"
)

// event has the fields of the largest object of this program.
type event struct {
	ID              string    `json:"id" schema:"id=evt fixed"`
	HostID          string    `json:"host_id" schema:"required fixed"`
	Slug            string    `json:"slug" schema:"slug fixed"`
	Status          string    `json:"status" schema:"one_of=draft|published"`
	CreatedAt       time.Time `json:"created_at" schema:"fixed"`
	UpdatedAt       time.Time `json:"updated_at"`
	Title           string    `json:"title" schema:"title required"`
	Description     *string   `json:"description" schema:"chars=0-50000"`
	StartAt         time.Time `json:"start_at" schema:"required"`
	EndAt           time.Time `json:"end_at" schema:"required"`
	Timezone        string    `json:"timezone" schema:"zone empty_is_null"`
	LocationType    *string   `json:"location_type" schema:"one_of=in_person|virtual empty_is_null"`
	LocationCity    *string   `json:"location_city" schema:"chars=0-100"`
	LocationCountry *string   `json:"location_country" schema:"chars=0-100"`
	Visibility      string    `json:"visibility" schema:"one_of=public|private empty_is_null"`
	Approval        bool      `json:"requires_approval"`
	Cover           *string   `json:"cover_image_url" schema:"url empty_is_null"`
	Link            *string   `json:"meeting_url" schema:"url empty_is_null"`
}

var eventSchema = schema.Of(event{}, nil)

const eventText = `{"id":"evt_1","host_id":"usr_ada","slug":"engines-abcdefgh","status":"published",` +
	`"created_at":"2027-01-01T09:30:00.123456Z","updated_at":"2027-01-01T09:30:00.123456Z",` +
	`"title":"Analytical engines: an evening with Ada","description":"Notes on the sketch of the engine.",` +
	`"start_at":"2027-03-01T18:00:00Z","end_at":"2027-03-01T21:00:00Z","timezone":"Europe/London",` +
	`"location_type":"in_person","location_city":"London","location_country":"GB","visibility":"public",` +
	`"requires_approval":true,"cover_image_url":"https://example.com/covers/engine.png","meeting_url":null}`

func BenchmarkDecode(b *testing.B) {
	v, err := strict.Parse([]byte(eventText))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var e event
		problems := eventSchema.Decode(&e, v, schema.New).All()
		if problems != nil {
			b.Fatal(problems)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	var e event
	eventSchema.Unmarshal([]byte(eventText), &e, schema.New)
	b.ReportAllocs()
	for b.Loop() {
		strict.Encode(&e)
	}
}

func BenchmarkSlugify(b *testing.B) {
	for b.Loop() {
		schema.Slugify("Soirée à l'Opéra: une nuit d'été")
	}
}
