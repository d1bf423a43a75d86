package recordfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Salvage reads a damaged file and changes nothing. It calls each for every
// commit that verifies, wherever it stands, once and in the order of the
// numbers, and reports what it skipped and which numbers are missing. Where
// the header with the salt is lost, lines that agree about the salt verify.
func Salvage(path string, o Options, each func(n uint64, records string) error) (Report, error) {
	o.setDefaults()
	f, path, err := openToRead(path, o)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Report{}, err
	}
	r := Report{Size: info.Size()}
	var text string
	err = read(f, 0, r.Size, func(t string, done int64) error {
		text = t
		o.Progress(done, r.Size)
		return nil
	})
	if err != nil {
		return r, err
	}
	h, _, err := parseHeader(path, text, o.Format)
	c, header := checker{salt: h.salted()}, checker{}
	if err != nil {
		var ok bool
		if c.salt, ok = commonSalt(text); !ok || h.format != "" && h.format != o.Format {
			return r, err
		}
	}
	r.Snap = h.snap
	type commit struct {
		Span
		n       uint64
		records string
	}
	var commits []commit
	line, at := 0, 0
	for segment := range strings.SplitSeq(text, "\n") {
		line++
		span := Span{Line: line, Offset: int64(at), Bytes: int64(min(len(segment)+1, len(text)-at))}
		at += len(segment) + 1
		segment = strings.TrimSuffix(segment, "\r")
		if segment == "" || segment == "[" || segment == "]" || header.sum(segment) {
			continue
		}
		start, n, records, ok := c.find(segment)
		if ok {
			commits = append(commits, commit{span, n, records})
			if segment[:start] == "" || segment[:start] == "," {
				continue
			}
			span.Bytes = int64(start)
		}
		r.skip(span, "does not verify")
	}
	slices.SortStableFunc(commits, func(a, b commit) int { return cmp.Compare(a.n, b.n) })
	due := h.n + 1
	for _, found := range commits {
		if r.Lines > 0 && found.n == r.Last {
			r.skip(found.Span, fmt.Sprintf("commit %d again", found.n))
			continue
		}
		if found.n > due && due > 1 {
			r.skip(Span{found.Line, found.Offset, 0, ""}, fmt.Sprintf("commits %d to %d are missing", due, found.n-1))
		}
		if r.Lines == 0 {
			r.First = found.n
		}
		r.Lines++
		r.Last, due = found.n, found.n+1
		if each == nil {
			continue
		}
		if err := each(found.n, found.records); err != nil {
			return r, err
		}
	}
	if r.Last < r.Snap {
		r.skip(Span{line, r.Size, 0, ""}, fmt.Sprintf("commits %d to %d are missing", due, r.Snap))
	}
	slices.SortStableFunc(r.Skipped, func(a, b Span) int { return cmp.Compare(a.Offset, b.Offset) })
	return r, nil
}

// skip notes a part that was skipped, as one with the part before it if it can.
func (r *Report) skip(s Span, why string) {
	if n := len(r.Skipped) - 1; n >= 0 && s.Bytes > 0 && r.Skipped[n].Why == why && r.Skipped[n].Offset+r.Skipped[n].Bytes == s.Offset {
		r.Skipped[n].Bytes += s.Bytes
		return
	}
	s.Why = why
	r.Skipped = append(r.Skipped, s)
}

// commonSalt computes for each line what the checksum of the salt must have
// been if the line is right. What most of them, at least two, agree on is it.
func commonSalt(text string) (salt uint32, ok bool) {
	var index [256]byte // of the entry of the table with that first byte
	for i, entry := range castagnoli {
		index[entry>>24] = byte(i)
	}
	votes, lines := map[uint32]int{}, 0
	for segment := range strings.SplitSeq(text, "\n") {
		segment = strings.TrimSuffix(segment, "\r")
		line := segment[max(0, strings.LastIndex(segment, lineStart[:sumAt])):]
		if _, _, ok := parts(line); !ok {
			continue
		}
		sum, err := strconv.ParseUint(line[sumAt:sumEnd], 16, 32)
		if err != nil {
			continue
		}
		c := ^uint32(sum)
		for i := len(line) - 1; i >= summedAt; i-- { // crc32.Update backwards
			k := index[c>>24]
			c = (c^castagnoli[k])<<8 | uint32(k^line[i])
		}
		votes[^c]++
		if lines++; votes[^c] > votes[salt] {
			salt = ^c
		}
	}
	return salt, votes[salt] > max(1, lines/2)
}
