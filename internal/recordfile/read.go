package recordfile

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A Report tells what [Read] or [Salvage] found.
type Report struct {
	Size        int64  // of the file, in bytes
	Lines       int    // commits that verify
	First, Last uint64 // their numbers
	Snap        uint64 // the number that ends the snapshot
	Torn        int64  // bytes of a write that was not finished
	Busy        bool   // the file changed while it was read: a server is writing
	Repair      string // what Open would repair; empty where there is nothing
	Skipped     []Span // of Salvage
}

// A Span is a part of a file that does not verify.
type Span struct {
	Line   int   // the first, counted from 1
	Offset int64 // where it begins, in bytes
	Bytes  int64 // its length; 0 where commits are missing
	Why    string
}

// Read reads the file by the rules of [Open], without a lock, and changes
// nothing. A server may be writing at the same time: an end that is not
// clean is looked at again, until it is or has stayed so for about 100 ms.
func Read(path string, o Options, replay func(records string) error) (Report, error) {
	o.setDefaults()
	f, path, err := openToRead(path, o)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	s := scan{path: path, format: o.Format, replay: replay}
	err = s.load(f, o.Progress)
	if err != nil {
		return s.report(), err
	}
	torn, repair, err := s.judge()
	busy := false
	for look := 0; look < 10 && (repair != "" || err != nil) && len(s.rest()) <= maxTail; look++ {
		time.Sleep(10 * time.Millisecond)
		before := s.rest()
		if err := s.load(f, func(int64, int64) {}); err != nil {
			return s.report(), err
		}
		busy = busy || s.rest() != before
		torn, repair, err = s.judge()
	}
	r := s.report()
	r.Torn, r.Busy, r.Repair = int64(len(torn)), busy, repair
	if busy && repair != "" {
		r.Repair = "a server is writing: " + repair
	}
	return r, err
}

func openToRead(path string, o Options) (file, string, error) {
	path, err := o.fs.Resolve(path)
	if err != nil {
		return nil, path, explain(err)
	}
	f, err := o.fs.Open(path, false)
	return f, path, explain(err)
}

// scan takes the lines of a file while they are right.
type scan struct {
	checker
	path    string
	format  string
	replay  func(string) error
	head    header
	size    int64
	base    int64  // where text begins in the file
	text    string // what was read
	pos     int    // of the first line not taken
	line    int    // its number
	n       uint64 // of the last line taken
	snapEnd int64
}

func (s *scan) offset() int64 { return s.base + int64(s.pos) }
func (s *scan) rest() string  { return s.text[s.pos:] }

func (s *scan) report() Report {
	return Report{Size: s.size, Lines: int(s.n - s.head.n), First: s.head.n + 1, Last: s.n, Snap: s.head.snap}
}

// load reads what follows the lines taken and takes its lines: while one chunk
// is replayed, the next ones are read and verified. The size is that of the
// beginning: behind it a server may be writing.
func (s *scan) load(f file, progress func(done, total int64)) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	s.size = info.Size()
	s.base, s.text, s.pos = s.offset(), "", 0
	type verified struct {
		lines []line
		done  int64
	}
	ahead := make(chan verified, 4)
	v := verifier{scan: s, n: s.n}
	var readErr error
	go func() {
		defer close(ahead)
		readErr = read(f, s.base, s.size, func(text string, done int64) error {
			s.text = text
			lines, err := v.verify(text)
			if err == nil {
				ahead <- verified{lines, done}
			}
			return err
		})
	}()
	for chunk := range ahead {
		progress(chunk.done, s.size)
		for _, l := range chunk.lines {
			if err == nil {
				err = s.take(l)
			}
		}
	}
	if err == nil {
		err = readErr
	}
	return err
}

// read gives each what was read so far, all of it parts of one string. What
// each refuses at the beginning takes no memory for the rest.
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

// line is one that is whole and right.
type line struct {
	n       uint64
	records string
	size    int // in bytes, with its line end
}

// verifier goes ahead of a scan, of which it sets the header and its salt.
type verifier struct {
	*scan
	pos   int
	n     uint64
	stuck bool // the line at pos is whole and wrong
}

// verify returns those lines of the text that are right and were not in an
// earlier, shorter one.
func (v *verifier) verify(text string) (lines []line, err error) {
	if v.head.salt == "" {
		if v.head, v.pos, err = parseHeader(v.path, text, v.format); err != nil {
			return nil, err
		}
		v.salt, v.n = v.head.salted(), v.head.n
		lines = append(lines, line{n: v.n, size: v.pos})
	}
	for !v.stuck {
		text, _, whole := strings.Cut(text[v.pos:], "\n")
		if !whole {
			break
		}
		n, records, ok := v.commit(text)
		if v.stuck = !ok || n != v.n+1; v.stuck {
			break
		}
		v.n, v.pos = n, v.pos+len(text)+1
		lines = append(lines, line{n, records, len(text) + 1})
	}
	return lines, nil
}

// take replays a line; the first one is the header.
func (s *scan) take(l line) error {
	if s.line == 0 {
		s.line = 2
	} else if s.replay != nil {
		if err := s.replay(l.records); err != nil {
			damage := s.damage(err.Error())
			damage.Err = err
			return damage
		}
	}
	s.n = l.n
	s.line++
	s.pos += l.size
	if l.n == s.head.snap {
		s.snapEnd = s.offset()
	}
	return nil
}

// judge tells what is wrong with what follows the lines taken: nothing, or
// something that one unfinished write can have left and that is to be repaired,
// or damage. torn is what is to be put aside.
func (s *scan) judge() (torn, repair string, err error) {
	rest := s.rest()
	switch {
	case s.n < s.head.snap:
		return "", "", s.damage(fmt.Sprintf("%s, but all up to commit %d was durable", s.why(), s.head.snap))
	case rest == closing:
		return "", "", nil
	case rest == "" || rest == "]":
		return "", "the closing bracket was missing", nil
	case len(rest) > maxTail:
		return "", "", s.damage(s.why() + ", and more follows than one write can have left")
	}
	for segment := range strings.SplitSeq(rest, "\n") {
		start, n, _, ok := s.find(segment)
		if !ok || n == s.n+1 {
			continue
		}
		reason := s.why()
		if start > 1 || !strings.HasPrefix(rest, segment) {
			reason += fmt.Sprintf(", but commit %d follows", n)
		}
		return "", "", s.damage(reason)
	}
	return rest, fmt.Sprintf("the last write is not whole: %d bytes at line %d, byte %d", len(rest), s.line, s.offset()), nil
}

func (s *scan) damage(reason string) *DamageError {
	return &DamageError{File: s.path, Line: s.line, Offset: s.offset(), Reason: reason}
}

// why is what keeps the line at pos from being taken.
func (s *scan) why() string {
	line, _, whole := strings.Cut(s.rest(), "\n")
	n, _, ok := s.commit(line)
	switch {
	case !whole && line == "" || whole && line == "]":
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
