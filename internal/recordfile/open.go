package recordfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Open takes the lock of the file at path, reads it and calls replay once for
// each commit, in order, with what stands between the brackets of its "w". The
// strings are parts of the one string that the file was read into: keeping one
// keeps all. An error from replay, which may be nil, refuses the file.
//
// What one unfinished write left at the end is cut, and a copy put aside. Where
// that fails the file can be read only and [File.Err] says so. A file that is
// missing is new; only its lock is made. Else Open fails and changes nothing:
// [*LockedError], [*FormatError], [*DamageError] or the system's own error.
func Open(path string, o Options, replay func(records string) error) (*File, error) {
	o.setDefaults()
	path, err := o.fs.Resolve(path)
	if err != nil {
		return nil, explain(err)
	}
	lock, err := o.fs.Lock(path + ".lock")
	if locked, ok := errors.AsType[*LockedError](err); ok {
		locked.File = path
	}
	if err != nil {
		return nil, explain(err)
	}
	f := &File{path: path, o: o, lock: lock}
	if err := f.open(replay); err != nil {
		if f.file != nil {
			_ = f.file.Close()
		}
		_ = lock.Close()
		return nil, explain(err)
	}
	return f, nil
}

func (f *File) open(replay func(string) error) error {
	var err error
	f.file, err = f.o.fs.Open(f.path, true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s := scan{path: f.path, format: f.o.Format, replay: replay}
	if err := s.load(f.file, f.o.Progress); err != nil {
		return err
	}
	torn, repair, err := s.judge()
	if err != nil {
		return err
	}
	if err := f.o.fs.Remove(f.path + ".tmp"); err != nil { // it is not needed: this file is good
		return err
	}
	f.salt, f.n = s.head.salted(), s.n
	f.end, f.snapEnd = s.offset(), s.snapEnd
	f.tail = s.text[f.snapEnd:f.end]
	if torn != "" {
		kept, err := f.keep(torn)
		if err != nil {
			_ = f.fail(ErrReadOnly, "putting a torn write aside", err)
			return nil // what was read can be used
		}
		repair += ", cut and kept in " + kept
	}
	if repair != "" && f.cut(ErrReadOnly) == nil {
		f.o.Logf("%s: repaired: %s", f.path, repair)
	}
	return nil
}

// explain adds what to do to the errors of the system that an operator meets.
func explain(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: who runs this must own the data file and be able to write in its folder", err)
	}
	return err
}

// keptTorn is how many files with torn writes stay.
const keptTorn = 5

// keep writes what is about to be cut to a file of its own.
func (f *File) keep(torn string) (name string, err error) {
	dir := filepath.Dir(f.path)
	prefix := f.path + ".torn-"
	name = prefix + time.Now().UTC().Format("20060102T150405.000000000Z")
	t, err := f.o.fs.Create(name, f.file)
	if err != nil {
		return "", err
	}
	_, err = t.WriteAt([]byte(torn), 0)
	if err == nil {
		err = t.Sync()
	}
	err = errors.Join(err, t.Close())
	if err == nil {
		err = f.o.fs.SyncDir(dir)
	}
	if err != nil {
		return "", errors.Join(err, f.o.fs.Remove(name))
	}
	names, err := f.o.fs.Names(dir)
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(filepath.Join(dir, n), prefix) })
	for _, old := range names[:max(0, len(names)-keptTorn)] {
		err = errors.Join(err, f.o.fs.Remove(filepath.Join(dir, old)))
	}
	if err != nil {
		f.o.Logf("%s: old torn writes stay: %v", f.path, err)
	}
	return name, nil
}
