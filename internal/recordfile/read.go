package recordfile

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Line is one commit as it stands in the file.
type Line struct {
	Number  int    // of the line in the file, counted from 1
	Offset  int64  // where it begins, in bytes
	Records string // JSON objects joined by commas; a part of the one string that the file was read into
}

// A Report says what [Read] or [Salvage] found.
type Report struct {
	Size        int64  // of the file, in bytes
	Lines       int    // commits that verify
	First, Last uint64 // their numbers
	Snap        uint64 // the number that ends the snapshot
	Repair      string // what File.Settle would repair; empty where there is nothing
	Skipped     []Span // of Salvage
}

// A Span is a part of a file that does not verify.
type Span struct {
	Line   int   // the first, counted from 1
	Offset int64 // where it begins, in bytes
	Bytes  int64 // its length; 0 where commits are missing
	Why    string
}

// Read reads the file by the rules of [Open], takes no lock and changes nothing.
// A server may be writing at the same time. So an end that is not clean is looked
// at again, until it is or has stayed so for about 100 ms.
func Read(path string, o Options, replay func(Line) error) (Report, error) {
	o.setDefaults()
	f, path, err := openToRead(path, o)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	s := scan{path: path, format: o.Format, replay: replay}
	err = s.load(f, o.Progress)
	repair := ""
	for look := 0; err == nil; look++ {
		if repair, err = s.judge(); repair == "" && err == nil || look == 10 {
			break
		}
		time.Sleep(10 * time.Millisecond)
		err = s.load(f, func(int64, int64) {})
	}
	return Report{Size: s.size, Lines: int(s.n - s.head.n), First: s.head.n + 1, Last: s.n, Snap: s.head.snap,
		Repair: repair}, err
}

func openToRead(path string, o Options) (file, string, error) {
	path, err := o.fs.Resolve(path)
	if err != nil {
		return nil, path, explain(err)
	}
	f, err := o.fs.Open(path, false)
	return f, path, explain(err)
}

// scan takes the lines of a file, in order, while they are right.
type scan struct {
	checker
	path    string
	format  string
	replay  func(Line) error
	head    header
	size    int64
	base    int64  // where text begins in the file
	text    string // what was read
	pos     int    // where in text the first line that was not taken begins
	line    int    // the number of that line in the file; 0 before the header
	n       uint64 // the number of the last commit that was taken
	empty   bool   // that commit holds no records
	snapEnd int64  // where the snapshot ends in the file
}

func (s *scan) offset() int64 { return s.base + int64(s.pos) }
func (s *scan) rest() string  { return s.text[s.pos:] }

// load reads what follows the lines that were taken, up to the size that the file
// has now, and takes its lines: a server may be writing behind that. Text that no
// later byte can make right, because the rest is longer than any line, is not read
// to its end.
func (s *scan) load(f file, progress func(done, total int64)) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	s.size = info.Size()
	s.base, s.text, s.pos = s.offset(), "", 0
	return read(f, s.base, s.size, func(text string, done int64) error {
		s.text = text
		progress(done, s.size)
		err := s.walk()
		if err == nil && len(s.rest()) > maxTail {
			_, err = s.judge()
		}
		return err
	})
}

// read gives each what was read so far, all of it parts of one string. What each
// refuses at the beginning takes no memory for the rest.
func read(f file, from, to int64, each func(text string, done int64) error) error {
	var all strings.Builder
	buf := make([]byte, min(chunk, max(0, to-from)))
	for at := from; ; {
		n, err := f.ReadAt(buf[:max(0, min(chunk, to-at))], at)
		if err != nil && err != io.EOF {
			return err
		}
		at += int64(n)
		all.Write(buf[:n])
		if err := each(all.String(), at); err != nil || n == 0 || at == to {
			return err
		}
		all.Grow(int(to - at))
	}
}

// walk takes the lines that are whole and right. It stops at the first that is not.
func (s *scan) walk() (err error) {
	if s.line == 0 {
		if s.head, s.pos, err = parseHeader(s.path, s.text, s.format); err != nil {
			return err
		}
		s.salt, s.n, s.line = s.head.salted(), s.head.n, 3
	}
	for {
		line, _, whole := strings.Cut(s.rest(), "\n")
		if !whole {
			return nil
		}
		n, records, ok := s.commit(line)
		if !ok || n != s.n+1 {
			return nil
		}
		if s.replay != nil {
			if err := s.replay(Line{s.line, s.offset(), records}); err != nil {
				return s.refused(err)
			}
		}
		s.n, s.empty = n, records == ""
		s.line++
		s.pos += len(line) + 1
		if n == s.head.snap {
			s.snapEnd = s.offset()
		}
	}
}

// refused is the error for a line that replay refused.
func (s *scan) refused(err error) error {
	damage, ok := errors.AsType[*DamageError](err)
	if !ok {
		damage = s.damage(err.Error())
		damage.Err = err
	}
	damage.File = s.path
	return damage
}

// judge says whether the rest, which is what follows the last line N that was
// taken, is clean (repair is empty), is what one unfinished write can have left
// (repair says what), or is damage (err).
//
// Each line is written after the one before it was synced. So a crash while line
// N+1 is written leaves all lines up to N and, behind them, blocks of line N+1 in
// any order, blocks of the closing bracket, and whatever the disk held in their
// place: zeros, lines of an older life of the file, which have lower numbers and
// another salt, or an earlier N+1 that was undone. It leaves no line with a number
// of N+2 or more, not even the head of one, {"c":"8hex","n":M, with M above N+1.
// It leaves no line up to N once more, and no gap in what a rewrite wrote. Where
// line 44 is the last that was taken, and the snapshot ends at it or before:
//
//	]                                      clean
//	(nothing), or ] without its line end   the closing bracket is missing
//	,{"c":"0123abcd","n":45,"w":[{"ev      an unfinished write
//	(zeros)ent":{…}}]}                     an unfinished write
//	,{"c":"0123abcd","n":45,"w":[{"EVENT": damage, with the line that follows:
//	,{"c":"4567cdef","n":46,"w":[]}        line 45 was durable before 46 was written
//
// So that there is such a line behind the last records, [File.Close] adds an empty
// commit, and [File.Settle] does where a crash kept Close from it. Of a process
// that did not end well, damage to the last commit looks like an unfinished write.
func (s *scan) judge() (repair string, err error) {
	rest := s.rest()
	switch {
	case s.n < s.head.snap:
		return "", s.damage(fmt.Sprintf("%s, but all up to commit %d was durable", s.why(), s.head.snap))
	case rest == closing:
		return "", nil
	case !s.torn():
		return "the closing bracket was missing", nil
	case len(rest) > maxTail:
		return "", s.damage(s.why() + ", and more follows than one write can have left")
	}
	for _, at := range lineHead.FindAllStringSubmatchIndex(rest, -1) {
		n, _ := strconv.ParseUint(rest[at[2]:at[3]], 10, 64) // with an error: the greatest number
		if n > s.n+1 {
			return "", s.otherCommit(n, at[0])
		}
	}
	at := 0
	for segment := range strings.SplitSeq(rest, "\n") {
		before, n, _, ok := s.find(segment)
		if ok && n != s.n+1 {
			return "", s.otherCommit(n, at+len(before))
		}
		at += len(segment) + 1
	}
	return fmt.Sprintf("the last write is not whole: %d bytes at line %d, byte %d", len(rest), s.line, s.offset()), nil
}

// otherCommit is the error for a commit in the rest that no crash leaves there.
func (s *scan) otherCommit(n uint64, at int) error {
	reason := s.why()
	if at > len(",") { // behind the line that reason is about
		reason += fmt.Sprintf(", but commit %d follows at byte %d", n, s.offset()+int64(at))
	}
	return s.damage(reason)
}

// torn reports whether the rest is more than a closing bracket or a part of it, so
// that it is put aside before it is cut.
func (s *scan) torn() bool { return !strings.HasPrefix(closing, s.rest()) }

func (s *scan) damage(reason string) *DamageError {
	return &DamageError{File: s.path, Line: s.line, Offset: s.offset(), Reason: reason}
}

// why says what kept the line at pos from being taken.
func (s *scan) why() string {
	line, _, whole := strings.Cut(s.rest(), "\n")
	n, _, ok := s.commit(line)
	switch {
	case !s.torn():
		return "the commits end here"
	case !whole:
		return "the file ends within the line"
	case ok:
		return fmt.Sprintf("this is commit %d and not %d", n, s.n+1)
	case strings.HasSuffix(line, "\r"):
		return "the line ends with CR LF, so it was edited"
	case !strings.HasPrefix(line, `,{"c":"`):
		return "the line does not begin like a commit"
	}
	return "the line's checksum is wrong"
}
