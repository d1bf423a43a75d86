package strict_test

import (
	"bytes"
	"testing"

	"example.com/events/internal/strict"
)

const eventBody = `{
  "title": "Analytical engines: an evening with Ada",
  "description": "Notes on the sketch of the engine.\nBring a chair, doors open half an hour before.",
  "start_at": "2027-03-01T18:00:00+01:00",
  "end_at": "2027-03-01T21:30:00+01:00",
  "timezone": "Europe/London",
  "location_type": "in_person",
  "location_city": "London",
  "location_country": "GB",
  "visibility": "public",
  "requires_approval": true,
  "cover_image_url": "https://example.com/covers/engine.png",
  "meeting_url": null
}`

func BenchmarkParse(b *testing.B) {
	data := []byte(eventBody)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := strict.Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseArray(b *testing.B) {
	const n = 1000
	data := append(bytes.Repeat([]byte(eventBody+","), n-1), eventBody+"]"...)
	data = append([]byte("["), data...)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range strict.ParseArray(data) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkParseHostile parses the texts that cost most for their size, each of 1 MiB, the largest
// body.
func BenchmarkParseHostile(b *testing.B) {
	const size = 1 << 20
	fill := func(begin, unit, end string) []byte {
		data := append([]byte(begin), bytes.Repeat([]byte(unit), (size-len(begin)-len(end))/len(unit))...)
		return append(data, end...)
	}
	for _, t := range []struct {
		name string
		data []byte
	}{
		{"brackets", fill("", "[", "")},
		{"number", fill("", "1", "")},
		{"escapes", fill(`"`, `\u00e9`, `"`)},
		{"quotes", fill("", `"`, "")},
		{"zeros", fill("[", "0,", "0]")},
		{"objects", fill("[", "{},", "{}]")},
		{"members", fill("{", `"":0,`, `"":0}`)},
		{"newlines", fill("", "\n", "")},
	} {
		b.Run(t.name, func(b *testing.B) {
			b.SetBytes(int64(len(t.data)))
			b.ReportAllocs()
			for b.Loop() {
				strict.Parse(t.data)
			}
		})
	}
}

func BenchmarkTime(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := strict.Time("2027-03-01T18:00:00.123456+01:00"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkURL(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if !strict.URL("https://example.com/covers/engine%20one.png?size=large&v=2") {
			b.Fatal("not a URL")
		}
	}
}

func BenchmarkZone(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if !strict.Zone("Europe/London") {
			b.Fatal("not a zone")
		}
	}
}
