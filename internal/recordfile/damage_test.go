package recordfile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// A damaged file is one of these: refused, or opened with what it held, or
// opened without the end that a torn write looks like.
type damaged struct {
	t                        *testing.T
	commits                  []string // of the undamaged file
	snap                     int      // how many of them are the snapshot
	states, refused, shorter int
}

// newDamaged returns the text of a file with 9 commits in the snapshot and 8 behind,
// of a process that was killed. With closed, a clean Close has added an empty one.
func newDamaged(t *testing.T, closed bool) (d *damaged, text string) {
	m := newMemFS(512)
	f, _, err := openContent(m)
	ok(t, err)
	rng := rand.New(rand.NewPCG(3, 3))
	d = &damaged{t: t, snap: 9}
	commit := func() string {
		return fmt.Sprintf(`{"event":{"id":"evt_%d","title":%q}}`, len(d.commits),
			strings.Repeat("x", rng.IntN(100)))
	}
	for range d.snap - 1 {
		d.commits = append(d.commits, commit())
	}
	ok(t, f.Rewrite(seq(d.commits...)))
	d.commits = append(d.commits, "")
	for range 8 {
		d.commits = append(d.commits, commit())
		ok(t, f.Append([]byte(d.commits[len(d.commits)-1])))
	}
	if closed {
		ok(t, f.Close())
		d.commits = append(d.commits, "")
	}
	return d, string(m.get(dataPath))
}

// look opens a damaged file. fewest is how many commits it must hold if it is opened.
func (d *damaged) look(what, text string, fewest int) {
	d.t.Helper()
	d.states++
	m := newMemFS(512)
	m.put(dataPath, []byte(text))
	o := on(m)
	var read, opened []string
	f, err := Open(dataPath, o, collect(&opened))
	report, readErr := Report{Lines: len(opened)}, err
	if read = opened; d.states%4 == 0 { // it looks again and again at what is not clean
		read = nil
		report, readErr = Read(dataPath, o, collect(&read))
	}
	if fmt.Sprint(err) != fmt.Sprint(readErr) || !slices.Equal(read, opened) {
		d.t.Fatalf("%s: Read = %q, %v, but Open = %q, %v", what, read, readErr, opened, err)
	}
	switch {
	case err != nil:
		d.refused++
		if string(m.get(dataPath)) != text || len(m.names) > 1 {
			d.t.Fatalf("%s: refused, but changed", what)
		}
	case len(opened) < max(fewest, d.snap) || len(opened) > len(d.commits) ||
		!slices.Equal(opened, d.commits[:len(opened)]):
		d.t.Fatalf("%s: opened with %d commits, want at least %d and no other\n%s", what, len(opened), fewest,
			brief(text))
	default:
		if len(opened) < len(d.commits) {
			d.shorter++
		}
		if string(m.get(dataPath)) != text || len(m.names) > 1 {
			d.t.Fatalf("%s: Open changed the file", what)
		}
		if err := f.Settle(); err != nil {
			d.t.Fatal(err)
		}
		torn := strings.Contains(report.Repair, "not whole")
		if report.Lines != len(opened) || d.states%4 == 0 && torn != (len(m.names) > 1) {
			d.t.Fatalf("%s: report %+v, opened with %d", what, report, len(opened))
		}
	}
}

// After a clean end each bit that flips is refused, or takes no record away: the one
// commit that may be missing is the empty one. After a kill it may be the last.
func TestDamageBits(t *testing.T) {
	for name, closed := range map[string]bool{"closed": true, "killed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testDamageBits(t, closed) }) // Read sleeps
		})
	}
}

func testDamageBits(t *testing.T, closed bool) {
	d, text := newDamaged(t, closed)
	all := len(d.commits)
	step := 1
	if testing.Short() {
		step = 7
	}
	for bit := 0; bit < 8*len(text); bit += step {
		b := []byte(text)
		b[bit/8] ^= 1 << (bit % 8)
		d.look(fmt.Sprintf("bit %d of byte %d", bit%8, bit/8), string(b), all-1)
	}
	t.Logf("%d bits: %d refused, %d opened without the last commit", d.states, d.refused, d.shorter)
}

func TestDamageLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testDamageLines) // Read sleeps
}

func testDamageLines(t *testing.T) {
	d, text := newDamaged(t, false)
	lines := strings.SplitAfter(strings.TrimSuffix(text, closing), "\n")
	lines = lines[:len(lines)-1]
	all := len(d.commits)
	look := func(what string, changed ...[]string) {
		d.look(what, strings.Join(slices.Concat(changed...), "")+closing, all-1)
	}
	for i := range lines {
		look(fmt.Sprintf("line %d deleted", i+1), lines[:i], lines[i+1:])
		look(fmt.Sprintf("line %d joined to the next", i+1), lines[:i],
			[]string{strings.TrimSuffix(lines[i], "\n")}, lines[i+1:])
		look(fmt.Sprintf("line %d with CR LF", i+1), lines[:i],
			[]string{strings.TrimSuffix(lines[i], "\n") + "\r\n"}, lines[i+1:])
		for j := range len(lines) + 1 {
			look(fmt.Sprintf("line %d again at %d", i+1, j+1), lines[:j], lines[i:i+1], lines[j:])
			if i < j {
				fewest := all - 1
				if j == len(lines) {
					fewest = 0 // nothing shows that there was more
				}
				d.look(fmt.Sprintf("lines %d to %d deleted", i+1, j),
					strings.Join(slices.Concat(lines[:i], lines[j:]), "")+closing, fewest)
			}
			if i < j && j < len(lines) {
				swapped := slices.Clone(lines)
				swapped[i], swapped[j] = swapped[j], swapped[i]
				look(fmt.Sprintf("lines %d and %d swapped", i+1, j+1), swapped)
			}
		}
	}
	t.Logf("%d files with lines deleted, doubled, swapped, joined: %d refused, %d opened without their end",
		d.states, d.refused, d.shorter)
}

func TestDamageTruncated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testDamageTruncated) // Read sleeps
}

func testDamageTruncated(t *testing.T) {
	d, text := newDamaged(t, false)
	for size := range len(text) {
		d.look(fmt.Sprintf("cut to %d bytes", size), text[:size], 0)
	}
	if last := strings.Index(text, `"n":10,"w":[]`); d.refused < last {
		t.Errorf("%d of the %d lengths below the snapshot's end were refused", d.refused, last)
	}
	t.Logf("%d lengths: %d refused, %d opened without their end", d.states, d.refused, d.shorter)
}

// Blocks that a disk gave back wrong: zeros, noise, or another block.
func TestDamageBlocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testDamageBlocks) // Read sleeps
}

func testDamageBlocks(t *testing.T) {
	d, text := newDamaged(t, false)
	rng := rand.New(rand.NewPCG(4, 4))
	for range 2000 {
		b := []byte(text)
		size := min(1<<rng.IntN(10), len(b)/2)
		at, from := rng.IntN(len(b)-size+1), rng.IntN(len(b)-size+1)
		for i := range size {
			switch from % 3 {
			case 0:
				b[at+i] = 0
			case 1:
				b[at+i] = byte(rng.Uint32())
			case 2:
				b[at+i] = text[from+i]
			}
		}
		d.look(fmt.Sprintf("%d bytes at %d", size, at), string(b), 0)
	}
	t.Logf("%d files with a wrong block: %d refused, %d opened without their end", d.states, d.refused,
		d.shorter)
}
