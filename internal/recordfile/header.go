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

// readHeader opens the file, with a flag of os.OpenFile, and reads the opening bracket and the
// header. Its error is a [*DamageError], wraps [ErrFormat], or is the system's own. If it wraps
// ErrFormat, and there is a format in the header, the header is whole, and its format is not
// one of Options.Formats.
func (c *content) readHeader(flag int) (err error) {
	c.data, err = c.fs.Open(c.path, flag, nil)
	if err != nil {
		return err
	}
	// This much has the header in it or, if that was damaged, shows that there was one.
	text, err := io.ReadAll(io.NewSectionReader(c.data, 0, 64<<10))
	if err != nil {
		return err
	}
	c.line = 1
	switch {
	case Is(text):
	case reformatted.Match(text):
		damage := c.damage("something, such as jq or an editor, wrote all of it anew in another form")
		damage.remedy = "make records of it with jq '[.[].w[]? | del(.idempotency)]' " + quoted(c.path) +
			" > records.json, and begin a new data file with -seed records.json"
		return damage
	case lineHead.Match(text):
		return c.damage("the beginning of the file was overwritten or is missing")
	default:
		return fmt.Errorf("%s: %w: it is empty, or begins without the header of one; give another "+
			"path, or read a JSON array of records with -seed into a new data file", c.path, ErrFormat)
	}
	c.line = 2
	c.end = int64(len(opening))
	damage := c.damage("the header's checksum is wrong, or it is not of the form that this program writes")
	line, _, _ := strings.Cut(string(text[len(opening):]), "\n")
	if !c.verifies(line) { // without a salt: c has none yet
		return damage
	}
	// Sscanf lets more through than the one form, so the header is made again and compared.
	known, _ := fmt.Sscanf(line[summedAt:], `"n":%d,"format":%q,"salt":%q,"snap":%d}`,
		&c.before, &c.format, &c.saltText, &c.snap)
	if known >= 2 && !slices.Contains(c.Formats, c.format) {
		return fmt.Errorf("%s: %w: it has the format %q, and this program knows formats up to %q; "+
			"use the newer program that wrote it, or begin a new data file with -seed and what "+
			"eventsd dump of that program prints", c.path, ErrFormat, c.format, c.latest())
	}
	again := c.header.text()
	if !bytes.HasPrefix(text, again) || len(c.saltText) != 16 || c.snap <= c.before || c.before > 1<<53 {
		return damage
	}
	c.salt = c.saltSum()
	c.n = c.before
	c.line = 3
	c.end = int64(len(again))
	return nil
}
