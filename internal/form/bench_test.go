package form_test

import (
	"testing"
	"time"

	"example.com/events/internal/form"
	"example.com/events/internal/strict"
)

// event is as large as the largest object of this program.
type event struct {
	ID              string    `json:"id" form:"id=evt fixed"`
	HostID          string    `json:"host_id" form:"required fixed"`
	Slug            string    `json:"slug" form:"slug fixed"`
	Status          string    `json:"status" form:"one_of=draft|published"`
	CreatedAt       time.Time `json:"created_at" form:"fixed"`
	UpdatedAt       time.Time `json:"updated_at"`
	Title           string    `json:"title" form:"title required"`
	Description     *string   `json:"description" form:"chars=0-50000"`
	StartAt         time.Time `json:"start_at" form:"required"`
	EndAt           time.Time `json:"end_at" form:"required"`
	Timezone        string    `json:"timezone" form:"zone empty_is_null"`
	LocationType    *string   `json:"location_type" form:"one_of=in_person|virtual empty_is_null"`
	LocationCity    *string   `json:"location_city" form:"chars=0-100"`
	LocationCountry *string   `json:"location_country" form:"chars=0-100"`
	Visibility      string    `json:"visibility" form:"one_of=public|private empty_is_null"`
	Approval        bool      `json:"requires_approval"`
	Cover           *string   `json:"cover_image_url" form:"url empty_is_null"`
	Link            *string   `json:"meeting_url" form:"url empty_is_null"`
}

var eventTable = form.NewTable(event{}, form.Rules{
	"slug": form.Slug, "title": form.Title, "zone": form.Zone, "url": form.URL,
})

const eventText = `{"id":"evt_1","host_id":"usr_ada","slug":"engines-abcdefgh","status":"published",` +
	`"created_at":"2027-01-01T09:30:00.123456Z","updated_at":"2027-01-01T09:30:00.123456Z",` +
	`"title":"Analytical engines: an evening with Ada","description":"Notes on the sketch of the engine.",` +
	`"start_at":"2027-03-01T18:00:00Z","end_at":"2027-03-01T21:00:00Z","timezone":"Europe/London",` +
	`"location_type":"in_person","location_city":"London","location_country":"GB","visibility":"public",` +
	`"requires_approval":true,"cover_image_url":"https://example.com/covers/engine.png","meeting_url":null}`

func BenchmarkFill(b *testing.B) {
	v, err := strict.Parse([]byte(eventText))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var e event
		if problems := eventTable.Form(&e).Fill(v, form.New).All(); problems != nil {
			b.Fatal(problems)
		}
	}
}

func BenchmarkMakeSlug(b *testing.B) {
	for b.Loop() {
		form.MakeSlug("Soirée à l'Opéra: une nuit d'été")
	}
}
