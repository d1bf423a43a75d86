package strict

import (
	"errors"
	"regexp"
	"strings"
	"time"
)

// dateTime is the shape of a date-time: that of RFC 3339, but seconds may be left
// out, and an offset may lack its colon or its minutes.
var dateTime = regexp.MustCompile(`^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d(:?\d\d)?)$`)

// offsets writes an offset with a sign and no colon, Z as + alone.
var offsets = strings.NewReplacer("Z", "+", "z", "+", ":", "")

// Time returns the instant, in UTC, that the RFC 3339 date-time s names: date, T,
// time of day and an offset or Z; t and z may be lower-case. It takes two things
// more, which ISO 8601 allows and clients send: seconds may be left out
// (2027-03-01T18:00Z), and an offset may be +hhmm or +hh. Of a fraction it keeps
// the nanoseconds and cuts what is finer. A leap second (:60) is taken where it
// is 23:59 in UTC, on any day, as the second that follows. The years are 0000 to
// 9999, in s and also in UTC.
//
// An error is the tail of a sentence whose subject is what holds s: it begins
// with "must" and says everything that is wrong with s and how to put it right.
func Time(s string) (time.Time, error) {
	refuse := func(problem string) (time.Time, error) {
		const rule = "must be a date-time such as 2027-03-01T18:00:00Z or 2027-03-01T18:00:00+02:00: "
		return time.Time{}, errors.New(rule + problem)
	}
	if !dateTime.MatchString(s) {
		return refuse("write four digits of the year and two of all else, a T before the time, " +
			"a point before a fraction of a second, and Z or an offset from UTC at the end")
	}

	// Each form that the shape allows becomes the longest: 2027-03-01, 18:00:00, +0200.
	end := strings.LastIndexAny(s, "Zz+-") // the date has hyphens, too, but before
	date, clock := s[:10], s[11:end]
	if len(clock) == len("18:00") {
		clock += ":00"
	}
	offset := (offsets.Replace(s[end:]) + "0000")[:len("+0200")]

	// Two strings of two digits compare as their numbers do.
	var wrong []string
	if _, err := time.Parse(time.DateOnly, date); err != nil {
		wrong = append(wrong, "the month must be 01 to 12 and the day one that the month has")
	}
	for _, part := range [...]struct{ name, value, most string }{
		{"hour", clock[:2], "23"},
		{"minute", clock[3:5], "59"},
		{"second", clock[6:8], "60"},
		{"hour of the offset", offset[1:3], "23"},
		{"minute of the offset", offset[3:], "59"},
	} {
		if part.value > part.most {
			wrong = append(wrong, "the "+part.name+" must be 00 to "+part.most)
		}
	}
	if wrong != nil {
		return refuse(strings.Join(wrong, ", "))
	}

	// The time package has no second 60: of a leap second it reads 59, and a second is added.
	second := clock[6:8]
	clock = clock[:6] + min(second, "59") + clock[8:]
	t, err := time.Parse(time.RFC3339Nano, date+"T"+clock+offset[:3]+":"+offset[3:])
	if t = t.UTC(); second == "60" {
		if t.Hour() != 23 || t.Minute() != 59 {
			return refuse("the second can be 60, a leap second, only where it is 23:59 in UTC")
		}
		t = t.Add(time.Second)
	}
	if err != nil || t.Year() < 0 || t.Year() > 9999 {
		return refuse("the year must be 0000 to 9999 in UTC, too")
	}
	return t, nil
}
