package commitlog

import (
	"testing"
)

var options = Options{Formats: []string{"events/1"}}

// collect returns a replay function that appends the records of each commit.
func collect(commits *[]string) func(Commit) error {
	return func(c Commit) error {
		*commits = append(*commits, string(c.Records))
		return nil
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
