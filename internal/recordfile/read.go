package recordfile

import (
	"os"
	"time"
)

// A Report says what [Read] found.
type Report struct {
	File        string // its absolute path, symbolic links resolved
	Size        int64  // of the file, in bytes
	Lines       int    // commits that verify
	First, Last uint64 // their numbers
	Snap        uint64 // the number that ends the snapshot
	Repair      string // what File.Settle would repair; empty if there is nothing
}

// Read reads the file by the rules of [Open], takes no lock and changes nothing.
// A server may be writing at the same time. So an end that is not clean is looked
// at again until it is clean, for at most about 100 ms.
func Read(path string, o Options, replay func(Line) error) (r Report, err error) {
	c := content{Options: o, replay: replay}
	err = c.openToRead(path)
	defer closeAll(c.data)
	if err != nil {
		return r, err
	}
	for range 11 {
		err = c.readLines(c.accept)
		if err != nil {
			return r, err
		}
		err = c.judgeRest()
		if c.repair == "" && err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return Report{c.path, c.size, c.line - 3, c.before + 1, c.n, c.snap, c.repair}, err
}

// openToRead opens a file that a server may be writing, and reads its header.
func (c *content) openToRead(path string) error {
	err := c.resolve(path)
	if err != nil {
		return err
	}
	return c.readHeader(os.O_RDONLY)
}
