package recordfile

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Line is one commit as it stands in the file.
type Line struct {
	Format  string // of the file
	Number  int    // of the line in the file, counted from 1
	Offset  int64  // where it begins, in bytes
	Size    int64  // of the file, in bytes; 0 if its end is zeros
	Records string // JSON objects joined by commas; a part of the text that the file was read into
}

// readLines reads the file from c.end to the size that it has now: a server may be
// writing after that. It hands the text to take in runs of whole lines; only what is
// longer than any right line, and the end of the file, may be a part of a line. While take
// works on one run, the next is read.
//
// All runs are parts of one string: one large piece of memory makes the garbage collector
// run less often. But something may have extended a good file by zeros, to more than any
// memory holds. Then a zero stands where a good file has a commit: before the most that one
// write can leave at the end. Each run of such a file is a string of its own.
func (c *content) readLines(take func(text string) error) error {
	info, err := c.data.Stat()
	if err != nil {
		return err
	}
	c.size = max(c.end, info.Size())
	c.rest = ""
	unread := c.size - c.end
	file := io.NewSectionReader(c.data, c.end, unread)
	buf := make([]byte, min(chunk, unread))
	probe := []byte{1}
	if c.size > maxUnfinished {
		c.data.ReadAt(probe, c.size-maxUnfinished-1) // an error is met again below
	}
	zeros := probe[0] == 0
	var text strings.Builder
	if zeros {
		c.size = 0 // it says nothing about what the file holds
	} else {
		text.Grow(int(unread))
	}
	handed := 0 // how much of the text take was given
	var taking sync.WaitGroup
	var refused error // by take
	for {
		n, err := file.Read(buf)
		text.Write(buf[:n])
		part := text.String()[handed:]
		end := strings.LastIndexByte(part, '\n') + 1
		if len(part)-end > maxUnfinished {
			end = len(part)
		}
		handed += end
		if zeros {
			text.Reset()
			text.WriteString(part[end:])
			handed = 0
		}
		taking.Wait()
		if refused != nil {
			return refused
		}
		if err != nil && err != io.EOF {
			return err
		}
		if n == 0 {
			return take(part)
		}
		taking.Go(func() { refused = take(part[:end]) })
	}
}

// content is what is known of a file: the lines that are right, and what follows them.
type content struct {
	Options
	header
	path     string           // absolute, symbolic links resolved
	data     handle           // the file at path; nil while there is none
	salt     uint32           // the checksum of the salt alone
	buf      []byte           // a line that is checked or written; kept for its memory
	replay   func(Line) error // takes each commit; nil once all are read
	n        uint64           // the number of the last commit
	empty    bool             // the last commit holds no records
	line     int              // the number of the line after it, as Line counts
	snapEnd  int64            // where the snapshot ends
	end      int64            // where the last commit ends and the closing bracket stands
	size     int64            // of the file, as it was read or as the last write left it
	appended []string         // the commits from snapEnd to end, as they were read, for Settle
	rest     string           // what follows end: the closing bracket, or an unfinished write
	repair   string           // what Settle has to repair, in words; empty if nothing is wrong
}

// resolve sets the path.
func (c *content) resolve(path string) (err error) {
	if c.fs == nil {
		c.fs = osFS{}
	}
	c.path, err = c.fs.Resolve(path)
	return err
}

// accept accepts the lines at the beginning of text that are whole and right, unless
// something before them was not. What follows them belongs to the rest. A line with a
// right checksum that is not the next commit was never written there: it is damage.
func (c *content) accept(text string) error {
	appended := text
	for c.rest == "" {
		line, after, whole := strings.Cut(text, "\n")
		commit, comma := strings.CutPrefix(line, ",")
		if !whole || !comma || !c.verifies(commit) {
			break
		}
		n, records, ok := parseCommit(commit)
		if !ok || n != c.n+1 {
			return c.damage(fmt.Sprintf("the checksum is right, but this is not commit %d", c.n+1))
		}
		err := c.replay(Line{c.format, c.line, c.end, c.size, records})
		if err != nil {
			return c.damage(err.Error())
		}
		text = after
		c.n = n
		c.empty = records == ""
		c.line++
		c.end += int64(len(line)) + 1
		if n == c.snap {
			c.snapEnd = c.end
			appended = after
		}
	}
	if c.n >= c.snap {
		c.appended = append(c.appended, appended[:len(appended)-len(text)])
	}
	c.rest += text // no later byte makes a rest right that is longer than any line
	if len(c.rest) <= maxUnfinished {
		return nil
	}
	return c.judgeRest()
}

// lineHead is how a line begins, whether or not it verifies.
var lineHead = regexp.MustCompile(`\{"c":"[0-9a-f]{8}","n":([0-9]+),`)

// judgeRest says whether the rest, which is what follows the last commit N that was
// accepted, is clean (c.repair is empty), is what one unfinished write can have left
// (c.repair says what), or is damage (an error). N is a commit's number, not a line's.
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
func (c *content) judgeRest() error {
	c.repair = ""
	complete := c.n >= c.snap
	if complete && strings.HasPrefix(closing, c.rest) {
		if c.rest != closing {
			c.repair = "the closing bracket was missing"
		}
		return nil
	}
	later := 0
	for _, at := range lineHead.FindAllStringSubmatchIndex(c.rest, -1) {
		n, _ := strconv.ParseUint(c.rest[at[2]:at[3]], 10, 64) // with an error: the greatest number
		line, _, _ := strings.Cut(c.rest[at[0]:], "\n")
		if n > c.n+1 || n <= c.n && c.verifies(line) {
			later++
		}
	}
	tooLong := len(c.rest) > maxUnfinished
	reason := fmt.Sprintf("%d later commits follow", later)
	switch {
	case later > 0 && tooLong: // the rest was not read to its end
		reason = "at least " + reason
	case later == 1:
		reason = "a later commit follows"
	case later > 1:
	case !complete:
		reason = fmt.Sprintf("all up to commit %d was durable", c.snap)
	case tooLong:
		reason = "more follows than one write can have left"
	default:
		c.repair = fmt.Sprintf("the last write is not whole: %d bytes at line %d, byte %d",
			len(c.rest), c.line, c.end)
		return nil
	}
	return c.damage(fmt.Sprintf("line %d is wrong, and %s", c.line, reason))
}

// damage is the error for the first line that was not accepted.
func (c *content) damage(reason string) *DamageError {
	return &DamageError{File: c.path, Line: c.line, Offset: c.end, Reason: reason}
}
