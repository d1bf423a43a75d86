package recordfile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A damaged header may still show the salt.
var saltForm = regexp.MustCompile(`"salt":"([0-9a-f]{16})"`)

// Salvage reads a damaged file and changes nothing. It calls each, which may be
// nil, for every commit that verifies, wherever it stands, once and in the order of
// the numbers. It reports what it skipped and which numbers are missing. Where the
// header is damaged, the salt that stands in it is taken if lines verify with it.
func Salvage(path string, o Options, each func(Line) error) (Report, error) {
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
	h, _, headerErr := parseHeader(path, text, o.Format)
	if headerErr != nil {
		salt := saltForm.FindStringSubmatch(text)
		if salt == nil || h.format != "" && h.format != o.Format {
			return r, headerErr
		}
		h = header{salt: salt[1]}
	}
	r.Snap = h.snap

	type commit struct {
		Line
		n    uint64
		span Span
	}
	var commits []commit
	c, headerCheck := checker{salt: h.salted()}, checker{}
	number, at := 0, int64(0)
	for segment := range strings.SplitSeq(text, "\n") {
		number++
		span := Span{Line: number, Offset: at, Bytes: min(int64(len(segment))+1, r.Size-at)}
		at += span.Bytes
		segment = strings.TrimSuffix(segment, "\r")
		if segment == "" || segment == "[" || segment == "]" || headerCheck.sum(segment) {
			continue
		}
		before, n, records, ok := c.find(segment)
		if ok {
			commits = append(commits, commit{Line{number, span.Offset + int64(len(before)), records}, n, span})
			span.Bytes = int64(len(before))
		}
		if span.Bytes > 0 {
			r.skip(span, "does not verify")
		}
	}
	if len(commits) == 0 && headerErr != nil {
		return r, headerErr
	}

	slices.SortStableFunc(commits, func(a, b commit) int { return cmp.Compare(a.n, b.n) })
	due := h.n + 1
	for i, found := range commits {
		if i > 0 && found.n == r.Last {
			r.skip(found.span, fmt.Sprintf("commit %d again", found.n))
			continue
		}
		if found.n > due && due > 1 {
			r.skip(Span{Line: found.Number, Offset: found.span.Offset}, missing(due, found.n-1))
		}
		if i == 0 {
			r.First = found.n
		}
		r.Lines++
		r.Last, due = found.n, found.n+1
		if each == nil {
			continue
		}
		if err := each(found.Line); err != nil {
			return r, err
		}
	}
	if r.Last < r.Snap {
		r.skip(Span{Line: number, Offset: r.Size}, missing(due, r.Snap))
	}
	slices.SortStableFunc(r.Skipped, func(a, b Span) int { return cmp.Compare(a.Offset, b.Offset) })
	return r, nil
}

func missing(from, to uint64) string { return fmt.Sprintf("commits %d to %d are missing", from, to) }

// skip notes a part that was skipped. Parts that follow one another are one.
func (r *Report) skip(s Span, why string) {
	if n := len(r.Skipped) - 1; n >= 0 && s.Bytes > 0 {
		before := &r.Skipped[n]
		if before.Why == why && before.Offset+before.Bytes == s.Offset {
			before.Bytes += s.Bytes
			return
		}
	}
	s.Why = why
	r.Skipped = append(r.Skipped, s)
}
