package recordfile

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Line is one commit as it stands in the file.
type Line struct {
	Format  string // of the file
	Number  int    // of the line in the file, counted from 1
	Offset  int64  // where it begins, in bytes
	Size    int64  // of the file, in bytes
	Records string // JSON objects joined by commas
}

// readLines reads the file from r.end to the size that it has now: a server may be writing
// after that. It accepts the lines that are whole and right. What follows them is the rest, of
// which no more is read than shows that it is too long for an unfinished write.
func (r *reader) readLines() error {
	info, err := r.data.Stat()
	if err != nil {
		return err
	}
	r.size = max(r.end, info.Size())
	unread := r.size - r.end
	in := bufio.NewReaderSize(io.NewSectionReader(r.data, r.end, unread), int(min(unread, maxUnfinished)))
	for {
		text, err := in.ReadSlice('\n')
		if err != nil && err != io.EOF && err != bufio.ErrBufferFull {
			return err
		}
		line := string(text)
		accepted, err := r.accept(line)
		if err != nil {
			return err
		}
		if !accepted {
			more, err := io.ReadAll(io.LimitReader(in, int64(maxUnfinished+1-len(line))))
			r.rest = line + string(more)
			return err
		}
	}
}

// reader reads a file: the lines that are right so far, and what follows them.
type reader struct {
	Options
	path   string           // absolute, symbolic links resolved
	data   handle           // the file at path
	replay func(Line) error // takes each commit
	buf    []byte           // a line whose checksum is looked at; kept for its memory

	header
	tail          // of the lines that are right so far
	line    int   // the number of the line after them, as Line counts
	snapEnd int64 // where the snapshot ends
	unsettled
}

// unsettled is what was read of a file and has still to be made durable or right.
type unsettled struct {
	rest   string // what follows the last commit: the closing bracket, or an unfinished write
	repair string // what is wrong with the rest, in words; empty if it is clean
}

// accept accepts a line if it is whole, right and the next commit. A line with a right checksum
// that is not the next commit was never written there: it is damage.
func (r *reader) accept(line string) (accepted bool, err error) {
	text, whole := strings.CutSuffix(line, "\n")
	commit, comma := strings.CutPrefix(text, ",")
	if !whole || !comma || !r.verifies(commit) {
		return false, nil
	}
	n, records, ok := parseCommit(commit)
	if !ok || n != r.n+1 {
		return false, r.damage(fmt.Sprintf("the checksum is right, but this is not commit %d", r.n+1))
	}
	err = r.replay(Line{r.format, r.line, r.end, r.size, records})
	if err != nil {
		return false, r.damage(err.Error())
	}
	r.n = n
	r.empty = records == ""
	r.line++
	r.end += int64(len(line))
	if n == r.snap {
		r.snapEnd = r.end
	}
	return true, nil
}

// lineHead is how a line begins, whether or not it verifies.
var lineHead = regexp.MustCompile(`\{"c":"[0-9a-f]{8}","n":([0-9]+),`)

// judgeRest says whether the rest, which is what follows the last commit N that was
// accepted, is clean (r.repair is empty), is what one unfinished write can have left
// (r.repair says what), or is damage (an error). N is a commit's number, not a line's.
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
func (r *reader) judgeRest() error {
	r.repair = ""
	complete := r.n >= r.snap
	if complete && strings.HasPrefix(closing, r.rest) {
		if r.rest != closing {
			r.repair = "the closing bracket was missing"
		}
		return nil
	}
	later := 0
	for _, at := range lineHead.FindAllStringSubmatchIndex(r.rest, -1) {
		n, _ := strconv.ParseUint(r.rest[at[2]:at[3]], 10, 64) // with an error: the greatest number
		line, _, _ := strings.Cut(r.rest[at[0]:], "\n")
		if n > r.n+1 || n <= r.n && r.verifies(line) {
			later++
		}
	}
	tooLong := len(r.rest) > maxUnfinished
	reason := fmt.Sprintf("%d later commits follow", later)
	switch {
	case later > 0 && tooLong: // the rest was not read to its end
		reason = "at least " + reason
	case later == 1:
		reason = "a later commit follows"
	case later > 1:
	case !complete:
		reason = fmt.Sprintf("all up to commit %d was durable", r.snap)
	case tooLong:
		reason = "more follows than one write can have left"
	default:
		r.repair = fmt.Sprintf("the last write is not whole: %d bytes at line %d, byte %d",
			len(r.rest), r.line, r.end)
		return nil
	}
	return r.damage(fmt.Sprintf("line %d is wrong, and %s", r.line, reason))
}

// damage is the error for the first line that was not accepted.
func (r *reader) damage(reason string) *DamageError {
	return &DamageError{File: r.path, Line: r.line, Offset: r.end, Reason: reason}
}
