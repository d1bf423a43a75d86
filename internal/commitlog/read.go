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

// A Commit is one line of the file. Records is valid only until the replay function returns.
type Commit struct {
	Format  string // file format
	Records []byte // JSON objects separated by commas; empty in an empty commit
}

// A Report is the result of [Check].
type Report struct {
	Format  string
	Size    int64  // bytes
	Commits int    // number of valid commits, including empty ones
	Torn    string // describes an interrupted write at the end; empty if the file is clean
}

// Check reads a file like [Open]. It takes no lock and changes nothing. If the end isn't clean, a server may
// be writing, so Check looks again for up to 100 ms.
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
		Size:    r.end.offset + int64(len(r.rest)),
		Commits: r.line - firstCommitLine,
		Torn:    r.torn,
	}, nil
}

// A tail is the state at the end of a file, where the next commit goes.
type tail struct {
	salt   uint32 // checksum of the salt
	n      uint64 // number of the last commit
	empty  bool   // the last commit has no records
	offset int64  // end of the last commit, where the closing bracket begins
}

const firstCommitLine = 3 // line number

// A reader reads the valid lines of a file and judges the rest.
type reader struct {
	path    string
	file    io.ReaderAt
	formats []string
	replay  func(Commit) error

	format     string
	snapCommit uint64 // number of the empty commit that ends the snapshot

	end        tail   // after the valid lines
	line       int    // number of the first line of the rest, counted from 1
	lastOffset int64  // beginning of the last valid line after the snapshot, or end of the snapshot
	rest       []byte // at most maxTornWrite+1 bytes
	torn       string // describes the rest; empty if it is the closing bracket
}

// read reads the valid lines and judges the rest. Another call continues after the valid lines.
func (r *reader) read() error {
	if r.line < firstCommitLine {
		err := r.readHeader()
		if err != nil {
			return err
		}
	}
	lines := bufio.NewScanner(io.NewSectionReader(r.file, r.end.offset, math.MaxInt64-r.end.offset))
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
	r.rest, err = io.ReadAll(io.NewSectionReader(r.file, r.end.offset, maxTornWrite+1))
	if err != nil {
		return err
	}
	return r.judgeRest()
}

// splitLine is a [bufio.SplitFunc]. It keeps line feeds and ignores an unfinished last line.
func splitLine(data []byte, _ bool) (advance int, line []byte, err error) {
	end := bytes.IndexByte(data, '\n') + 1
	if end == 0 {
		return 0, nil, nil
	}
	return end, data[:end], nil
}

// readHeader reads the header.
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
	r.end.offset = int64(len(opening))
	h, newer, ok := parseHeader(text, r.formats)
	if newer {
		return fmt.Errorf("%s: %w: it has format %q, but this version reads only %s: use a newer version",
			r.path, ErrFormat, h.format, strings.Join(r.formats, ", "))
	}
	if !ok {
		return r.damage("the header is invalid")
	}
	r.format, r.snapCommit = h.format, h.snapCommit
	r.end = tail{salt: h.saltSum(), n: h.n, offset: int64(len(h.text()))}
	r.line = firstCommitLine
	return nil
}

// accept replays a line, including its comma and line feed, if the checksum is valid. A valid line that isn't
// the next commit is damage, because no write put it there.
func (r *reader) accept(line []byte) (ok bool, err error) {
	commit, comma := bytes.CutPrefix(line[:len(line)-1], []byte(","))
	if !comma || !hasValidChecksum(commit, r.end.salt) {
		return false, nil
	}
	n, records, ok := parseLine(commit)
	if !ok || n != r.end.n+1 {
		return false, r.damage(fmt.Sprintf("the checksum is valid, but this is not commit %d", r.end.n+1))
	}
	err = r.replay(Commit{Format: r.format, Records: records})
	if err != nil {
		return false, r.damage(err.Error())
	}
	r.end.n = n
	r.end.empty = len(records) == 0
	r.line++
	r.lastOffset = r.end.offset
	r.end.offset += int64(len(line))
	if n == r.snapCommit {
		r.lastOffset = r.end.offset
	}
	return true, nil
}

// lineHead matches the beginning of a line, whether or not the line is valid.
var lineHead = regexp.MustCompile(`\{"c":"[0-9a-f]{8}","n":([0-9]+),`)

// judgeRest decides whether the rest, which follows the last valid commit N, is clean (r.torn is empty), a
// torn write (r.torn describes it) or damage (an error).
//
// Each commit is written after the previous one was synced. So a crash while commit N+1 is written leaves all
// commits up to N. After them, it leaves some blocks of commit N+1 and of the closing bracket, and between
// them the old content of the disk: zeros, stale commits from before a rewrite, with lower numbers and
// another salt, or an earlier N+1 that was undone. A crash never leaves
//
//   - a commit with a number above N+1, not even the beginning of its line, {"c":"8hex","n":M,
//   - a second copy of a commit up to N
//   - a gap in the snapshot
//
// If commit 44 is the last valid one, and the snapshot ends at it or before:
//
//	]                                      clean
//	(nothing), or ] without its line feed  the closing bracket is missing
//	,{"c":"0123abcd","n":45,"w":[{"ev      a torn write
//	(zeros)ent":{…}}]}                     a torn write
//	,{"c":"0123abcd","n":45,"w":[{"EVENT": damage, because a later line follows:
//	,{"c":"4567cdef","n":46,"w":[]}        commit 45 was durable before 46 was written
//
// Close and Open append an empty commit so that there is such a line 46. If a process was killed and the file
// wasn't opened since, damage to its last commit looks like a torn write.
func (r *reader) judgeRest() error {
	r.torn = ""
	complete := r.end.n >= r.snapCommit
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
		if n > r.end.n+1 || n <= r.end.n && hasValidChecksum(line, r.end.salt) {
			later++
		}
	}
	reason := ""
	switch {
	case later > 0:
		reason = fmt.Sprintf("this line is invalid, but later commits follow it (%d found)", later)
	case !complete:
		reason = fmt.Sprintf("this line is invalid, but all commits up to %d were durable", r.snapCommit)
	case len(r.rest) > maxTornWrite:
		reason = "this line is invalid, and more follows than one write can leave"
	default:
		r.torn = fmt.Sprintf("a torn write of %d bytes at line %d, byte %d",
			len(r.rest), r.line, r.end.offset)
		return nil
	}
	return r.damage(reason)
}

// damage returns the error for the first invalid line.
func (r *reader) damage(reason string) error {
	return fmt.Errorf("%s %w at line %d, byte %d: %s; the file is unchanged: restore a backup",
		r.path, ErrDamaged, r.line, r.end.offset, reason)
}
