package strict

import (
	"errors"
	"strings"
	"time"
)

var (
	errDateTime = errors.New("must be a valid date-time such as 2027-03-01T18:00:00Z or " +
		"2027-03-01T18:00:00+02:00, with Z or an offset")
	errYear = errors.New("must be in the years 0001 to 9999, in UTC")
	errZero = errors.New("must be after 0001-01-01T00:00:00Z: Go programs read this time as none")
)

// ParseTime parses an RFC 3339 date-time. T and Z may be in lower case. Digits finer than a nanosecond are
// cut off. A leap second (:60) is valid only at 23:59 UTC, on any day, and becomes the next second. The year
// must be 0001 to 9999 in UTC. The first instant of year 1 is refused, because it is Go's zero time.
//
// Some shorter forms of ISO 8601, which common clients write, are also valid:
//
//	2027-03-01T18:00Z           without seconds, from Java if they are zero
//	2027-03-01T18:00:00+0200    an offset without a colon, from strftime's %z
//	2027-03-01T18:00:00+02      an offset in hours, from Java's pattern X
//
// The result is in UTC. An error follows a field name in messages: "must be a valid date-time such as …".
func ParseTime(s string) (time.Time, error) {
	s = strings.ToUpper(s)
	end := strings.LastIndexAny(s, "Z+-") // the last one is in the offset
	if end < len("2027-03-01T18:00") {
		return time.Time{}, errDateTime
	}
	minute, second, offset := s[:16], s[16:end], s[end:] // 2027-03-01T18:00, :00.5 and +02:00

	// Expand the shorter forms to :00 and +02:00.
	if second == "" {
		second = ":00"
	}
	switch len(offset) {
	case len("+02"):
		offset += ":00"
	case len("+0200"):
		offset = offset[:3] + ":" + offset[3:]
	}

	// The time package has no second 60. Parse second 59 and add one second.
	fraction, leap := strings.CutPrefix(second, ":60")
	if leap {
		second = ":59" + fraction
	}
	t, err := time.Parse(time.RFC3339, minute+second+offset)
	t = t.UTC()
	if leap {
		t = t.Add(time.Second)
	}

	switch {
	case err != nil,
		leap && (t.Hour() > 0 || t.Minute() > 0),
		// time.Parse accepts more than RFC 3339:
		minute[13] != ':',             // an hour of one digit
		strings.Contains(second, ","), // a comma before the fraction
		offset[1:] >= "24",            // an offset of 24 hours
		strings.HasSuffix(offset, "60"):
		return time.Time{}, errDateTime
	case t.Year() < 1, t.Year() > 9999:
		return time.Time{}, errYear
	case t.IsZero():
		return time.Time{}, errZero
	}
	return t, nil
}
