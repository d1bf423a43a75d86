package recordfile

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// A Span is a part of a file that does not verify.
type Span struct {
	Line          int // the first, counted from 1
	Offset, Bytes int // where it begins, and its length
}

// Salvage reads a damaged file, takes no lock and changes nothing. It calls each with
// the records of every commit that verifies, wherever it stands, in the order of the
// file. It returns the parts that do not verify; parts that follow one another are one.
// It also returns how many commits are missing by the numbers of the others and of the
// header. Others that were at the end of the file may be missing, too, and others at its
// beginning if the header is damaged. A commit that stands twice counts once.
//
// Salvage needs no header. If that is damaged or missing, the checksum of the salt is the
// one on which most commits agree, but at least two.
func Salvage(path string, o Options, each func(string) error) (skipped []Span, missing int, err error) {
	c := content{Options: o}
	err = c.openToRead(path)
	if c.data == nil {
		return nil, 0, err
	}
	defer c.data.Close()
	first := c.before + 1 // the numbers of the commits that should be there
	last := c.snap
	c.end = 0
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrFormat) && c.format == "" {
		err = c.findSalt(err)
		first = math.MaxUint64
	}
	if err != nil {
		return nil, 0, err
	}
	var unsalted content // whose checksums are those of headers
	seen := map[uint64]bool{}
	number := 1
	offset := 0
	skippedTo := -1 // where the last of skipped ends
	err = c.readLines(func(text string) error {
		for line := range strings.Lines(text) {
			wrong := line
			commit := c.find(line)
			n, records, ok := parseCommit(commit)
			if ok && c.verifies(commit) {
				first = min(first, n)
				last = max(last, n)
				seen[n] = true
				err := each(records)
				if err != nil {
					return err
				}
				wrong = line[:strings.Index(line, commit)]
			}
			bare := strings.Trim(wrong, separators)
			if bare != "" && !unsalted.verifies(bare) {
				if offset > skippedTo {
					skipped = append(skipped, Span{Line: number, Offset: offset})
				}
				skipped[len(skipped)-1].Bytes += len(wrong)
				skippedTo = offset + len(wrong)
			}
			number += strings.Count(line, "\n")
			offset += len(line)
		}
		return nil
	})
	return skipped, max(0, int(last-first)+1-len(seen)), err
}

// findSalt finds the checksum of the salt on which most commits of a file agree. It is for
// files whose header is wrong; if no two commits agree, it returns headErr, which says so.
func (c *content) findSalt(headErr error) error {
	commits := map[uint32]int{}
	var best uint32
	err := c.readLines(func(text string) error {
		for line := range strings.Lines(text) {
			line = c.find(line)
			_, _, ok := parseCommit(line)
			if !ok || !lineHead.MatchString(line) {
				continue
			}
			salt := saltOf(line)
			commits[salt]++
			if commits[salt] > commits[best] {
				best = salt
			}
		}
		return nil
	})
	c.salt = best
	if err != nil || commits[best] > 1 {
		return err
	}
	damage, is := errors.AsType[*DamageError](headErr)
	if is && damage.remedy == "" {
		damage.remedy = "no two lines verify together; begin a new data file with a dump from before as -seed"
	}
	return headErr
}

// saltOf returns the checksum of the salt with which a line would verify: a CRC can be
// computed backwards, from the last byte to the first. Each step of a CRC takes the entry
// of the table at its lowest byte xor the next byte of the text. The highest byte of the
// result is that of the entry, and no two entries have the same. So it shows the entry.
func saltOf(line string) uint32 {
	var entryOf [256]byte // by the highest byte of the entry
	for i, entry := range castagnoli {
		entryOf[entry>>24] = byte(i)
	}
	sum, _ := strconv.ParseUint(line[sumAt:sumEnd], 16, 32) // lineHead has matched
	crc := ^uint32(sum)
	for i := len(line) - 1; i >= summedAt; i-- {
		entry := entryOf[crc>>24]
		crc = (crc^castagnoli[entry])<<8 | uint32(entry^line[i])
	}
	return ^crc
}
