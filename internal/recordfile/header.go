package recordfile

import (
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
)

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

// readHeader reads the opening bracket and the header, and returns how long both are. Its
// error is a [*DamageError], wraps [ErrFormat], or is the system's own. If it returns a
// header and ErrFormat, the header is whole, and its format is not one of formats.
func readHeader(f handle, path string, formats []string) (h header, size int64, err error) {
	buf := make([]byte, 4<<10) // more than any header takes
	n, err := f.ReadAt(buf, 0)
	if err != nil && err != io.EOF {
		return h, 0, err
	}
	text := string(buf[:n])
	if !strings.HasPrefix(text, opening+beginning) {
		squeezed := strings.Join(strings.Fields(text[:min(len(text), 200)]), "")
		if strings.Contains(squeezed, beginning) {
			return h, 0, &DamageError{path, 1, 0, "the beginning is not as it was written: " +
				"an editor or formatter changes spaces and line ends"}
		}
		return h, 0, fmt.Errorf("%s: %w: it is empty, or begins without the header of one; "+
			"give another path, or read a JSON array of records with -seed into a new data file",
			path, ErrFormat)
	}
	line, _, _ := strings.Cut(text[len(opening):], "\n")
	damage := &DamageError{path, 2, int64(len(opening)), "the header's checksum is wrong, or the header " +
		"is not of the form that this program writes"}
	var unsalted checker
	if !unsalted.verifies(line) {
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
	again := string(h.append([]byte(opening)))
	if !strings.HasPrefix(text, again) || len(h.salt) != 16 || h.snap <= h.n || h.n > 1<<53 {
		return header{}, 0, damage
	}
	return h, int64(len(again)), nil
}
