package strict

import (
	"errors"
	"strings"
	"time"
)

// Time returns the instant, in UTC, that the RFC 3339 date-time s names: date, T,
// time to the second, an optional fraction and an offset or Z; t and z may be
// lower-case. Of a fraction it keeps the nanoseconds and cuts what is finer. A
// leap second (:60) is taken where it is 23:59 in UTC, on any day, as the second
// that follows. The years are 0000 to 9999, in s and also in UTC.
//
// An error is the tail of a sentence whose subject is what holds s: it begins
// with "must", says what is wrong and how to put it right.
func Time(s string) (time.Time, error) {
	t, problem := dateTime(s)
	if problem != "" {
		return time.Time{}, errors.New("must be an RFC 3339 date-time with " + problem)
	}
	return t, nil
}

// dateTime returns what Time does, and what an s that it refuses should have.
func dateTime(s string) (t time.Time, problem string) {
	const shape = "0000-00-00T00:00:00"
	if !shaped(s, shape) {
		switch {
		case shaped(s, shape[:16]) && (len(s) == 16 || s[16] != ':'):
			return t, "seconds, such as 2027-03-01T18:00:00Z"
		case shaped(s, shape[:10]) && len(s) == 10:
			return t, "a time of day after the date, such as 2027-03-01T18:00:00Z"
		case shaped(s, shape[:10]) && s[10]|0x20 != 't':
			return t, "a T between date and time, such as 2027-03-01T18:00:00Z"
		}
		return t, "four digits of the year, two of all else and Z or an offset, such as 2027-03-01T18:00:00Z"
	}
	year, month, day := number(s[:4]), time.Month(number(s[5:7])), number(s[8:10])
	hour, minute, second := number(s[11:13]), number(s[14:16]), number(s[17:19])
	zone := s[len(shape):]
	fraction := ""
	if strings.HasPrefix(zone, ".") {
		rest := strings.TrimLeft(zone[1:], digits)
		fraction, zone = zone[1:len(zone)-len(rest)], rest
		if fraction == "" {
			return t, "a digit after the point, such as 2027-03-01T18:00:00.5Z"
		}
	}
	nanosecond := number((fraction + "000000000")[:9])
	var ahead time.Duration // of UTC
	if zone != "Z" && zone != "z" {
		switch {
		case zone == "":
			return t, "an offset: add Z for UTC, or one such as +02:00"
		case zone[0] == ',':
			return t, "a point before the fraction, not a comma, such as 2027-03-01T18:00:00.5Z"
		case len(zone) != 6 || zone[0] != '+' && zone[0] != '-' || !shaped(zone[1:], shape[11:16]):
			return t, "Z or an offset such as +02:00 at its end, right after the seconds or their fraction"
		case number(zone[1:3]) > 23 || number(zone[4:]) > 59:
			return t, "an offset of at most 23:59"
		}
		ahead = time.Duration(number(zone[1:3]))*time.Hour + time.Duration(number(zone[4:]))*time.Minute
		if zone[0] == '-' {
			ahead = -ahead
		}
	}
	leap := 0
	if second == 60 {
		second, leap = 59, 1
	}
	switch {
	case month < 1 || month > 12:
		return t, "a month of 01 to 12"
	case day < 1 || day > time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day():
		return t, "a day that its month has: this one does not exist"
	case hour > 23:
		return t, "an hour of 00 to 23: midnight is 00:00:00 of the next day"
	case minute > 59 || second > 59:
		return t, "a minute and a second of 00 to 59"
	}
	t = time.Date(year, month, day, hour, minute, second, nanosecond, time.UTC).Add(-ahead)
	if leap == 1 && (t.Hour() != 23 || t.Minute() != 59) {
		return t, "a second of 00 to 59: a leap second, 60, is only where it is 23:59 in UTC"
	}
	t = t.Add(time.Duration(leap) * time.Second)
	if t.Year() < 0 || t.Year() > 9999 {
		return t, "a year of 0000 to 9999, in UTC too"
	}
	return t, ""
}

// shaped reports whether s begins as shape does, where 0 stands for any digit
// and T for T or t.
func shaped(s, shape string) bool {
	for i := range len(shape) {
		if i == len(s) || s[i] != shape[i] && (shape[i] != '0' || !isDigit(s[i])) && (shape[i] != 'T' || s[i] != 't') {
			return false
		}
	}
	return true
}

// number returns the value of s, at most nine digits.
func number(s string) (n int) {
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
