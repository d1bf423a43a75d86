package recordfile

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
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
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

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
func (r *reader) verifies(line string) bool {
	if len(line) < summedAt {
		return false
	}
	r.buf = append(r.buf[:0], line...) // crc32 takes no string
	copy(r.buf, lineStart[:summedAt])
	seal(r.buf, r.salt)
	return string(r.buf) == line
}

// Is reports whether text begins as a data file does.
func Is(text []byte) bool {
	return bytes.HasPrefix(text, []byte(opening+beginning))
}
