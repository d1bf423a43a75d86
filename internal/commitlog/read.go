package commitlog

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A Commit is one line of the file. Records is valid only during the call of the function that it is passed
// to.
type Commit struct {
	Format  string // format of the file
	Records []byte // JSON objects separated by commas; empty in an empty commit
}

// A Report describes a file that [Check] has read.
type Report struct {
	Format  string
	Size    int64  // bytes
	Commits int    // number of valid commits, including empty ones
	Torn    string // what an interrupted write left at the end; empty if the file is clean
}

// Check reads the file at path as [Open] does, but takes no lock and changes nothing. If the end of the
// file isn't clean, Check reads it again, for at most 100 ms, because a server may be writing it.
func Check(path string, o Options, replay func(Commit) error) (Report, error) {
	o = o.withDefaults()
	path, err := o.fs.Resolve(path)
	if err != nil {
		return Report{}, err
	}
	f, err := o.fs.Open(path)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	r := reader{path: path, file: f, formats: o.Formats, replay: replay}
	// An end that a server is writing is clean a moment later, and an end that a crash has left never is.
	const attempts, interval = 10, 10 * time.Millisecond
	for range attempts {
		err = r.read()
		if err == nil && r.torn == "" {
			break
		}
		time.Sleep(interval)
	}
	if err != nil {
		return Report{}, err
	}
	return Report{
		Format:  r.format,
		Size:    r.offset + int64(len(r.rest)),
		Commits: r.line - firstCommit,
		Torn:    r.torn,
	}, nil
}

// A tail is everything about a file that the next commit depends on.
type tail struct {
	salt   uint32 // checksum of the salt
	n      uint64 // number of the last commit
	empty  bool   // whether the last commit has no records
	offset int64  // end of the last commit, where the closing bracket begins
}

const firstCommit = 3 // number of its line

// A reader reads a file: the valid lines, and the rest after them.
type reader struct {
	path    string
	file    io.ReaderAt
	formats []string
	replay  func(Commit) error

	format string
	snap   uint64 // number of the empty commit that ends the snapshot

	tail           // of the valid lines
	line    int    // number of the line after them, counted from 1
	snapEnd int64  // offset of the end of the snapshot
	rest    []byte // everything after them, up to maxTornWrite+1 bytes
	torn    string // what is wrong with the rest; empty if it is the closing bracket
}

// read reads the valid lines and judges the rest. When it is called again, it goes on after the valid lines.
func (r *reader) read() error {
	if r.line < firstCommit {
		err := r.readHeader()
		if err != nil {
			return err
		}
	}
	lines := bufio.NewScanner(io.NewSectionReader(r.file, r.offset, math.MaxInt64-r.offset))
	lines.Buffer(make([]byte, 32<<10), maxTornWrite)
	lines.Split(splitLine)
	valid := true
	for valid && lines.Scan() {
		var err error
		valid, err = r.accept(lines.Bytes())
		if err != nil {
			return err
		}
	}
	err := lines.Err()
	if err != nil && err != bufio.ErrTooLong {
		return err
	}
	r.rest, err = io.ReadAll(io.NewSectionReader(r.file, r.offset, maxTornWrite+1))
	if err != nil {
		return err
	}
	return r.judgeRest()
}

// splitLine is a [bufio.SplitFunc] for lines with their line feeds. It leaves bytes after the last line feed.
func splitLine(data []byte, _ bool) (advance int, line []byte, err error) {
	end := bytes.IndexByte(data, '\n') + 1
	if end == 0 {
		return 0, nil, nil
	}
	return end, data[:end], nil
}

// readHeader reads the header, or returns the error for a file without one.
func (r *reader) readHeader() error {
	const maxHeader = 4 << 10 // bytes
	text, err := io.ReadAll(io.NewSectionReader(r.file, 0, maxHeader))
	if err != nil {
		return err
	}
	if len(text) == 0 {
		return fmt.Errorf("%s: %w: it is empty: restore a backup, or delete it to start without data",
			r.path, ErrFormat)
	}
	if !bytes.HasPrefix(text, []byte(opening+lineStart[:sumStart])) {
		return fmt.Errorf("%s: %w: no header at line 2, byte 2: choose another path, or restore a backup "+
			"as a -seed", r.path, ErrFormat)
	}
	r.line = 2
	r.offset = int64(len(opening))
	h, newer, ok := parseHeader(text, r.formats)
	if newer {
		return fmt.Errorf("%s: %w: it has format %q, this program reads up to %q: use a newer program",
			r.path, ErrFormat, h.format, r.formats[len(r.formats)-1])
	}
	if !ok {
		return r.damage("the header is invalid")
	}
	r.format, r.snap = h.format, h.snap
	r.tail = tail{salt: h.saltSum(), n: h.n, offset: int64(len(h.text()))}
	r.line = firstCommit
	return nil
}

// accept replays a line, with its comma and line feed, if its checksum is valid. A valid checksum on a line
// that isn't the next commit is damage, because such a line was never written there.
func (r *reader) accept(line []byte) (ok bool, err error) {
	commit, comma := bytes.CutPrefix(line[:len(line)-1], []byte(","))
	if !comma || !verifies(commit, r.salt) {
		return false, nil
	}
	n, records, ok := parseLine(commit)
	if !ok || n != r.n+1 {
		return false, r.damage(fmt.Sprintf("the checksum is valid, but this is not commit %d", r.n+1))
	}
	err = r.replay(Commit{Format: r.format, Records: records})
	if err != nil {
		return false, r.damage(err.Error())
	}
	r.n = n
	r.empty = len(records) == 0
	r.line++
	r.offset += int64(len(line))
	if n == r.snap {
		r.snapEnd = r.offset
	}
	return true, nil
}

// lineHead matches the beginning of a line, valid or not.
var lineHead = regexp.MustCompile(`\{"c":"[0-9a-f]{8}","n":([0-9]+),`)

// judgeRest decides whether the rest, which follows the last valid commit N, is clean (r.torn is
// empty), is a torn write (r.torn describes it), or is damage (an error).
//
// Each commit is written after the one before it was synced. So a crash while commit N+1 is written
// leaves all commits up to N and, after them, blocks of commit N+1 in any order, blocks of the
// closing bracket, and whatever the disk held in their place: zeros, stale commits from before
// a rewrite, which have lower numbers and another salt, or an earlier N+1 that was undone. It leaves
// no commit with a number of N+2 or more, not even the head of one, {"c":"8hex","n":M, with M above
// N+1. It leaves no second copy of a commit up to N, and no gap in the snapshot.
// If commit 44 is the last valid one, and the snapshot ends at it or before:
//
//	]                                      clean
//	(nothing), or ] without its line feed  the closing bracket is missing
//	,{"c":"0123abcd","n":45,"w":[{"ev      a torn write
//	(zeros)ent":{…}}]}                     a torn write
//	,{"c":"0123abcd","n":45,"w":[{"EVENT": damage, with the line that follows:
//	,{"c":"4567cdef","n":46,"w":[]}        commit 45 was durable before 46 was written
//
// Close and Open append an empty commit after the last records so that there is such a line 46. If a process
// was killed and the file not opened since, damage to its last commit looks like a torn write.
func (r *reader) judgeRest() error {
	r.torn = ""
	complete := r.n >= r.snap
	if complete && strings.HasPrefix(closing, string(r.rest)) {
		if len(r.rest) < len(closing) {
			r.torn = "the closing bracket is missing"
		}
		return nil
	}
	later := 0
	for _, match := range lineHead.FindAllSubmatchIndex(r.rest, -1) {
		n, _ := strconv.ParseUint(string(r.rest[match[2]:match[3]]), 10, 64) // the maximum if out of range
		line, _, _ := bytes.Cut(r.rest[match[0]:], []byte("\n"))
		if n > r.n+1 || n <= r.n && verifies(line, r.salt) {
			later++
		}
	}
	reason := ""
	switch {
	case later > 0:
		reason = fmt.Sprintf("this line is invalid, but later commits follow it (%d found)", later)
	case !complete:
		reason = fmt.Sprintf("this line is invalid, but all commits up to %d were durable", r.snap)
	case len(r.rest) > maxTornWrite:
		reason = "this line is invalid, and more follows than one write can leave"
	default:
		r.torn = fmt.Sprintf("a torn write of %d bytes at line %d, byte %d", len(r.rest), r.line, r.offset)
		return nil
	}
	return r.damage(reason)
}

// damage returns the error for the first line that isn't valid.
func (r *reader) damage(reason string) error {
	return fmt.Errorf("%s %w at line %d, byte %d: %s; nothing was changed: restore a backup",
		r.path, ErrDamaged, r.line, r.offset, reason)
}
