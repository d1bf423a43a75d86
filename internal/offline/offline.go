// Package offline is what the operator's commands do with a data file themselves: they open it
// if no server has it open, or check it. It also says what a person can do about an
// error of a data file. It does not know what the rows of the file mean.
package offline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"syscall"

	"example.com/events/internal/command"
	"example.com/events/internal/jsondb"
	"example.com/events/internal/operator"
	"example.com/events/internal/rows"
)

// Files is the [operator.Files] of a program.
type Files struct {
	Program *command.Program
	Options jsondb.Options // to read a data file

	// Store opens the store of a data file, which logs to the logger.
	Store func(data string, log *slog.Logger) (operator.Store, error)
}

// Open is that of [operator.Files].
func (f *Files) Open(data string) (operator.Store, error) {
	_, err := os.Stat(data)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w; give the -data of the server; "+
			"a demo and a server with -memory have no data file, so no command reaches them",
			data, syscall.ENOENT)
	}
	if err != nil {
		return nil, err
	}
	logger, _ := f.Program.Logger("text", false) // an error is one of the format
	store, err := f.Store(data, slog.New(warnings{logger.Handler()}))
	if err != nil {
		return nil, Advised(err)
	}
	return store, nil
}

// warnings is the log of a command on a data file: that the file was written anew, for example,
// is for the log of a server.
type warnings struct{ slog.Handler }

func (warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Socket is that of [operator.Files].
func (f *Files) Socket(data string) string { return rows.SocketPath(data) }

// Records is that of [operator.Files].
func (f *Files) Records(path string) (text []byte, err error) {
	if path == "-" {
		path = "standard input"
		text, err = io.ReadAll(f.Program.Stdin)
	} else {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	if rows.IsDataFile(text) {
		return nil, fmt.Errorf(
			"%s is a data file, not an array of records; eventsd dump makes one of it", path)
	}
	return text, nil
}

// Check is the subcommand check. It ends with status 1 if the file is damaged, and not with 2: it
// has found what it looks for.
func (f *Files) Check(flags *command.Flags) func() error {
	var data string
	operator.DataFlag(flags, &data)
	return func() error {
		r, err := jsondb.Check(data, f.Options)
		if err != nil {
			return Advised(err)
		}
		return f.Program.Printf("file: %s\nformat: %s\nbytes: %d\ncommits: %d\n"+
			"users: %d\nkeys: %d\nevents: %d\nguests: %d\nfound: %s\n",
			command.Printable(data), r.Format, r.Size, r.Commits,
			r.Rows["user"], r.Rows["key"], r.Rows["event"], r.Rows["guest"],
			cmp.Or(r.Torn, "clean"))
	}
}

// Advised adds to an error of the data file what a person can do about it with this command.
func Advised(err error) error {
	advice := ""
	switch {
	case errors.Is(err, jsondb.ErrDamaged):
		advice = "move it away, and start with a backup as the -seed"
	case errors.Is(err, jsondb.ErrFormat):
		advice = "give another path; a JSON array of records is for -seed, or for eventsd apply"
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, advice)
}
