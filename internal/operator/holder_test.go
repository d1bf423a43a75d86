package operator

import (
	"errors"
	"testing"
)

// What is said where another process has the data file follows from what that process says it is.
func TestHolders(t *testing.T) {
	t.Parallel()
	const data, socket = "/d/e.json", "/d/e.json.sock"
	held := errors.New("the file is in use")
	for _, tt := range []struct {
		holder             string
		isCommand, isBrief bool
		serves             bool
		refused            string // what a command says that needs the lock
		status             string // what status says
	}{
		{Starting, false, true, false,
			"the file is in use, a server that is starting: try again when it is ready",
			"a server is starting on /d/e.json: process 7"},
		{Listening(socket), false, false, true,
			"the file is in use, a running server: its socket is gone, so stop it first, or restart it to get a new one",
			"a server runs on /d/e.json, process 7, and its socket /d/e.json.sock is gone; restart it to get a new one"},
		{Off(errors.New("no room")), false, false, false,
			`the file is in use, a running server that has printed "operator: off (no room)": ` +
				"it has no socket for the operator, so stop it first",
			"a server runs on /d/e.json, process 7, and cannot be asked: operator: off (no room)"},
		{Working("eventsd", "apply"), true, true, false,
			"the file is in use, which is eventsd apply: try again when it has ended",
			"no server runs on /d/e.json: process 7 has it, which is eventsd apply"},
		{"", false, false, false,
			"the file is in use: stop it first",
			"no server runs on /d/e.json: nobody listens on /d/e.json.sock"},
	} {
		err := &HeldError{held, tt.holder}
		if err.Error() != tt.refused || !errors.Is(err, held) || isServing(err) != tt.serves {
			t.Errorf("%q: the error is %q, of one that serves: %v; want %q, %v",
				tt.holder, err, isServing(err), tt.refused, tt.serves)
		}
		if got := whyUnanswered(data, socket, 7, tt.holder); got != tt.status {
			t.Errorf("%q: status says %q, want %q", tt.holder, got, tt.status)
		}
		isCommand, isBrief := IsCommand("eventsd", tt.holder), IsBrief("eventsd", tt.holder)
		if isCommand != tt.isCommand || isBrief != tt.isBrief {
			t.Errorf("%q: is a command: %v, is brief: %v; want %v, %v",
				tt.holder, isCommand, isBrief, tt.isCommand, tt.isBrief)
		}
		// A lock file that names no process was left by one that is gone.
		const nobody = "no server runs on /d/e.json: nobody listens on /d/e.json.sock"
		if got := whyUnanswered(data, socket, 0, tt.holder); got != nobody {
			t.Errorf("%q of no process: status says %q, want %q", tt.holder, got, nobody)
		}
	}
}

func TestApplied(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		records, unchanged int
		want               string
	}{
		{0, 0, "applied 0 records"},
		{1, 0, "applied 1 record"},
		{3, 0, "applied 3 records"},
		{3, 1, "applied 3 records, of which 1 changed nothing"},
	} {
		if got := applied(tt.records, tt.unchanged); got != tt.want {
			t.Errorf("applied(%d, %d) = %q, want %q", tt.records, tt.unchanged, got, tt.want)
		}
	}
}
