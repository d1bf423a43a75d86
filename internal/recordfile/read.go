package recordfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Line is one commit as it stands in the file.
type Line struct {
	Format  string // of the file
	Number  int    // of the line in the file, counted from 1
	Offset  int64  // where it begins, in bytes
	Size    int64  // of the file, in bytes
	Records string // JSON objects joined by commas; a part of the text that the file was read into
}

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
func Read(path string, o Options, replay func(Line) error) (Report, error) {
	f, path, err := openToRead(path, &o)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	s := scan{path: path, formats: o.Formats, replay: replay}
	err = s.load(f)
	repair := ""
	for look := 0; err == nil; look++ {
		if repair, err = s.judge(); repair == "" && err == nil || look == 10 {
			break
		}
		time.Sleep(10 * time.Millisecond)
		repair, err = "", s.load(f)
	}
	return Report{Format: s.head.format, Size: s.size, Lines: int(s.n - s.head.n),
		First: s.head.n + 1, Last: s.n, Snap: s.head.snap, Repair: repair}, err
}

func openToRead(path string, o *Options) (file, string, error) {
	o.setDefaults()
	path, err := o.fs.Resolve(path)
	if err != nil {
		return nil, path, err
	}
	f, err := o.fs.Open(path, os.O_RDONLY)
	return f, path, err
}

// read reads the file in chunks, beginning at the offset from, up to the size that the
// file has now: a server may be writing after that. After each chunk it calls the
// function each with all of the text so far. While that call works, the next chunk is
// read. Only the first call is waited for, so that a file which is refused at its
// beginning takes no memory for the rest.
func read(f file, from int64, each func(text string, size int64) error) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var all strings.Builder
	buf := make([]byte, min(chunk, max(0, info.Size()-from)))
	// What each returned for the chunk before. It is received before anything else is
	// done with that chunk, and before read returns. Writing on behind the text that each
	// looks at does not change that text.
	looked := make(chan error, 1)
	looked <- nil
	for {
		left := max(0, info.Size()-from-int64(all.Len()))
		n, err := f.ReadAt(buf[:min(chunk, left)], from+int64(all.Len()))
		all.Write(buf[:n])
		if refused := <-looked; refused != nil || err != nil && err != io.EOF {
			return cmp.Or(refused, err)
		}
		go func(text string) { looked <- each(text, info.Size()) }(all.String())
		if last := n == 0 || int64(n) == left; last || all.Len() == n {
			if err := <-looked; err != nil || last {
				return err
			}
			looked <- nil
			all.Grow(int(left) - n)
		}
	}
}

// scan accepts the lines of a file, in order, while they are right.
type scan struct {
	checker
	path    string
	formats []string
	replay  func(Line) error
	head    header
	size    int64
	base    int64  // where text begins in the file
	text    string // what was read
	pos     int    // where in text the first line that was not accepted begins
	line    int    // the number of that line: 1 is the bracket, 2 the header; 0 before both are accepted
	n       uint64 // the number of the last commit that was accepted
	empty   bool   // that commit holds no records
	snapEnd int64  // where the snapshot ends in the file
}

func (s *scan) offset() int64 { return s.base + int64(s.pos) }
func (s *scan) rest() string  { return s.text[s.pos:] }

// load reads what follows the lines that were accepted, and accepts more. A rest that
// no later byte can make right, because it is longer than any line, is not read to
// its end.
func (s *scan) load(f file) error {
	s.base, s.pos = s.offset(), 0
	return read(f, s.base, func(text string, size int64) error {
		s.text, s.size = text, size
		err := s.walk()
		if err == nil && len(s.rest()) > maxUnfinished {
			_, err = s.judge()
		}
		return err
	})
}

// walk accepts the lines that are whole and right. It stops at the first that is not. A
// line with a right checksum that is not the next commit was never written there.
func (s *scan) walk() (err error) {
	if s.line == 0 {
		if s.head, s.pos, err = parseHeader(s.path, s.text, s.formats); err != nil {
			return err
		}
		s.salt, s.n, s.line = s.head.saltSum(), s.head.n, 3
	}
	for {
		text, _, whole := strings.Cut(s.rest(), "\n")
		line, comma := strings.CutPrefix(text, ",")
		if !whole || !comma || !s.verifies(line) {
			return nil
		}
		n, records, ok := parts(line)
		if !ok || n != s.n+1 {
			return s.damage("the checksum is right, but this is not commit %d", s.n+1)
		}
		if err := s.replay(Line{s.head.format, s.line, s.offset(), s.size, records}); err != nil {
			return s.damage("%v", err)
		}
		s.n, s.empty = n, records == ""
		s.line++
		s.pos += len(text) + 1
		if n == s.head.snap {
			s.snapEnd = s.offset()
		}
	}
}

// judge says whether the rest, which is what follows the last commit N that was
// accepted, is clean (repair is empty), is what one unfinished write can have left
// (repair says what), or is damage (err). N is a commit's number, not a line's.
//
// Each commit is written after the one before it was synced. So a crash while commit
// N+1 is written leaves all commits up to N and, after them, blocks of commit N+1 in
// any order, blocks of the closing bracket, and whatever the disk held in their
// place: zeros, commits of an older generation of the file, which have lower numbers
// and another salt, or an earlier N+1 that was undone. It leaves no commit with a
// number of N+2 or more, not even the head of one, {"c":"8hex","n":M, with M above
// N+1. It leaves no second copy of a commit up to N, and no gap in what a rewrite wrote.
// If commit 44 is the last that was accepted, and the snapshot ends at it or before:
//
//	]                                      clean
//	(nothing), or ] without its line end   the closing bracket is missing
//	,{"c":"0123abcd","n":45,"w":[{"ev      an unfinished write
//	(zeros)ent":{…}}]}                     an unfinished write
//	,{"c":"0123abcd","n":45,"w":[{"EVENT": damage, with the line that follows:
//	,{"c":"4567cdef","n":46,"w":[]}        commit 45 was durable before 46 was written
//
// So that there is such a commit after the last records, [File.Close] adds an empty
// one, and [File.Settle] does if a crash kept Close from it. If the process did not
// end well, damage to the last commit looks like an unfinished write.
func (s *scan) judge() (repair string, err error) {
	rest := s.rest()
	missing := fmt.Sprintf("commit %d is missing here or was changed", s.n+1)
	switch {
	case s.n < s.head.snap:
		return "", s.damage("%s, but all up to commit %d was durable", missing, s.head.snap)
	case rest == closing:
		return "", nil
	case strings.HasPrefix(closing, rest):
		return "the closing bracket was missing", nil
	case len(rest) > maxUnfinished:
		return "", s.damage("%s, and more follows than one write can have left", missing)
	}
	for _, at := range lineHead.FindAllStringSubmatchIndex(rest, -1) {
		n, _ := strconv.ParseUint(rest[at[2]:at[3]], 10, 64) // with an error: the greatest number
		line, _, _ := strings.Cut(rest[at[0]:], "\n")
		if n > s.n+1 || n <= s.n && s.verifies(line) {
			return "", s.damage("%s, but commit %d stands at byte %d, where no crash leaves it",
				missing, n, s.offset()+int64(at[0]))
		}
	}
	return fmt.Sprintf("the last write is not whole: %d bytes at line %d, byte %d",
		len(rest), s.line, s.offset()), nil
}

// damage is the error for the first line that was not accepted.
func (s *scan) damage(format string, args ...any) *DamageError {
	return &DamageError{s.path, s.line, s.offset(), fmt.Sprintf(format, args...)}
}

// A Span is a part of a file that does not verify.
type Span struct {
	Line          int // the first, counted from 1
	Offset, Bytes int // where it begins, and its length
}

// A damaged header may still show the salt.
var saltForm = regexp.MustCompile(`"salt":"([0-9a-f]{16})"`)

// Salvage reads a damaged file, takes no lock and changes nothing. It calls each with
// the records of every commit that verifies, wherever it stands, in the order of the
// file. It returns the parts that do not verify; parts that follow one another are one.
// It also returns how many commits are missing by the numbers of the others and of the
// header. Others that were at the end of the file may be missing, too, and others at its
// beginning if the header is damaged. If it is, the salt that it still shows is used, if
// lines verify with it. A commit that stands twice counts once.
func Salvage(path string, o Options, each func(string) error) (skipped []Span, missing int, err error) {
	f, path, err := openToRead(path, &o)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	var text string
	err = read(f, 0, func(t string, _ int64) error {
		text = t
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	h, _, headerErr := parseHeader(path, text, o.Formats)
	if headerErr != nil {
		salt := saltForm.FindStringSubmatch(text)
		if salt == nil || !errors.Is(headerErr, ErrDamaged) {
			return nil, 0, headerErr
		}
		h = header{salt: salt[1]}
	}
	c, unsalted := checker{salt: h.saltSum()}, checker{}                    // the latter for the header
	first, last, seen, number, at := h.n+1, h.snap, map[uint64]bool{}, 0, 0 // the first three are of commits
	for rest := range strings.SplitAfterSeq(text, "\n") {
		number++
		begin := at
		at += len(rest)
		line := c.find(rest)
		if n, records, ok := parts(line); ok && c.verifies(line) {
			if headerErr != nil && (len(seen) == 0 || n < first) {
				first = n
			}
			last, seen[n] = max(last, n), true
			if err := each(records); err != nil {
				return skipped, 0, err
			}
			rest, _, _ = strings.Cut(rest, line)
		}
		wrong := strings.Trim(rest, around)
		if wrong == "" || wrong == "[" || wrong == "]" || unsalted.verifies(wrong) {
			continue
		}
		if n := len(skipped); n > 0 && skipped[n-1].Offset+skipped[n-1].Bytes == begin {
			skipped[n-1].Bytes += len(rest)
		} else {
			skipped = append(skipped, Span{number, begin, len(rest)})
		}
	}
	if len(seen) == 0 && headerErr != nil {
		return nil, 0, headerErr
	}
	return skipped, max(0, int(last-first)+1-len(seen)), nil
}
