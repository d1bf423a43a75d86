package greeting

import "testing"

func TestProgress(t *testing.T) {
	t.Parallel()
	var p Progress
	says := func(want string) {
		t.Helper()
		if got := p.String(); got != want {
			t.Errorf("the progress is %q, want %q", got, want)
		}
	}
	says("start: 0 % of the data file")
	p.Reading(30, 120)
	says("start: 25 % of the data file")
	records := int64(0)
	p.Seeding(func() int64 { return records })
	says("start: 0 records of the seed")
	records = 12_000
	says("start: 12,000 records of the seed")
}
