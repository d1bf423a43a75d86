package strict_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/events/internal/strict"
)

func TestTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{ // want: in UTC
		{"2027-03-01T18:00:00Z", "2027-03-01T18:00:00Z"},
		{"2027-03-01t18:00:00z", "2027-03-01T18:00:00Z"},
		{"2027-03-01T18:00:00+02:00", "2027-03-01T16:00:00Z"},
		{"2027-03-01T18:00:00-02:30", "2027-03-01T20:30:00Z"},
		{"2027-03-01T18:00:00+00:00", "2027-03-01T18:00:00Z"},
		{"2027-03-01T18:00:00-00:00", "2027-03-01T18:00:00Z"},
		{"2027-01-01T00:00:00+23:59", "2026-12-31T00:01:00Z"},
		{"2027-12-31T23:59:59-23:59", "2028-01-01T23:58:59Z"},
		{"2027-03-01T00:00:00Z", "2027-03-01T00:00:00Z"},
		{"2027-03-01T23:59:59Z", "2027-03-01T23:59:59Z"},

		{"2027-03-01T18:00:00.5Z", "2027-03-01T18:00:00.5Z"},
		{"2027-03-01T18:00:00.0Z", "2027-03-01T18:00:00Z"},
		{"2027-03-01T18:00:00.123456789+01:00", "2027-03-01T17:00:00.123456789Z"},
		{"2027-03-01T18:00:00.1234567899Z", "2027-03-01T18:00:00.123456789Z"},
		{"2027-03-01T18:00:00.0000000009Z", "2027-03-01T18:00:00Z"},
		{"2027-03-01T18:00:00." + strings.Repeat("9", 1<<16) + "Z", "2027-03-01T18:00:00.999999999Z"},

		{"2028-02-29T12:00:00Z", "2028-02-29T12:00:00Z"},
		{"2000-02-29T12:00:00Z", "2000-02-29T12:00:00Z"},
		{"0000-02-29T12:00:00Z", "0000-02-29T12:00:00Z"},
		{"2027-04-30T12:00:00Z", "2027-04-30T12:00:00Z"},
		{"2027-12-31T12:00:00Z", "2027-12-31T12:00:00Z"},
		{"0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"},
		{"9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"},
		{"0000-01-01T01:00:00+01:00", "0000-01-01T00:00:00Z"},
		{"9999-12-31T22:59:59-01:00", "9999-12-31T23:59:59Z"},

		{"2016-12-31T23:59:60Z", "2017-01-01T00:00:00Z"},
		{"2016-12-31t23:59:60z", "2017-01-01T00:00:00Z"},
		{"2016-12-31T15:59:60-08:00", "2017-01-01T00:00:00Z"},
		{"2017-01-01T05:29:60+05:30", "2017-01-01T00:00:00Z"},
		{"2017-01-01T23:58:60+23:59", "2017-01-01T00:00:00Z"},
		{"2016-12-31T23:59:60.25Z", "2017-01-01T00:00:00.25Z"},
		{"2027-03-01T23:59:60Z", "2027-03-02T00:00:00Z"}, // on any day
	} {
		t.Run(tt.in[:min(len(tt.in), 40)], func(t *testing.T) {
			t.Parallel()
			got, err := strict.Time(tt.in)
			if err != nil || got.Location() != time.UTC || got.Format(time.RFC3339Nano) != tt.want {
				t.Errorf("Time(%.60q) = %v, %v, want %s in UTC", tt.in, got, err, tt.want)
			}
		})
	}
}

func TestTimeRefuses(t *testing.T) {
	t.Parallel()
	const (
		rule    = "must be an RFC 3339 date-time with four digits of the year, two of all else and Z or an offset, such as 2027-03-01T18:00:00Z"
		seconds = "with seconds"
		day     = "with a day that its month has"
		hour    = "with an hour of 00 to 23"
		leap    = "only where it is 23:59 in UTC"
		end     = "with Z or an offset such as +02:00 at its end"
		year    = "with a year of 0000 to 9999, in UTC too"
		sixty   = "with a minute and a second of 00 to 59"
	)
	for _, tt := range []struct{ in, want string }{
		{"", rule},
		{"Z", rule},
		{"tomorrow", rule},
		{"1803924000", rule},
		{"2027", rule},
		{"2027-03", rule},
		{"18:00:00Z", rule},
		{"2027-W09-1T18:00:00Z", rule},
		{"2027-060T18:00:00Z", rule},
		{"20270301T180000Z", rule},
		{"27-03-01T18:00:00Z", rule},
		{"02027-03-01T18:00:00Z", rule},
		{"+2027-03-01T18:00:00Z", rule},
		{"-2027-03-01T18:00:00Z", rule},
		{"12027-03-01T18:00:00Z", rule},
		{"2027-3-01T18:00:00Z", rule},
		{"2027-03-1T18:00:00Z", rule},
		{"2027/03/01T18:00:00Z", rule},
		{"2027-03-01T8:00:00Z", rule},
		{"2027-03-01T18:0:00Z", rule},
		{"2027-03-01T18:00:0Z", rule},
		{"2027-03-01T18-00-00Z", rule},
		{"2027-03-01T 8:00:00Z", rule},
		{"2027-03-01T-1:00:00Z", rule},
		{" 2027-03-01T18:00:00Z", rule},
		{"Mon, 01 Mar 2027 18:00:00 GMT", rule},
		{"\u0662027-03-01T18:00:00Z", rule},
		{"2027-03-0\u0661T18:00:00Z", rule},
		{"2027-03-01T18:00:0\xb1Z", rule},

		{"2027-03-01", "with a time of day"},
		{"2027-03-01 18:00:00Z", "with a T between"},
		{"2027-03-01_18:00:00Z", "with a T between"},
		{"2027-03-01Z", "with a T between"},
		{"2027-03-01T18:00", seconds},
		{"2027-03-01T18:00Z", seconds},
		{"2027-03-01T18:00+02:00", seconds},

		{"2027-00-01T18:00:00Z", "with a month"},
		{"2027-13-01T18:00:00Z", "with a month"},
		{"2027-03-00T18:00:00Z", day},
		{"2027-03-32T18:00:00Z", day},
		{"2027-04-31T18:00:00Z", day},
		{"2027-02-29T18:00:00Z", day},
		{"2100-02-29T18:00:00Z", day},
		{"2027-02-30T18:00:00Z", day},
		{"2027-03-01T24:00:00Z", hour},
		{"2027-03-01T25:00:00Z", hour},
		{"2027-03-01T18:60:00Z", sixty},
		{"2027-03-01T18:00:61Z", sixty},
		{"2027-03-01T23:59:61Z", sixty},

		{"2027-03-01T18:00:60Z", leap},
		{"2027-03-01T23:58:60Z", leap},
		{"2027-03-01T22:59:60Z", leap},
		{"2027-03-01T00:00:60Z", leap},
		{"2027-03-01T23:59:60+01:00", leap},
		{"2027-03-01T23:59:60-08:00", leap},
		{"9999-12-31T23:59:60Z", year},
		{"0000-01-01T00:00:00+00:01", year},
		{"9999-12-31T23:59:59-00:01", year},

		{"2027-03-01T18:00:00", "with an offset: add Z"},
		{"2027-03-01T18:00:00.5", "with an offset: add Z"},
		{"2027-03-01T18:00:00,5Z", "with a point before the fraction"},
		{"2027-03-01T18:00:00.Z", "with a digit after the point"},
		{"2027-03-01T18:00:00.+01:00", "with a digit after the point"},
		{"2027-03-01T18:00:00.5.5Z", end},
		{"2027-03-01T18:00:00.\u0661Z", "with a digit after the point"},
		{"2027-03-01T18:00:00 Z", end},
		{"2027-03-01T18:00:00Z ", end},
		{"2027-03-01T18:00:00Z\n", end},
		{"2027-03-01T18:00:00Z\x00", end},
		{"2027-03-01T18:00:00ZZ", end},
		{"2027-03-01T18:00:00Z+01:00", end},
		{"2027-03-01T18:00:00UTC", end},
		{"2027-03-01T18:00:00 CET", end},
		{"2027-03-01T18:00:00[Europe/London]", end},
		{"2027-03-01T18:00:00Z[Europe/London]", end},
		{"2027-03-01T18:00:00+2", end},
		{"2027-03-01T18:00:00+02", end},
		{"2027-03-01T18:00:00+0200", end},
		{"2027-03-01T18:00:00+2:00", end},
		{"2027-03-01T18:00:00+02:0", end},
		{"2027-03-01T18:00:00+02:00:00", end},
		{"2027-03-01T18:00:0002:00", end},
		{"2027-03-01T18:00:00\u221202:00", end},
		{"2027-03-01T18:00:00+24:00", "with an offset of at most 23:59"},
		{"2027-03-01T18:00:00-00:60", "with an offset of at most 23:59"},
	} {
		t.Run(tt.in, func(t *testing.T) {
			t.Parallel()
			got, err := strict.Time(tt.in)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "must be an RFC 3339 date-time with ") {
				t.Errorf("Time(%q) = %v, %v, want …%s…", tt.in, got, err, tt.want)
			}
			if !got.IsZero() {
				t.Errorf("Time(%q) = %v with an error, want the zero time", tt.in, got)
			}
		})
	}
}

// dateTime is the shape of an RFC 3339 date-time with an offset in its range.
var dateTime = regexp.MustCompile(`\A\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)\z`)

func FuzzTime(f *testing.F) {
	for _, seed := range []string{
		"2027-03-01T18:00:00Z", "2027-03-01t18:00:00.5z", "2027-03-01T18:00:00.1234567891+02:00",
		"2016-12-31T15:59:60-08:00", "0000-01-01T00:00:00+00:01", "9999-12-31T23:59:60Z", "2028-02-29T24:00:00-23:59",
		"2027-03-01T18:00:00,5Z", "2027-03-01 18:00", "2027-03-01T1:00:00Z",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := strict.Time(s)
		if !dateTime.MatchString(s) {
			if err == nil {
				t.Fatalf("Time(%q) = %v, want an error", s, got)
			}
			return
		}
		leap := s[17:19] == "60"
		if leap {
			s = s[:17] + "59" + s[19:]
		}
		want, wantErr := time.Parse(time.RFC3339Nano, strings.ToUpper(s))
		want = want.UTC()
		if leap {
			if want.Hour() != 23 || want.Minute() != 59 {
				wantErr = errors.New("not at the end of a day")
			}
			want = want.Add(time.Second)
		}
		valid := wantErr == nil && 0 <= want.Year() && want.Year() <= 9999
		if (err == nil) != valid || valid && (got != want || got.Location() != time.UTC) {
			t.Fatalf("Time(%q) = %v, %v (leap second: %t), want %v, %v", s, got, err, leap, want, wantErr)
		}
		if err != nil {
			return
		}
		if again, err := strict.Time(got.Format(time.RFC3339Nano)); err != nil || again != got {
			t.Fatalf("Time(%q) = %v, which reads as %v, %v", s, got, again, err)
		}
	})
}
