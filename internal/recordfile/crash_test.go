package recordfile

import (
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var crashStates = flag.Int("crash.states", 100_000, "how many crash states TestCrash looks at, at least")

// crasher follows processes that use a file, and at each point where a crash can
// come looks at what it can leave: opening must not refuse it, and must find
// what may be there.
type crasher struct {
	rng    *rand.Rand
	limit  int // of images of one file at one point, and of prefixes of one write
	states int
	failed []string

	mayLive int // one of so many crashes is followed through a next process
	torn    int // states with a torn write
}

// The file in memory, in the folder at the top, as the system spells it.
var (
	topFolder = string(filepath.Separator)
	dataPath  = topFolder + "events.json"
)

func (c *crasher) fail(format string, args ...any) {
	c.failed = append(c.failed, fmt.Sprintf(format, args...))
}

// process is one process's use of the file.
type process struct {
	c     *crasher
	m     *memFS
	may   []string // what a crash may leave now; a content is its commits joined
	depth int      // of crashes that may follow
	f     *File
	now   string
}

// brief quotes, and counts a byte that repeats.
func brief(all ...string) string {
	var b strings.Builder
	for _, s := range all {
		b.WriteString("\n\t")
		for i := 0; i < len(s); {
			run := 1
			for i+run < len(s) && s[i+run] == s[i] {
				run++
			}
			q := strconv.QuoteToASCII(s[i : i+1])
			b.WriteString(q[1 : len(q)-1])
			if run > 3 {
				fmt.Fprintf(&b, "<%d times>", run)
			} else {
				run = 1
			}
			i += run
		}
	}
	return b.String()
}

func seq(commits ...string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, c := range commits {
			if !yield([]byte(c)) {
				return
			}
		}
	}
}

func join(content, commit string) string {
	if commit == "" {
		return content
	}
	return content + commit + "\n"
}

// openContent opens the file and returns its content. A new file goes on with the
// numbers of its older lives, as a file does after a rewrite.
func openContent(m *memFS) (f *File, content string, err error) {
	var b strings.Builder
	o := on(m)
	o.Logger = logTo(func(line string) { m.logged = append(m.logged, line) })
	f, err = Open(dataPath, o, func(l Line) error {
		b.WriteString(join("", l.Records))
		return nil
	})
	if err == nil && f.data == nil {
		f.n = oldNumbers
	}
	return f, b.String(), err
}

// watch looks at each crash that can come in the middle of what p does.
func (p *process) watch() {
	p.m.changed = func() {
		p.c.powerLoss(p.m, p.may, p.depth)
		if p.depth > 0 && (len(p.m.dirOps) > 0 || p.c.rng.IntN(p.c.mayLive) == 0) {
			p.c.next(p.m.clone(), p.may, p.depth-1)
		}
	}
	p.m.prefix = func(n *inode, off int64, data []byte) { p.c.kill(p.m, n, off, data, p.may, p.depth) }
}

func (p *process) unwatch() { p.m.changed, p.m.prefix = nil, nil }

// open returns whether the file could be opened and held what may be there.
func (p *process) open() bool {
	f, content, err := openContent(p.m)
	if err != nil {
		p.c.fail("refused: %v\n%s", err, brief(string(p.m.get(dataPath))))
		return false
	}
	if !slices.Contains(p.may, content) {
		p.c.fail("wrong content: %s\nmay be %s\nfile %s", brief(content), brief(p.may...),
			brief(string(p.m.get(dataPath))))
		return false
	}
	p.f, p.now = f, content
	return true
}

func (p *process) settle() error {
	var err error
	if p.f.data == nil {
		err = p.f.Rewrite(seq())
	} else {
		err = p.f.Settle()
	}
	if err == nil {
		p.answered(p.now)
	}
	return err
}

// answered: from now on there may be nothing else.
func (p *process) answered(content string) {
	p.now, p.may = content, []string{content}
	p.m.notify()
}

func (p *process) append(commit string) error {
	return p.change(join(p.now, commit), func() error { return p.f.Append([]byte(commit)) })
}

func (p *process) rewrite(commits ...string) error {
	var after string
	for _, c := range commits {
		after = join(after, c)
	}
	return p.change(after, func() error { return p.f.Rewrite(seq(commits...)) })
}

// change does what brings the file to a content, all or nothing. If it breaks
// the file, both may be found.
func (p *process) change(after string, do func() error) error {
	before, ended := p.may, p.f.Err()
	p.may = append(slices.Clone(before), after)
	err := do()
	switch {
	case err == nil:
		p.answered(after)
	case ended != nil || p.f.Err() == nil && !p.f.mustUndo:
		p.may = before
	}
	return err
}

func (c *crasher) must(err error) {
	if err != nil {
		c.fail("unexpected: %v", err)
	}
}

// powerLoss looks at each disk that a power loss can leave.
func (c *crasher) powerLoss(m *memFS, may []string, depth int) {
	for disk := range m.powerLosses(c.limit, c.rng) {
		c.look(disk, may, depth)
	}
}

// kill looks at what the death of the process within a write leaves: the bytes
// up to any one.
func (c *crasher) kill(m *memFS, n *inode, off int64, data []byte, may []string, depth int) {
	path := m.nameOf(n)
	for i := range data {
		if len(data) > c.limit && c.rng.IntN(len(data)) >= c.limit {
			continue
		}
		if depth > 0 && c.rng.IntN(c.mayLive) == 0 { // the power goes too, later
			left := m.clone()
			left.names[path].do(change{off, slices.Clone(data[:i])})
			c.states++
			c.next(left, may, depth-1)
			continue
		}
		left := m.empty()
		for name, node := range m.names {
			left.put(name, node.cache)
		}
		left.names[path].do(change{off, data[:i]})
		c.look(left, may, 0)
	}
}

// look opens what a crash left. Now and then the next process is followed like
// the first, else it only has to work.
func (c *crasher) look(m *memFS, may []string, depth int) {
	c.states++
	if len(c.failed) > 0 {
		return
	}
	if depth > 0 && c.rng.IntN(c.mayLive) == 0 {
		c.next(m, may, depth-1)
		return
	}
	p := &process{c: c, m: m, may: may}
	if !p.open() {
		return
	}
	for path := range m.names {
		if strings.Contains(path, ".torn-") {
			c.torn++
			break
		}
	}
	c.must(p.settle())
	c.must(p.append("probe"))
	c.must(p.f.Close())
	p.open()
}

// next is a process after a crash, with crashes of its own.
func (c *crasher) next(m *memFS, may []string, depth int) {
	p := &process{c: c, m: m, may: may, depth: depth}
	p.watch()
	defer p.unwatch()
	if !p.open() {
		return
	}
	if c.rng.IntN(3) == 0 {
		var commits []string
		if p.now != "" {
			commits = strings.Split(strings.TrimSuffix(p.now, "\n"), "\n")
		}
		c.must(p.rewrite(commits...))
	} else {
		c.must(p.settle())
	}
	c.must(p.append(c.commit(200)))
	c.must(p.append(c.commit(20)))
	c.must(p.f.Close())
}

// commit returns records of about size bytes.
func (c *crasher) commit(size int) string {
	return `{"r":"` + strings.Repeat(string(rune('a'+c.rng.IntN(26))), 1+c.rng.IntN(2*size)) + `"}`
}

// disk is one of Unix or of Windows, in turn.
func (c *crasher) disk(block int) *memFS {
	m := newMemFS(block)
	m.windows = c.rng.IntN(4) == 0
	return m
}

// aligned crashes one append of size bytes whose closing bracket before it is
// at align within its block.
func (c *crasher) aligned(block, align, size int) {
	p := &process{c: c, m: c.disk(block), may: []string{""}}
	if !p.open() {
		return
	}
	c.must(p.rewrite(`{"user":1}`))
	pad := (align - int(p.f.end) - len(appendCommit(nil, 0, p.f.n+1, nil))) % block
	c.must(p.append(strings.Repeat("x", (pad+block)%block)))
	if int(p.f.end)%block != align {
		c.fail("the bracket is at %d and not at %d of a block", p.f.end%int64(block), align)
	}
	p.watch()
	p.depth = 1
	c.must(p.append(strings.Repeat("y", size)))
	c.must(p.f.Close())
	p.unwatch()
}

// life is a few processes one after another with a power loss possible all the
// time. Some of them fail to sync, and restart on a cache that is not on disk.
func (c *crasher) life(block int) {
	p := &process{c: c, m: c.disk(block), may: []string{""}, depth: 1}
	p.watch()
	for range 3 {
		if !p.open() {
			return
		}
		if c.rng.IntN(2) == 0 && p.now != "" {
			c.must(p.rewrite(p.now[:strings.IndexByte(p.now, '\n')], c.commit(100)))
		} else {
			c.must(p.settle())
		}
		for range 1 + c.rng.IntN(3) {
			c.must(p.append(c.commit(block / 2)))
		}
		switch c.rng.IntN(4) {
		case 3: // it is so full that not even what a failed write left can be undone
			p.m.fault = func(kind, _ string) fault {
				if kind == "write" {
					return fault{err: errFull, short: c.rng.IntN(2 * block)}
				}
				return fault{}
			}
			for range 2 {
				if err := p.append(c.commit(block)); !errors.Is(err, errFull) || p.f.Err() != nil {
					c.fail("on a full disk: %v, %v", err, p.f.Err())
				}
			}
			p.m.fault = nil
			if c.rng.IntN(2) == 0 {
				c.must(p.append(c.commit(block / 2)))
			}
		case 0: // the disk is full for a while
			p.m.fault = once("write", 0, fault{err: errFull, short: c.rng.IntN(block)})
			if err := p.append(c.commit(block)); !errors.Is(err, errFull) || p.f.Err() != nil {
				c.fail("after a full disk: %v, %v", err, p.f.Err())
			}
			c.must(p.append(c.commit(block / 2)))
		case 1: // a sync fails, and says that it did not the next time
			p.m.fault = once("sync", 0, fault{err: errIO, after: true})
			if err := p.append(c.commit(block)); !errors.Is(err, ErrBroken) {
				c.fail("after a failed sync: %v", err)
			}
		}
		p.m.fault = nil
		_ = p.f.Close()
	}
	p.unwatch()
}

var (
	errFull = fmt.Errorf("injected: %w", diskFull)
	errIO   = fmt.Errorf("injected: %w", syscall.EIO)
)

// once fails the k-th call of a kind, counted from 0.
func once(kind string, k int, f fault) func(string, string) fault {
	return func(called, _ string) fault {
		if called == kind {
			k--
			if k == -1 {
				return f
			}
		}
		return fault{}
	}
}

func TestCrash(t *testing.T) {
	t.Parallel()
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // the heap is tiny
	start := time.Now()
	limit, want, step := 10, *crashStates, 1
	if want > 1_000_000 {
		limit = 1000
	}
	if testing.Short() {
		want, step = want/4, 4
	}
	states, torn := 0, 0
	for round := 0; states < want && !t.Failed(); round++ {
		// Every place of a write within a block, shared out among a few goroutines.
		var crashers [4]crasher
		var wg sync.WaitGroup
		for i := range crashers {
			c := &crashers[i]
			c.limit, c.mayLive = limit, 500
			c.rng = rand.New(rand.NewPCG(uint64(i), uint64(round)))
			wg.Go(func() {
				next := step * len(crashers)
				for align := round%step + i*step; align < 512 && len(c.failed) == 0; align += next {
					size := 40 + c.rng.IntN(200)
					if c.rng.IntN(2) == 0 {
						size += c.rng.IntN(1500)
					}
					c.aligned(512, align, size)
					c.aligned(4096, align*8+round%8, 5*size)
					if align/next%32 == 0 {
						c.life(512)
						c.life(4096)
					}
				}
			})
		}
		wg.Wait()
		for i, c := range crashers {
			states, torn = states+c.states, torn+c.torn
			if len(c.failed) > 0 {
				t.Errorf("round %d, crasher %d, after %d states: %s", round, i, c.states, c.failed[0])
			}
		}
	}
	t.Logf("%d crash states, %d with a torn write put aside, in %v: nothing lost, refused or halved",
		states, torn, time.Since(start).Round(time.Millisecond))
	if torn < states/100 {
		t.Errorf("only %d of %d states had a torn write", torn, states)
	}
}

// The crash test has to find the mistakes that it is there for.
func TestCrashFindsMistakes(t *testing.T) {
	t.Parallel()
	lie := func(suffix string) func(string) bool {
		return func(path string) bool { return strings.HasSuffix(path, suffix) }
	}
	for name, prepare := range map[string]func(p *process){
		"data not synced":    func(p *process) { p.m.lie = lie("events.json") },
		"rewrite not synced": func(p *process) { p.m.lie = lie(".tmp") },
		"folder not synced":  func(p *process) { p.m.lie = lie(topFolder) },
		"not settled":        func(p *process) { p.c.mayLive = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			c := &crasher{rng: rand.New(rand.NewPCG(2, 2)), limit: 1000, mayLive: 500}
			p := &process{c: c, m: newMemFS(512), may: []string{""}}
			prepare(p)
			unsettled := c.mayLive < 0
			p.open()
			c.must(p.rewrite("a"))
			p.watch()
			c.must(p.append("b"))
			if unsettled {
				p.m.fault = once("sync", 0, fault{err: errIO, after: true})
				_ = p.append(strings.Repeat("c", 2000))
				p.m.fault = nil
				_ = p.f.Close()
				p.open()
				p.may = []string{p.now} // shown as durable too early
				p.m.changed()
			}
			p.unwatch()
			if len(c.failed) == 0 {
				t.Errorf("%d states, and none was found wrong", c.states)
			}
		})
	}
}
