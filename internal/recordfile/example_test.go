package recordfile_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"example.com/events/internal/recordfile"
)

func ExampleOpen() {
	dir, _ := os.MkdirTemp("", "")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "events.json")
	o := recordfile.Options{Formats: []string{"events/1"}, Logger: slog.New(slog.DiscardHandler)}
	for range 3 { // three starts of a server
		n := 0
		f, err := recordfile.Open(path, o, func(l recordfile.Line) error {
			if l.Records != "" {
				fmt.Println(l.Records)
				n++
			}
			return nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		if f.Size() == 0 { // there is no file yet
			err = f.Rewrite(slices.Values([][]byte{[]byte(`{"user":1}`)}))
		} else {
			err = f.Settle()
		}
		if err == nil {
			err = f.Append(fmt.Appendf(nil, `{"event":%d}`, n))
		}
		fmt.Println("start:", n, "commits,", err, f.Close())
	}
	// Output:
	// start: 0 commits, <nil> <nil>
	// {"user":1}
	// {"event":0}
	// start: 2 commits, <nil> <nil>
	// {"user":1}
	// {"event":0}
	// {"event":2}
	// start: 3 commits, <nil> <nil>
}
