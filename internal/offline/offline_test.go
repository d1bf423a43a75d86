package offline

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"example.com/events/internal/recordfile"
	"example.com/events/internal/rows"
)

// Each error of a data file says what a person can do about it, and stays what it is.
func TestAdvised(t *testing.T) {
	t.Parallel()
	damage := func(kind recordfile.DamageKind) error {
		return fmt.Errorf("open: %w", &rows.DamageError{File: "a b.json", Line: 3, Offset: 9, Reason: "odd", Kind: kind})
	}
	const damaged = "open: a b.json is damaged at line 3, byte 9: odd; nothing was changed; "
	other := errors.New("no space left on device")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{damage(rows.DamagedLines), damaged + "get out what verifies with eventsd dump -salvage -data 'a b.json', " +
			"and make a new data file of that or of a dump from before with eventsd apply -create"},
		{damage(rows.NothingVerifies), damaged + "make a new data file of a dump from before with eventsd apply -create"},
		{damage(rows.Reformatted), damaged + "make records of it with jq '[.[].w[]? | del(.idempotency)]' 'a b.json' " +
			"> records.json, and a new data file of these with eventsd apply -create -data NEW records.json"},
		{&rows.FormatError{File: "x", Reason: "it is empty"}, "x: not a data file of this version: it is empty; " +
			"give another path; a JSON array of records is for -seed, or for eventsd apply -create"},
		{&rows.FormatError{File: "x", Format: "events/9", Reason: "it is of events/9"},
			"x: not a data file of this version: it is of events/9; " +
				"or make a new data file with eventsd apply -create of what eventsd dump of that program prints"},
		{&rows.AccessError{Err: errors.New("open x: denied")}, "open x: denied: who runs this must own the data file " +
			"and be able to write in its folder; eventsd check, eventsd dump and eventsd key list only read it"},
		{&rows.AccessError{Err: fmt.Errorf("open x: %w", syscall.EROFS)}, "open x: read-only file system: a data file " +
			"there can only be read; eventsd check, eventsd dump and eventsd key list only read it"},
		{&rows.EndedError{File: "x", State: rows.ErrNotWritten, Doing: "sync", Err: rows.ErrReplaced},
			"x: not written to the data file: sync: it was removed or replaced, or its length was changed, while it " +
				"was open; keep what is in memory, with eventsd dump, before you stop"},
		{other, other.Error()},
	} {
		got := Advised(tt.err)
		if got.Error() != tt.want || !errors.Is(got, tt.err) {
			t.Errorf("Advised(%v) =\n%v\nwant\n%s", tt.err, got, tt.want)
		}
	}
}
