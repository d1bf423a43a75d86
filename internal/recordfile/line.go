package recordfile

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	opening = "[\n"
	closing = "]\n"

	// lineStart has one length in all lines up to the number, so that the
	// checksum is checked before anything is parsed.
	lineStart = `{"c":"00000000","n":`
	sumAt     = len(`{"c":"`)
	sumEnd    = sumAt + 8
	summedAt  = len(`{"c":"00000000",`)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendCommit appends a commit's line with its comma and line end.
func appendCommit(b []byte, salt uint32, n uint64, records []byte) []byte {
	b = append(b, ',')
	start := len(b)
	b = append(b, lineStart...)
	b = strconv.AppendUint(b, n, 10)
	b = append(b, `,"w":[`...)
	b = append(b, records...)
	b = append(b, `]}`...)
	seal(b[start:], salt)
	return append(b, '\n')
}

// header is the line after the opening bracket, line 2 of the file.
type header struct {
	n, snap      uint64
	format, salt string
}

// saltSum is the CRC-32C of the salt, which the checksums of all other lines continue.
func (h header) saltSum() uint32 { return crc32.Checksum([]byte(h.salt), castagnoli) }

// append appends the line with its line end.
func (h header) append(b []byte) []byte {
	start := len(b)
	b = append(b, lineStart...)
	b = fmt.Appendf(b, `%d,"format":%q,"salt":%q,"snap":%d}`, h.n, h.format, h.salt, h.snap)
	seal(b[start:], 0)
	return append(b, '\n')
}

// seal puts the checksum into a line.
func seal(line []byte, salt uint32) {
	sum := crc32.Update(salt, castagnoli, line[summedAt:])
	hex.Encode(line[sumAt:sumEnd], binary.BigEndian.AppendUint32(nil, sum))
}

// A checker verifies the lines of one generation of a file.
type checker struct {
	salt    uint32 // the checksum of the salt alone
	scratch []byte
}

// verifies reports whether the checksum of a line without its comma is right.
func (c *checker) verifies(line string) bool {
	if len(line) < summedAt || line[:sumAt] != lineStart[:sumAt] {
		return false
	}
	c.scratch = append(c.scratch[:0], line[summedAt:]...) // crc32 takes no string
	sum := crc32.Update(c.salt, castagnoli, c.scratch)
	c.scratch = hex.AppendEncode(c.scratch[:0], binary.BigEndian.AppendUint32(nil, sum))
	return string(c.scratch) == line[sumAt:sumEnd]
}

// around is what can stand around a line: its comma and line end, in any form.
const around = ",\r\n"

// find returns what may be a line at the end of text, without what stands around it.
// Where a block or a line end was lost, the beginning of another line can stand before
// it, so if the whole does not verify, the last beginning of a line counts: no string
// in a record contains one (see the package comment).
func (c *checker) find(text string) (line string) {
	line = strings.Trim(text, around)
	if !c.verifies(line) {
		line = line[max(0, strings.LastIndex(line, lineStart[:sumAt])):]
	}
	return line
}

// parts takes a line without its comma apart, whatever its checksum.
func parts(line string) (n uint64, records string, ok bool) {
	rest, ok1 := strings.CutPrefix(line[min(len(line), sumEnd):], `","n":`)
	digits, rest, ok2 := strings.Cut(rest, ",")
	rest, ok3 := strings.CutPrefix(rest, `"w":[`)
	records, ok4 := strings.CutSuffix(rest, "]}")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, records, ok1 && ok2 && ok3 && ok4 && err == nil
}

// parseHeader returns the header of a file that begins with text, and where it ends.
// Its error is a [*DamageError] or wraps [ErrFormat].
func parseHeader(path, text string, formats []string) (h header, end int, err error) {
	if !strings.HasPrefix(text, opening+lineStart[:sumAt]) {
		squeezed := strings.Join(strings.Fields(text[:min(len(text), 200)]), "")
		if strings.Contains(squeezed, lineStart[:sumAt]) {
			return h, 0, &DamageError{path, 1, 0, "the beginning is not as it was written: " +
				"an editor or formatter changes spaces and line ends"}
		}
		return h, 0, fmt.Errorf("%s: %w: it is empty, or begins without the header of one; "+
			"give another path, or read a JSON array of records with -seed into a new data file",
			path, ErrFormat)
	}
	line, _, whole := strings.Cut(text[len(opening):], "\n")
	damage := &DamageError{path, 2, int64(len(opening)), "the header's checksum is wrong"}
	if !whole || !new(checker).verifies(line) {
		return h, 0, damage
	}
	// Sscanf lets more through than the one form, so the header is made again and compared.
	known, _ := fmt.Sscanf(line[summedAt:], `"n":%d,"format":%q,"salt":%q,"snap":%d}`,
		&h.n, &h.format, &h.salt, &h.snap)
	if known >= 2 && !slices.Contains(formats, h.format) {
		return h, 0, fmt.Errorf("%s: %w: it has the format %q, and this program knows formats up to %q; "+
			"use the newer program that wrote it, or begin a new data file with -seed and what "+
			"eventsd dump of that program prints", path, ErrFormat, h.format, formats[len(formats)-1])
	}
	end = len(opening) + len(line) + 1
	if string(h.append([]byte(opening))) != text[:end] || len(h.salt) != 16 || h.snap <= h.n || h.n > 1<<53 {
		damage.Reason = "the header is not of the form that this program writes"
		return h, 0, damage
	}
	return h, end, nil
}

// lineHead is how a line begins, whether or not it verifies.
var lineHead = regexp.MustCompile(`\{"c":"[0-9a-f]{8}","n":([0-9]+),`)

// Is reports whether text begins as a data file does.
func Is(text []byte) bool {
	return bytes.HasPrefix(text, []byte(opening+lineStart[:sumAt]))
}
