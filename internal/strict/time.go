package strict

import (
	"errors"
	"strings"
	"time"
)

// Time returns the instant, in UTC, that the RFC 3339 date-time s names: date, T,
// time of day and an offset or Z; t and z may be lower-case. It takes two things
// more, which ISO 8601 allows and clients send: seconds may be left out
// (2027-03-01T18:00Z), and an offset may be +hhmm or +hh. Of a fraction it keeps
// the nanoseconds and cuts what is finer. A leap second (:60) is taken if it is
// at 23:59 in UTC, on any day, as the second that follows. The years are 0000 to
// 9999, in s and also in UTC.
//
// An error is the tail of a sentence whose subject is what holds s: it begins
// with "must" and says what a date-time needs.
func Time(s string) (time.Time, error) {
	// Each form that is taken becomes the longest: 2027-03-01T18:00:00 and +02:00.
	s = strings.ToUpper(s)
	end := max(0, strings.LastIndexAny(s, "Z+-")) // the date has hyphens, too, but before
	clock, offset := s[:end], s[end:]
	if len(clock) == len("2027-03-01T18:00") {
		clock += ":00"
	}
	switch len(offset) {
	case len("+02"):
		offset += ":00"
	case len("+0200"):
		offset = offset[:3] + ":" + offset[3:]
	}

	// The time package has no second 60: of a leap second it reads 59, and a second is added.
	isLeap := len(clock) >= 19 && clock[16:19] == ":60"
	if isLeap {
		clock = clock[:16] + ":59" + clock[19:]
	}
	t, err := time.Parse(time.RFC3339, clock+offset)
	if t = t.UTC(); isLeap {
		t = t.Add(time.Second)
	}

	// What time.Parse takes is of the longest form, but the hour may have one digit,
	// a comma may stand before the fraction, and an offset may be 24:00 or 00:60.
	ok := err == nil && clock[13] == ':' && !strings.Contains(clock, ",") &&
		(offset == "Z" || offset[1:3] <= "23" && offset[4:] <= "59") &&
		(!isLeap || t.Hour() == 0 && t.Minute() == 0) && 0 <= t.Year() && t.Year() <= 9999
	if !ok {
		return time.Time{}, errors.New("must be a date-time such as 2027-03-01T18:00:00Z or " +
			"2027-03-01T18:00:00+02:00: a day and time that exist, with a T between them " +
			"and Z or an offset from UTC at the end")
	}
	return t, nil
}
