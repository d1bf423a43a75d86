package recordfile

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
)

// header is the line after the opening bracket, line 2 of the file.
type header struct {
	before           uint64 // the header's own number, which is one before that of the first commit
	snap             uint64 // the number of the commit that ends the snapshot
	format, saltText string
}

// saltSum is the CRC-32C of the salt, which the checksums of all other lines continue.
func (h header) saltSum() uint32 { return crc32.Checksum([]byte(h.saltText), castagnoli) }

// text is the beginning of a file: the opening bracket and the header, with their line ends.
func (h header) text() []byte {
	b := fmt.Appendf(nil, opening+lineStart+`%d,"format":%q,"salt":%q,"snap":%d}`,
		h.before, h.format, h.saltText, h.snap)
	seal(b[len(opening):], 0)
	return append(b, '\n')
}

// readHeader reads the opening bracket and the header of the file that is open. Its error is a
// [*DamageError] or a [*FormatError], or is the system's own. A FormatError with a format means
// that the header is whole, and that the format is not one of Options.Formats.
func (r *reader) readHeader() error {
	// The header is shorter than this. Where it is missing, a line after it mostly begins here.
	text, err := io.ReadAll(io.NewSectionReader(r.data, 0, 64<<10))
	if err != nil {
		return err
	}
	r.line = 1
	if !Is(text) {
		switch {
		case lineHead.Match(text):
			return r.damage("the beginning of the file was overwritten or is missing")
		case len(text) == 0:
			return &FormatError{File: r.path, Reason: "it is empty"}
		}
		return &FormatError{File: r.path, Reason: "it does not begin as one"}
	}
	r.line = 2
	r.end = int64(len(opening))
	damage := r.damage("the header's checksum is wrong, or it is not of the form that this program writes")
	line, _, _ := strings.Cut(string(text[len(opening):]), "\n")
	if !r.verifies(line) { // without a salt: there is none yet
		return damage
	}
	// Sscanf lets more through than the one form, so the header is made again and compared.
	known, _ := fmt.Sscanf(line[summedAt:], `"n":%d,"format":%q,"salt":%q,"snap":%d}`,
		&r.before, &r.format, &r.saltText, &r.snap)
	if known >= 2 && !slices.Contains(r.Formats, r.format) {
		reason := fmt.Sprintf("it has the format %q, and this program knows formats up to %q; "+
			"use the newer program that wrote it", r.format, r.latest())
		return &FormatError{File: r.path, Format: r.format, Reason: reason}
	}
	again := r.header.text()
	if !bytes.HasPrefix(text, again) || len(r.saltText) != 16 || r.snap <= r.before || r.before > 1<<53 {
		return damage
	}
	r.salt = r.saltSum()
	r.n = r.before
	r.line = 3
	r.end = int64(len(again))
	return nil
}
