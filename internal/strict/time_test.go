package strict_test

import (
	"cmp"
	"errors"
	"fmt"
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

		{"2027-03-01T18:00Z", "2027-03-01T18:00:00Z"}, // ISO 8601 alone allows these
		{"2027-03-01t18:00z", "2027-03-01T18:00:00Z"},
		{"2027-03-01T18:00-02:30", "2027-03-01T20:30:00Z"},
		{"2027-03-01T18:00+02", "2027-03-01T16:00:00Z"},
		{"2027-03-01T18:00-0230", "2027-03-01T20:30:00Z"},
		{"2027-03-01T18:00:00+02", "2027-03-01T16:00:00Z"},
		{"2027-03-01T18:00:00-0230", "2027-03-01T20:30:00Z"},
		{"2027-03-01T18:00:00.25-23", "2027-03-02T17:00:00.25Z"},
		{"2016-12-31T15:59:60-08", "2017-01-01T00:00:00Z"},

		{"2027-03-01T18:00:00.5Z", "2027-03-01T18:00:00.5Z"},
		{"2027-03-01T18:00:00.0Z", "2027-03-01T18:00:00Z"},
		{"2027-03-01T18:00:00.123456789+01:00", "2027-03-01T17:00:00.123456789Z"},
		{"2027-03-01T18:00:00.1234567899Z", "2027-03-01T18:00:00.123456789Z"},
		{"2027-03-01T18:00:00.0000000009Z", "2027-03-01T18:00:00Z"},
		{"2027-03-01T18:00:00." + strings.Repeat("9", 1<<16) + "Z", "2027-03-01T18:00:00.999999999Z"},

		{"2028-02-29T12:00:00Z", "2028-02-29T12:00:00Z"},
		{"2000-02-29T12:00:00Z", "2000-02-29T12:00:00Z"},
		{"2027-04-30T12:00:00Z", "2027-04-30T12:00:00Z"},
		{"2027-12-31T12:00:00Z", "2027-12-31T12:00:00Z"},
		{"0001-01-01T00:00:00.000000001Z", "0001-01-01T00:00:00.000000001Z"},
		{"9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"},
		{"0000-12-31T23:00:00-02:00", "0001-01-01T01:00:00Z"},
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
			got, err := strict.ParseTime(tt.in)
			if err != nil {
				t.Fatalf("Time(%.60q): got %v, want %s", tt.in, err, tt.want)
			}
			if got.Format(time.RFC3339Nano) != tt.want { // which is in UTC
				t.Errorf("Time(%.60q): got %v, want %s", tt.in, got, tt.want)
			}
		})
	}
}

// TestTimeFormatsOfLanguages tests the formats that common languages write.
func TestTimeFormatsOfLanguages(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 3, 1, 18, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ client, in string }{
		{"Java, OffsetDateTime.toString() in UTC", "2027-03-01T18:00Z"},
		{"Java, OffsetDateTime.toString() elsewhere", "2027-03-01T20:00+02:00"},
		{"Java, Instant.toString()", "2027-03-01T18:00:00Z"},
		{"Python, isoformat()", "2027-03-01T18:00:00+00:00"},
		{`Python, isoformat(timespec="minutes")`, "2027-03-01T20:00+02:00"},
		{`Python, isoformat(timespec="microseconds")`, "2027-03-01T20:00:00.000000+02:00"},
		{`Python, strftime("%Y-%m-%dT%H:%M:%S%z")`, "2027-03-01T20:00:00+0200"},
		{"JavaScript, toISOString()", "2027-03-01T18:00:00.000Z"},
		{"Go, RFC3339Nano", at.In(time.FixedZone("", -4*3600)).Format(time.RFC3339Nano)},
		{"PostgreSQL, to_json(timestamptz)", "2027-03-01T18:00:00+00:00"},
		{"date -u +%Y-%m-%dT%H:%M:%SZ", "2027-03-01T18:00:00Z"},
	} {
		if got, err := strict.ParseTime(tt.in); got != at {
			t.Errorf("%s: Time(%q): got %v, %v, want %v", tt.client, tt.in, got, err, at)
		}
	}
}

// dateTime matches date-times that Time accepts, if their parts are in range.
var dateTime = regexp.MustCompile(`\A(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d)(:\d\d)?(\.\d+)?` +
	`([Zz]|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)\z`)

func FuzzTime(f *testing.F) {
	for _, seed := range []string{
		"2027-03-01T18:00:00Z", "2027-03-01t18:00:00.5z", "2027-03-01T18:00:00.1234567891+02:00",
		"2016-12-31T15:59:60-08:00", "0000-01-01T00:00:00+00:01", "9999-12-31T23:59:60Z",
		"2028-02-29T24:00:00-23:59", "2027-03-01T18:00:00,5Z", "2027-03-01 18:00", "2027-03-01T1:00:00Z",
		"2027-03-01T18:00-0230", "2027-03-01T18:00:00z+02",

		"", "Z", "tomorrow", "1803924000", "2027", "2027-03", "18:00:00Z", "2027-W09-1T18:00:00Z",
		"2027-060T18:00:00Z", "20270301T180000Z", "27-03-01T18:00:00Z", "02027-03-01T18:00:00Z",
		"+2027-03-01T18:00:00Z", "-2027-03-01T18:00:00Z", "12027-03-01T18:00:00Z", "2027-3-01T18:00:00Z",
		"2027-03-1T18:00:00Z", "2027/03/01T18:00:00Z", "2027-03-01T8:00:00Z", "2027-03-01T18:0:00Z",
		"2027-03-01T18:00:0Z", "2027-03-01T18-00-00Z", "2027-03-01T 8:00:00Z", "2027-03-01T-1:00:00Z",
		" 2027-03-01T18:00:00Z", "Mon, 01 Mar 2027 18:00:00 GMT", "\u0662027-03-01T18:00:00Z",
		"2027-03-0\u0661T18:00:00Z", "2027-03-01T18:00:0\xb1Z",

		"2027-03-01", "2027-03-01 18:00:00Z", "2027-03-01_18:00:00Z", "2027-03-01Z", "2027-03-01T18:00",

		"2027-00-01T18:00:00Z", "2027-13-01T18:00:00Z", "2027-03-00T18:00:00Z", "2027-03-32T18:00:00Z",
		"2027-04-31T18:00:00Z", "2027-02-29T18:00:00Z", "2100-02-29T18:00:00Z", "2027-02-30T18:00:00Z",
		"2027-03-01T24:00:00Z", "2027-03-01T25:00:00Z", "2027-03-01T18:60:00Z", "2027-03-01T18:00:61Z",
		"2027-03-01T23:59:61Z",

		"2027-02-30T24:00Z", "2027-13-01T25:61:62.5+2460",

		"2027-03-01T18:00:60Z", "2027-03-01T23:58:60Z", "2027-03-01T22:59:60Z", "2027-03-01T00:00:60Z",
		"2027-03-01T00:59:60Z", "2027-03-01T23:59:60+01:00", "2027-03-01T23:59:60-08:00",

		"2027-03-01T18:00:00", "2027-03-01T18:00:00.5", "2027-03-01T18:00:00,5Z", "2027-03-01T18:00:00.Z",
		"2027-03-01T18:00:00.+01:00", "2027-03-01T18:00:00.5.5Z", "2027-03-01T18:00:00.\u0661Z",
		"2027-03-01T18:00:00 Z", "2027-03-01T18:00:00Z ", "2027-03-01T18:00:00Z\n",
		"2027-03-01T18:00:00Z\x00", "2027-03-01T18:00:00ZZ", "2027-03-01T18:00:00Z+01:00",
		"2027-03-01T18:00:00UTC", "2027-03-01T18:00:00 CET", "2027-03-01T18:00:00[Europe/London]",
		"2027-03-01T18:00:00Z[Europe/London]", "2027-03-01T18Z", "2027-03-01T1800Z", "2027-03-01T18:00.5Z",
		"2027-03-01T18:Z", "2027-03-01T18:00:Z", "2027-03-01T18:00:00+2", "2027-03-01T18:00:00+020",
		"2027-03-01T18:00:00+02:", "2027-03-01T18:00:00+02000", "2027-03-01T18:00:00+2:00",
		"2027-03-01T18:00:00+02:0", "2027-03-01T18:00:00+02:00:00", "2027-03-01T18:00:0002:00",
		"2027-03-01T18:00:00\u221202:00", "2027-03-01T18:00:00+24:00", "2027-03-01T18:00:00-00:60",
	} {
		f.Add(seed)
	}
	const rule = "must be a valid date-time such as "
	f.Fuzz(func(t *testing.T, s string) {
		got, err := strict.ParseTime(s)
		m := dateTime.FindStringSubmatch(s)
		if m == nil || m[3] == "" && m[4] != "" {
			if !strings.HasPrefix(fmt.Sprint(err), rule) {
				t.Fatalf("Time(%q): got %v, %v, want %s", s, got, err, rule)
			}
			return
		}
		leap := m[3] == ":60"
		if leap {
			m[3] = ":59"
		}
		zone := map[int]string{1: "Z0700", 3: "Z07", 5: "Z0700", 6: "Z07:00"}[len(m[5])]
		clock := m[2] + cmp.Or(m[3], ":00") + m[4] + strings.ToUpper(m[5])
		want, wantErr := time.Parse("2006-01-02 15:04:05"+zone, m[1]+" "+clock)
		want = want.UTC()
		if leap {
			if want.Hour() != 23 || want.Minute() != 59 {
				wantErr = errors.New("not at the end of a day")
			}
			want = want.Add(time.Second)
		}
		if wantErr != nil || want.Year() < 1 || want.Year() > 9999 {
			if err == nil {
				t.Fatalf("Time(%q): got %v, want an error", s, got)
			}
			return
		}
		if err != nil {
			t.Fatalf("Time(%q): got %v, want %v", s, err, want)
		}
		if got != want {
			t.Fatalf("Time(%q): got %v, want %v in UTC", s, got, want)
		}
		formatted := got.Format(time.RFC3339Nano)
		if again, err := strict.ParseTime(formatted); again != got {
			t.Fatalf("Time(%q): got %v, %v, want %v", formatted, again, err, got)
		}
	})
}

func TestTimeYear(t *testing.T) {
	t.Parallel()
	const want = "must be in the years 0001 to 9999, in UTC"
	for _, in := range []string{
		"9999-12-31T23:59:60Z", "9999-12-31T23:59:59-00:01",
		"0000-01-01T00:00:00Z", "0000-12-31T23:59:59Z", "0001-01-01T00:00:00+00:01",
		"0000-01-01T00:00:00+00:01",
	} {
		_, err := strict.ParseTime(in)
		if got := fmt.Sprint(err); got != want {
			t.Errorf("Time(%q): got %s, want %s", in, got, want)
		}
	}
}

// Go's zero time means that there is no time.
func TestTimeZero(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"0001-01-01T00:00:00Z", "0001-01-01T00:00Z", "0001-01-01T01:00:00+01:00", "0000-12-31T23:59:60Z",
	} {
		_, err := strict.ParseTime(in)
		const want = "must be after 0001-01-01T00:00:00Z"
		if got := fmt.Sprint(err); !strings.HasPrefix(got, want) {
			t.Errorf("Time(%q): got %s, want %s", in, got, want)
		}
	}
}
