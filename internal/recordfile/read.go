package recordfile

import (
	"os"
	"time"
)

// A Report says what [Read] found.
type Report struct {
	File        string // its absolute path, symbolic links resolved
	Format      string // its format
	Size        int64  // of the file, in bytes
	Lines       int    // commits that verify
	First, Last uint64 // their numbers
	Snap        uint64 // the number that ends the snapshot
	Repair      string // what is wrong with its end, which File.Settle would repair; empty if nothing is
}

// Read reads what is whole in the file at this moment, by the rules of [Open]. It takes no lock and
// changes nothing, neither the file nor its folder. A server may be writing at the same time. So
// an end that is not clean is looked at again until it is clean, for at most about 100 ms.
func Read(path string, o Options, replay func(Line) error) (Report, error) {
	r, err := openToRead(path, o)
	if err != nil {
		return Report{}, err
	}
	defer r.data.Close()
	err = r.readHeader()
	if err != nil {
		return Report{}, err
	}
	r.replay = replay
	for range 11 {
		err = r.readLines()
		if err != nil {
			return Report{}, err
		}
		err = r.judgeRest()
		if r.repair == "" && err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return Report{
		File:   r.path,
		Format: r.format,
		Size:   r.size,
		Lines:  r.line - 3,
		First:  r.before + 1,
		Last:   r.n,
		Snap:   r.snap,
		Repair: r.repair,
	}, err
}

// openToRead opens a file that a server may be writing.
func openToRead(path string, o Options) (*reader, error) {
	o = o.withDefaults()
	path, err := o.fs.Resolve(path)
	if err != nil {
		return nil, err
	}
	data, err := o.fs.Open(path, os.O_RDONLY, nil)
	if err != nil {
		return nil, err
	}
	return &reader{Options: o, path: path, data: data}, nil
}
