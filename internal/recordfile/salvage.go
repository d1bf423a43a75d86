package recordfile

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Span is a part of a file that does not verify.
type Span struct {
	Line          int // the first, counted from 1
	Offset, Bytes int // where it begins, and its length
}

// Salvaged says what [Salvage] found.
type Salvaged struct {
	Skipped []Span // what does not verify; parts that follow one another are one
	First   uint64 // the lowest number of the commits that verify; 0 if none does

	// Missing is how many commits are missing by the numbers of the others and of the header.
	// Others that were at the end of the file may be missing, too.
	Missing int

	// NoHeader: the header is damaged or gone, so nothing shows how many commits stood before First.
	NoHeader bool
}

// Salvage reads a damaged file, takes no lock and changes nothing. It calls each with
// every commit that verifies, wherever it stands, in the order of the
// file. A commit that stands twice is handed over twice, and counts once.
//
// Salvage needs no header. If that is damaged or missing, the checksum of the salt is the
// one on which most commits agree, but at least two.
func Salvage(path string, o Options, each func(Line) error) (found Salvaged, err error) {
	r, err := openToRead(path, o)
	if err != nil {
		return found, err
	}
	defer r.data.Close()
	numbers := map[uint64]bool{} // of the commits that verify
	err = r.readHeader()
	format, is := errors.AsType[*FormatError](err)
	isDamaged := errors.Is(err, ErrDamaged)
	if isDamaged || is && format.Format == "" {
		found.NoHeader = true
		r.header = header{}
		r.end = 0
		err = r.findSalt(err)
	}
	if err != nil {
		return found, err
	}
	r.end = 0
	var unsalted reader // whose checksums are those of headers
	number := 1
	offset := 0
	skippedTo := -1 // where the last of skipped ends
	err = r.readLines(func(text string) error {
		for line := range strings.Lines(text) {
			wrong := line
			commit := r.find(line)
			n, records, ok := parseCommit(commit)
			if ok && r.verifies(commit) {
				if found.First == 0 || n < found.First {
					found.First = n
				}
				numbers[n] = true
				err := each(Line{r.format, number, int64(offset), r.size, records})
				if err != nil {
					return err
				}
				wrong = line[:strings.Index(line, commit)]
			}
			bare := strings.Trim(wrong, separators)
			if bare != "" && !unsalted.verifies(bare) {
				if offset > skippedTo {
					found.Skipped = append(found.Skipped, Span{Line: number, Offset: offset})
				}
				found.Skipped[len(found.Skipped)-1].Bytes += len(wrong)
				skippedTo = offset + len(wrong)
			}
			number += strings.Count(line, "\n")
			offset += len(line)
		}
		return nil
	})
	found.Missing = countMissing(numbers, r.before, r.snap)
	return found, err
}

// maxGap is the most commits that can be missing in one place. Larger gaps are those of numbers
// that no program of ours wrote.
const maxGap = 1 << 30

// countMissing counts the numbers that are missing between those that are there, before the first
// of them if the number before it is known, and behind the last of them up to snap, which is 0 if
// it is not known.
func countMissing(numbers map[uint64]bool, before, snap uint64) (missing int) {
	sorted := slices.Sorted(maps.Keys(numbers))
	last := before
	for _, n := range append(sorted, snap+1) {
		if last > 0 && n > last && n-last <= maxGap {
			missing += int(n - last - 1)
		}
		last = max(last, n)
	}
	return missing
}

// findSalt finds the checksum of the salt on which most commits of a file agree. It is for
// files whose header is wrong; if no two commits agree, it returns headErr, which says so.
func (r *reader) findSalt(headErr error) error {
	commits := map[uint32]int{}
	var best uint32
	err := r.readLines(func(text string) error {
		for line := range strings.Lines(text) {
			line = r.find(line)
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
	r.salt = best
	if err != nil || commits[best] > 1 {
		return err
	}
	damage, is := errors.AsType[*DamageError](headErr)
	if is && damage.Kind == DamagedLines {
		damage.Kind = NothingVerifies
		damage.Reason += ", and no two lines verify together"
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
