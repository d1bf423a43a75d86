// Package offline is what the operator's commands do with a data file themselves: they open it
// where no server has it, or read it beside one. It also says what a person can do about an
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
	"time"

	"example.com/events/internal/command"
	"example.com/events/internal/operator"
	"example.com/events/internal/rows"
)

// LockWait is how long a command waits for a server that starts or for another command, and a
// server that starts for a command.
const LockWait = 10 * time.Second

// Files is the [operator.Files] of a program.
type Files struct {
	Context context.Context // whose end ends the waiting for a lock
	Program *command.Program
	Options rows.Options // to read a data file

	// Store returns the store of the database that open opens, and logs to the logger.
	Store func(log *slog.Logger, open func(rows.Options) (*rows.DB, error)) (operator.Store, error)
}

// Open is that of [operator.Files].
func (f *Files) Open(data, subcommand string) (operator.Store, error) {
	isThere, err := exists(data)
	if err != nil {
		return nil, err
	}
	server, _ := rows.LockHolder(data) // one that runs may be about to make the file
	if !isThere && server == 0 {
		return nil, errMissing(data)
	}
	logger, _ := f.Program.Logger("text", false) // an error is one of the format
	store, err := f.Store(slog.New(warnings{logger.Handler()}), func(o rows.Options) (*rows.DB, error) {
		o.Holder = operator.Working(f.Program.Name, subcommand)
		o.Wait = LockWait
		o.WaitFor = func(holder string) bool {
			return f.Context.Err() == nil && operator.IsBrief(f.Program.Name, holder)
		}
		return rows.Open(data, o)
	})
	if held, isHeld := errors.AsType[*rows.LockedError](err); isHeld {
		return nil, &operator.HeldError{Err: err, Holder: held.Holder}
	}
	if err != nil {
		return nil, Advised(err)
	}
	isThere, err = exists(data)
	if err == nil && !isThere {
		err = errMissing(data)
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// warnings is the log of a command on a data file: that the file was written anew, for example,
// is for the log of a server.
type warnings struct{ slog.Handler }

func (warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// exists reports whether there is a file. An error is one of looking for it.
func exists(file string) (bool, error) {
	_, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// errMissing says what to do where there is no data file.
func errMissing(data string) error {
	return fmt.Errorf("%s: %w; give the -data of the server; "+
		"a demo and a server with -memory have no data file, so no command reaches them",
		data, syscall.ENOENT)
}

// Look is that of [operator.Files].
func (f *Files) Look(data string) (operator.Store, error) {
	isThere, err := exists(data)
	if err != nil {
		return nil, err
	}
	pid, holder := rows.LockHolder(data)
	if !isThere && pid != 0 { // a server is about to make the file
		held := &rows.LockedError{File: data, PID: pid, Holder: holder}
		return nil, &operator.HeldError{Err: held, Holder: holder}
	}
	if !isThere {
		return nil, errMissing(data)
	}
	found := "" // at the end of the file
	store, err := f.Store(slog.New(slog.DiscardHandler), func(o rows.Options) (*rows.DB, error) {
		db, report, err := rows.OpenToRead(data, o)
		found = report.Repair
		return db, err
	})
	if err != nil {
		return nil, Advised(err)
	}
	if found != "" {
		f.Program.Warn("%s: %s; all before that was read", data, found)
	}
	return store, nil
}

// Holder is that of [operator.Files].
func (f *Files) Holder(data string) (pid int, holder string) { return rows.LockHolder(data) }

// Socket is that of [operator.Files].
func (f *Files) Socket(data string) string { return rows.SocketPath(data) }

// BelongsTo is that of [operator.Files].
func (f *Files) BelongsTo(data, path string) bool { return rows.BelongsTo(data, path) }

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
		return nil, fmt.Errorf("%s is a data file, not an array of records; eventsd dump makes one of it", path)
	}
	return text, nil
}

// Check is the subcommand check. It ends with status 1 if the file is damaged, and not with 2: it
// has found what it looks for.
func (f *Files) Check(flags *command.Flags) func() error {
	var data string
	operator.DataFlag(flags, &data)
	return func() error {
		r, count, err := rows.Check(data, f.Options)
		if err != nil {
			return Advised(err)
		}
		return f.Program.Printf("file: %s\nformat: %s\nbytes: %d\nlines: %d\n"+
			"commits: %d to %d, the snapshot up to %d\n"+
			"users: %d\nkeys: %d\nevents: %d\nguests: %d\nfound: %s\n",
			command.Printable(data), r.Format, r.Size, r.Lines,
			r.First, r.Last, r.Snap,
			count["user"], count["key"], count["event"], count["guest"],
			cmp.Or(r.Repair, "clean"))
	}
}

// Advised adds to an error of the data file what a person can do about it with this command.
func Advised(err error) error {
	_, isDamage := errors.AsType[*rows.DamageError](err)
	format, isFormat := errors.AsType[*rows.FormatError](err)
	_, isAccess := errors.AsType[*rows.AccessError](err)
	advice := ""
	switch {
	case isDamage:
		advice = "move it away, and start with a backup as the -seed"
	case isFormat && format.Format != "":
		advice = "or start with a new -data, and with a dump by that program as the -seed"
	case isFormat:
		advice = "give another path; a JSON array of records is for -seed, or for eventsd apply"
	case isAccess:
		advice = "eventsd check, eventsd dump and eventsd key list only read it"
	case errors.Is(err, rows.ErrReplaced):
		advice = "keep what is in memory, with eventsd dump, before you stop"
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, advice)
}
