package recordfile

import (
	"os"
	"time"
)

// A Report says what [Read] found.
type Report struct {
	Format      string // one of Options.Formats
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
	c := content{replay: replay}
	f, err := c.openToRead(path, &o)
	if err != nil {
		return r, err
	}
	defer f.Close()
	err = c.readFrom(f, o.Formats)
	for look := 0; err == nil; look++ {
		r.Repair, err = c.judgeRest()
		if look == 10 || r.Repair == "" && err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
		r.Repair = ""
		err = c.readOn(f)
	}
	return Report{c.head.format, c.size, c.line - 3, c.head.n + 1, c.n, c.head.snap, r.Repair}, err
}

// openToRead opens a file that a server may be writing.
func (c *content) openToRead(path string, o *Options) (f handle, err error) {
	o.setDefaults()
	c.path, err = o.fs.Resolve(path)
	if err != nil {
		return nil, err
	}
	return o.fs.Open(c.path, os.O_RDONLY)
}
