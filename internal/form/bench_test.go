package form_test

import (
	"testing"
	"time"

	"example.com/events/internal/form"
	"example.com/events/internal/strict"
)

// event is as large as the largest object of this program.
type event struct {
	id, host, slug, status, title, zone, visibility       string
	createdAt, updatedAt, startAt, endAt                  time.Time
	description, locationType, city, country, cover, link *string
	approval                                              bool
}

var (
	eventID     = form.ID("evt")
	statuses    = form.OneOf("draft|published")
	places      = form.OneOf("in_person|virtual")
	visibility  = form.OneOf("public|private")
	description = form.Chars("0-50000")
	placeName   = form.Chars("0-100")
)

func (e *event) form() form.Form {
	return form.Form{
		{Name: "id", Value: &e.id, Rule: eventID, Flags: form.Fixed},
		{Name: "host_id", Value: &e.host, Flags: form.Required | form.Fixed},
		{Name: "slug", Value: &e.slug, Rule: form.Slug, Flags: form.Fixed},
		{Name: "status", Value: &e.status, Rule: statuses},
		{Name: "created_at", Value: &e.createdAt, Flags: form.Fixed},
		{Name: "updated_at", Value: &e.updatedAt},
		{Name: "title", Value: &e.title, Rule: form.Title, Flags: form.Required},
		{Name: "description", Value: &e.description, Rule: description},
		{Name: "start_at", Value: &e.startAt, Flags: form.Required},
		{Name: "end_at", Value: &e.endAt, Flags: form.Required},
		{Name: "timezone", Value: &e.zone, Rule: form.Zone, Flags: form.EmptyIsNull},
		{Name: "location_type", Value: &e.locationType, Rule: places, Flags: form.EmptyIsNull},
		{Name: "location_city", Value: &e.city, Rule: placeName},
		{Name: "location_country", Value: &e.country, Rule: placeName},
		{Name: "visibility", Value: &e.visibility, Rule: visibility, Flags: form.EmptyIsNull},
		{Name: "requires_approval", Value: &e.approval},
		{Name: "cover_image_url", Value: &e.cover, Rule: form.URL, Flags: form.EmptyIsNull},
		{Name: "meeting_url", Value: &e.link, Rule: form.URL, Flags: form.EmptyIsNull},
	}
}

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
		if problems := e.form().Fill(v, form.New).All(); problems != nil {
			b.Fatal(problems)
		}
	}
}

func BenchmarkMakeSlug(b *testing.B) {
	for b.Loop() {
		form.MakeSlug("Soirée à l'Opéra: une nuit d'été")
	}
}
