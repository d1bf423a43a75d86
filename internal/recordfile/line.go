package recordfile

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

const (
	opening = "[\n"
	closing = "]\n"

	// beginning and what follows it up to the number have one length in all lines, so that
	// the checksum is checked before anything is parsed.
	beginning = `{"c":"`
	lineStart = beginning + `00000000","n":`
	sumAt     = len(beginning)
	sumEnd    = sumAt + 8
	summedAt  = sumEnd + 2 // what the checksum is of begins after its quote and a comma

	// separators are what can stand around a line: its comma, line end, and brackets.
	separators = ",\r\n[]"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// add puts the line of the commit that is next, with its comma and line end, into c.buf and
// counts that commit. It refuses records that cannot be one line.
func (c *content) add(records []byte) error {
	if len(records) > MaxCommit {
		return fmt.Errorf("too large for one commit: %d bytes, the limit is %d", len(records), MaxCommit)
	}
	if bytes.IndexByte(records, '\n') >= 0 {
		return errors.New("a commit cannot hold a line break")
	}
	c.n++
	c.empty = len(records) == 0
	b := append(c.buf[:0], ","+lineStart...)
	b = strconv.AppendUint(b, c.n, 10)
	b = append(b, `,"w":[`...)
	b = append(b, records...)
	b = append(b, "]}\n"...)
	seal(b[1:len(b)-1], c.salt)
	c.buf = b
	c.end += int64(len(b))
	c.size = c.end + int64(len(closing))
	return nil
}

// parseCommit takes a commit's line without its comma apart, whatever its checksum.
func parseCommit(line string) (n uint64, records string, ok bool) {
	start, records, _ := strings.Cut(line, `,"w":[`)
	records, ends := strings.CutSuffix(records, "]}") // no end without a beginning
	digits, numbered := strings.CutPrefix(start[min(len(start), summedAt):], `"n":`)
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, records, ends && numbered && err == nil
}

// seal puts the checksum into a line.
func seal(line []byte, salt uint32) {
	sum := crc32.Update(salt, castagnoli, line[summedAt:])
	hex.Encode(line[sumAt:sumEnd], binary.BigEndian.AppendUint32(nil, sum))
}

// verifies reports whether the checksum of a line without its comma is right.
func (c *content) verifies(line string) bool {
	if len(line) < summedAt {
		return false
	}
	c.buf = append(c.buf[:0], line...) // crc32 takes no string
	copy(c.buf, lineStart[:summedAt])
	seal(c.buf, c.salt)
	return string(c.buf) == line
}

// find returns what may be a line at the end of text, without what stands around it.
// Where a block or a line end was lost, the beginning of another line can stand before
// it. So if the whole does not verify, the last beginning of a line counts: no string in a
// record contains one (see the package comment).
func (c *content) find(text string) (line string) {
	line = strings.Trim(text, separators)
	if c.verifies(line) {
		return line
	}
	return line[max(0, strings.LastIndex(line, beginning)):]
}

// Is reports whether text begins as a data file does.
func Is(text []byte) bool {
	return bytes.HasPrefix(text, []byte(opening+beginning))
}
