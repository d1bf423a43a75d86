package strict

import (
	"errors"
	"strings"
	"time"
)

var errDateTime = errors.New("must be a date-time such as 2027-03-01T18:00:00Z or " +
	"2027-03-01T18:00:00+02:00: a day and time that exist, with a T between them " +
	"and Z or an offset from UTC at the end")

// ErrYear is the error of a date-time that is before or after the years that it may be in.
var ErrYear = errors.New("must be in the years 0001 to 9999, in UTC")

// Time reads an RFC 3339 date-time: a date, T, a time of day, and Z or an offset. The T
// and the Z may be lower-case. Digits of the fraction that are finer than a nanosecond
// are cut off. A leap second (:60) is accepted on any day, but only at 23:59 in UTC, and is
// read as the second after it. The year is 0000 to 9999, in s and also in UTC.
//
// Beyond RFC 3339 it accepts shorter forms, which ISO 8601 has and common clients write:
//
//	2027-03-01T18:00Z           no seconds, as Java writes it if they are zero
//	2027-03-01T18:00:00+0200    an offset without a colon, as %z of strftime is
//	2027-03-01T18:00:00+02      an offset of hours alone, as X of Java's patterns is
//
// The result is in UTC. An error is the end of a sentence whose subject is what holds s:
// it begins with "must" and says what a date-time needs.
func Time(s string) (time.Time, error) {
	s = strings.ToUpper(s)
	end := strings.LastIndexAny(s, "Z+-") // a date has hyphens, too, but they come before
	if end < len("2027-03-01T18:00") {
		return time.Time{}, errDateTime
	}
	minute, second, offset := s[:16], s[16:end], s[end:]

	// The shorter forms become 2027-03-01T18:00:00 and +02:00.
	if second == "" {
		second = ":00"
	}
	switch len(offset) {
	case len("+02"):
		offset += ":00"
	case len("+0200"):
		offset = offset[:3] + ":" + offset[3:]
	}

	// The time package has no second 60. It gets 59, and one second is added.
	fraction, isLeap := strings.CutPrefix(second, ":60")
	if isLeap {
		second = ":59" + fraction
	}
	t, err := time.Parse(time.RFC3339, minute+second+offset)
	t = t.UTC()
	if isLeap {
		t = t.Add(time.Second)
	}

	year := t.Year()
	switch {
	case err != nil,
		isLeap && (t.Hour() > 0 || t.Minute() > 0),
		// time.Parse accepts more than RFC 3339 has:
		minute[13] != ':',             // an hour of one digit
		strings.Contains(second, ","), // a comma before the fraction
		offset[1:] >= "24",            // an offset of 24 hours
		strings.HasSuffix(offset, "60"):
		return time.Time{}, errDateTime
	case year < 0, year > 9999:
		return time.Time{}, ErrYear
	}
	return t, nil
}
