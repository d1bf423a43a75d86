package recordfile

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

const (
	opening = "[\n"
	closing = "]\n"

	// lineStart has one length in all lines, so that the checksum is checked
	// before anything is parsed.
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

// header is the first line.
type header struct {
	n, snap      uint64
	format, salt string
}

// newSalt is 64 random bits.
func newSalt() string {
	var salt [8]byte
	_, _ = rand.Read(salt[:]) // never fails
	return hex.EncodeToString(salt[:])
}

// salted is what the checksums of all other lines go on from.
func (h header) salted() uint32 { return crc32.Checksum([]byte(h.salt), castagnoli) }

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
	sum := hexSum(crc32.Update(salt, castagnoli, line[summedAt:]))
	copy(line[sumAt:], sum[:])
}

func hexSum(sum uint32) (text [8]byte) {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], sum)
	hex.Encode(text[:], b[:])
	return text
}

// A checker verifies the lines of one life of a file.
type checker struct {
	salt    uint32 // the checksum of the salt alone
	scratch []byte
}

// sum reports whether the checksum of a line is right.
func (c *checker) sum(line string) bool {
	if len(line) < summedAt || line[:sumAt] != lineStart[:sumAt] {
		return false
	}
	c.scratch = append(c.scratch[:0], line[summedAt:]...) // crc32 takes no string
	sum := hexSum(crc32.Update(c.salt, castagnoli, c.scratch))
	return string(sum[:]) == line[sumAt:sumEnd]
}

// commit verifies a line with its comma and takes it apart.
func (c *checker) commit(line string) (n uint64, records string, ok bool) {
	if line == "" || line[0] != ',' || !c.sum(line[1:]) {
		return 0, "", false
	}
	return parts(line[1:])
}

// find looks for a line that ends where segment does. A lost block or line end
// can put before it what looks like the beginning of another line, so where the
// whole is none it is looked for from the back, but not for ever.
func (c *checker) find(segment string) (start int, n uint64, records string, ok bool) {
	if n, records, ok = c.commit(segment); ok {
		return 1, n, records, true
	}
	start = len(segment)
	for range 16 {
		if start = strings.LastIndex(segment[:start], lineStart[:sumAt]); start < 0 {
			break
		}
		if n, records, ok = parts(segment[start:]); ok && c.sum(segment[start:]) {
			return start, n, records, true
		}
	}
	return 0, 0, "", false
}

// parts takes a line apart, whatever its checksum.
func parts(line string) (n uint64, records string, ok bool) {
	rest, ok1 := strings.CutPrefix(line[min(len(line), sumEnd):], `","n":`)
	digits, rest, ok2 := strings.Cut(rest, ",")
	rest, ok3 := strings.CutPrefix(rest, `"w":[`)
	records, ok4 := strings.CutSuffix(rest, "]}")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, records, ok1 && ok2 && ok3 && ok4 && err == nil
}

// parseHeader returns the header of a file that begins with text, and where it ends.
func parseHeader(path, text, format string) (h header, end int, err error) {
	line, _ := strings.CutPrefix(text, opening)
	if line == text || !strings.HasPrefix(line, lineStart[:sumAt]) {
		return h, 0, foreign(path, text)
	}
	line, _, whole := strings.Cut(line, "\n")
	damage := &DamageError{File: path, Line: 2, Offset: int64(len(opening)), Reason: "the header's checksum is wrong"}
	if !whole || !new(checker).sum(line) {
		return h, 0, damage
	}
	// What Sscanf lets through is held against the one form that there is.
	known, _ := fmt.Sscanf(line[summedAt:], `"n":%d,"format":%q,"salt":%q,"snap":%d}`, &h.n, &h.format, &h.salt, &h.snap)
	if known >= 2 && h.format != format {
		return h, 0, otherFormat(path, h.format, format)
	}
	end = len(opening) + len(line) + 1
	if string(h.append([]byte(opening))) != text[:end] || len(h.salt) != 16 || h.snap <= h.n || h.n > 1<<53 {
		damage.Reason = "the header is not of the form that this program writes"
		return h, 0, damage
	}
	return h, end, nil
}

// Is reports whether text begins as a data file does.
func Is(text []byte) bool {
	return strings.HasPrefix(string(text[:min(len(text), 100)]), opening+lineStart[:sumAt])
}

// foreign tells apart what is given as a data file and is none.
func foreign(path, text string) error {
	squeezed := strings.Join(strings.Fields(text[:min(len(text), 200)]), "")
	switch {
	case text == "":
		return &FormatError{path, "is empty, and this program never leaves it so: put a backup in its place, or delete it to begin anew"}
	case strings.HasPrefix(squeezed, `[{"c":"`):
		return &DamageError{File: path, Line: 1, Reason: "spaces or line ends were changed, as an editor or formatter does"}
	case strings.HasPrefix(squeezed, "["):
		return &FormatError{path, "is a JSON array without the header of a data file: -seed reads it, into a new data file"}
	}
	return &FormatError{path, "is not a data file of this program: give another path"}
}

func otherFormat(path, got, want string) error {
	gotName, gotVersion, _ := strings.Cut(got, "/")
	wantName, wantVersion, _ := strings.Cut(want, "/")
	g, err := strconv.Atoi(gotVersion)
	w, _ := strconv.Atoi(wantVersion)
	switch {
	case gotName != wantName || err != nil:
	case g > w:
		return &FormatError{path, fmt.Sprintf("has the format %q of a newer version of this program, which knows %q: use that version", got, want)}
	default:
		return &FormatError{path, fmt.Sprintf("has the format %q of an older version of this program, which knows %q: eventsd dump with that version, and begin a new data file with the dump as -seed", got, want)}
	}
	return &FormatError{path, fmt.Sprintf("has the format %q, and this program knows %q: give another path", got, want)}
}
