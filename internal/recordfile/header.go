package recordfile

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"regexp"
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

// reformatted is how a file begins that something else than this program wrote anew.
var reformatted = regexp.MustCompile(`^\s*\[\s*\{\s*"c":\s*"`)

// readHeader reads the opening bracket and the header of the file that is open. Its error is a
// [*DamageError] or a [*FormatError], or is the system's own. A FormatError with a format means
// that the header is whole, and that the format is not one of Options.Formats.
func (r *reader) readHeader() error {
	// This much has the header in it or, mostly, shows that there was one.
	text, err := io.ReadAll(io.NewSectionReader(r.data, 0, 64<<10))
	if err != nil {
		return err
	}
	r.line = 1
	if !Is(text) {
		return r.judgeBeginning(text)
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

// judgeBeginning says what a file is that does not begin as a data file does. Where any line
// of one follows, however far from the beginning, it is a data file that was damaged.
func (r *reader) judgeBeginning(text []byte) error {
	if reformatted.Match(text) {
		damage := r.damage("something, such as jq or an editor, wrote all of it anew in another form")
		damage.Kind = Reformatted
		return damage
	}
	hasLine, err := r.hasLine()
	switch {
	case err != nil:
		return err
	case hasLine:
		return r.damage("the beginning of the file was overwritten or is missing")
	case len(text) == 0:
		return &FormatError{File: r.path, Reason: "it is empty"}
	}
	reason := "it begins without the header of one, and no line of one follows"
	return &FormatError{File: r.path, Reason: reason}
}

// hasLine reports whether the head of a line stands anywhere in the file. It looks at the end
// first: what stands at the beginning may be as long as a disk.
func (r *reader) hasLine() (bool, error) {
	info, err := r.data.Stat()
	if err != nil {
		return false, err
	}
	for _, from := range []int64{max(0, info.Size()-chunk), 0} {
		file := io.NewSectionReader(r.data, from, info.Size()-from)
		const most = 64 // bytes of the head of a line, which two reads may share
		buf := make([]byte, chunk)
		kept := 0
		for err == nil {
			var n int
			n, err = file.Read(buf[kept:])
			text := buf[:kept+n]
			if lineHead.Match(text) {
				return true, nil
			}
			kept = copy(buf, text[max(0, len(text)-most):])
		}
		if err != io.EOF {
			return false, err
		}
		err = nil
	}
	return false, nil
}
