package commitlog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
)

const (
	opening = "[\n"
	closing = "]\n"

	// All lines begin with a checksum of the same length, which can be checked before the line is parsed.
	lineStart  = `{"c":"00000000","n":`
	sumStart   = len(`{"c":"`)
	sumEnd     = sumStart + 8
	summedFrom = sumEnd + len(`",`) // where the checksummed bytes begin

	saltLen = 16 // hexadecimal digits
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum returns the hexadecimal checksum of a line. The line has no comma and no line feed.
func sum(line []byte, salt uint32) (digits [8]byte) {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], crc32.Update(salt, castagnoli, line[summedFrom:]))
	hex.Encode(digits[:], b[:])
	return digits
}

// seal sets the checksum of a line.
func seal(line []byte, salt uint32) {
	digits := sum(line, salt)
	copy(line[sumStart:], digits[:])
}

// hasValidChecksum checks a line without its comma and line feed.
func hasValidChecksum(line []byte, salt uint32) bool {
	if len(line) < summedFrom || string(line[:sumStart]) != lineStart[:sumStart] ||
		string(line[sumEnd:summedFrom]) != lineStart[sumEnd:summedFrom] {
		return false
	}
	digits := sum(line, salt)
	return string(line[sumStart:sumEnd]) == string(digits[:])
}

// appendLine appends commit n to b as a line with its comma and line feed.
func appendLine(b []byte, salt uint32, n uint64, records []byte) []byte {
	start := len(b)
	b = append(b, ","+lineStart...)
	b = strconv.AppendUint(b, n, 10)
	b = append(b, `,"w":[`...)
	b = append(b, records...)
	b = append(b, "]}\n"...)
	seal(b[start+1:len(b)-1], salt)
	return b
}

// parseLine splits a line with a valid checksum into its number and records.
func parseLine(line []byte) (n uint64, records []byte, ok bool) {
	start, records, _ := bytes.Cut(line[summedFrom:], []byte(`,"w":[`))
	digits, numbered := bytes.CutPrefix(start, []byte(`"n":`))
	records, ended := bytes.CutSuffix(records, []byte("]}"))
	n, err := strconv.ParseUint(string(digits), 10, 64)
	return n, records, numbered && ended && err == nil
}

// A header is the second line of a file.
type header struct {
	n          uint64 // one less than the number of the first commit
	format     string
	salt       string
	snapCommit uint64 // number of the empty commit that ends the snapshot
}

// saltSum returns the CRC-32C of the salt, with which commit checksums begin.
func (h header) saltSum() uint32 { return crc32.Checksum([]byte(h.salt), castagnoli) }

// text returns the opening bracket and the header line.
func (h header) text() []byte {
	b := fmt.Appendf(nil, opening+lineStart+`%d,"format":%q,"salt":%q,"snap":%d}`,
		h.n, h.format, h.salt, h.snapCommit)
	seal(b[len(opening):], 0)
	return append(b, '\n')
}

// parseHeader parses the header at the beginning of a file. If its checksum is valid but its format unknown,
// newer is true and h has only the format.
func parseHeader(text []byte, formats []string) (h header, newer, ok bool) {
	line, _, _ := bytes.Cut(text[len(opening):], []byte("\n"))
	if !hasValidChecksum(line, 0) {
		return h, false, false
	}
	// Sscanf accepts other forms, too, so the result is formatted again and compared.
	fields, _ := fmt.Sscanf(string(line[summedFrom:]), `"n":%d,"format":%q,"salt":%q,"snap":%d}`,
		&h.n, &h.format, &h.salt, &h.snapCommit)
	if fields >= 2 && !slices.Contains(formats, h.format) {
		return h, true, false
	}
	const maxNumber = 1 << 53 // exact in every JSON reader, and far from overflow
	ok = bytes.HasPrefix(text, h.text()) && len(h.salt) == saltLen && h.snapCommit > h.n && h.n <= maxNumber
	return h, false, ok
}
