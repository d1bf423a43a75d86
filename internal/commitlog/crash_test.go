package commitlog

import (
	"errors"
	"flag"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The crash tests let processes use a file on a [memDisk]. After each change of the disk, they look at the
// states that a crash can leave at this moment: the file must open, and hold one of the allowed contents.
//
//	process     open -- append "a" ----------- append "b" ------------
//	changes           write      sync        write       sync
//	crash here     ^          ^         ^           ^           ^
//	allowed        ""     "" or "a"    "a"     "a" or "ab"     "ab"
//
// A content is the commits that have records, in order. While a process appends, the content before and
// the one after are allowed; once Append has returned, only one is.
//
// TestOneCrash does one crash by hand. TestCrash does the others: each alignment of a write in its block, and
// processes with failed writes and syncs. TestEverySync leaves out one sync after another, and requires that
// the same checks notice it.

const memPath = memDir + "events.json"

var (
	crashStates = flag.Int("crash.states", 5_000, "minimum number of crash states that TestCrash looks at")
	crashSeed   = flag.Uint64("crash.seed", 0, "seed of TestCrash, which chooses other states")
)

func TestOneCrash(t *testing.T) {
	d := newMemDisk(512)
	l, _ := openMem(t, d)
	check(t, l.Append([]byte(`{"event":1}`)))

	// The power fails while the next commit is written: its first block reaches the disk, its second doesn't.
	before := d.text(memPath)
	d.changed = func() { panic("crash") }
	func() {
		defer func() { recover() }()
		l.Append([]byte(strings.Repeat("x", 1000)))
	}()
	n := d.names[memPath]
	image := append(slices.Clone(n.cache[:512]), make([]byte, len(n.cache)-512)...)
	crashed := newMemDisk(512)
	crashed.put(memPath, image)

	// The next process finds the commit that was acknowledged, and saves the rest.
	_, commits := openMem(t, crashed)
	if want := []string{"", `{"event":1}`}; !slices.Equal(commits, want) {
		t.Errorf("commits after the crash: got %q, want %q", commits, want)
	}
	rest := string(image[len(before)-len(closing):])
	if torn := crashed.torn(); !slices.Equal(torn, []string{rest}) {
		t.Errorf("saved torn writes: got %q, want %q", torn, rest)
	}
	_, commits = openMem(t, crashed.clone())
	if want := []string{"", `{"event":1}`, ""}; !slices.Equal(commits, want) {
		t.Errorf("commits after recovery: got %q, want %q", commits, want)
	}
}

// openMem opens the file on a simulated disk and returns its commits.
func openMem(t *testing.T, d *memDisk) (*Log, []string) {
	t.Helper()
	var commits []string
	l, err := Open(memPath, memOptions(d), collect(&commits))
	check(t, err)
	return l, commits
}

func memOptions(d *memDisk) Options {
	o := options
	o.fs = d
	o.Logger = slog.New(slog.NewTextHandler(&d.log, nil))
	return o
}

// A crasher counts crash states and collects what is wrong with them.
type crasher struct {
	rng    *rand.Rand
	limit  int // of images of one file at one moment, and of lengths of one write
	follow int // one of so many crashes is followed by a process that may crash itself
	states int
	torn   int // number of states with a torn write
	failed []string
}

func (c *crasher) fail(format string, args ...any) {
	c.failed = append(c.failed, fmt.Sprintf(format, args...))
}

func (c *crasher) must(err error) {
	if err != nil {
		c.fail("unexpected error: %v", err)
	}
}

// allowed is what a crash may leave.
type allowed struct {
	contents []string
	torn     string // bytes that must be at the end of the file or be saved
}

// A process uses the file until it closes it or dies.
type process struct {
	crasher *crasher
	disk    *memDisk
	log     *Log
	content string // acknowledged content
	allowed
	depth int         // number of crashes that may follow one another
	check func(error) // called with errors that no one expects
}

func (c *crasher) process(d *memDisk, may allowed, depth int) *process {
	return &process{crasher: c, disk: d, allowed: may, depth: depth, check: c.must}
}

var allowedAtFirst = allowed{contents: []string{""}}

// watch makes the crasher look at each crash that can happen from now on.
func (p *process) watch() {
	p.disk.changed = func() {
		if len(p.crasher.failed) > 0 {
			return
		}
		for disk := range p.disk.powerLosses(p.crasher.limit, p.crasher.rng) {
			p.crasher.look(disk, p.allowed, p.depth)
		}
		if p.depth > 0 && (len(p.disk.renames) > 0 || p.crasher.rng.IntN(p.crasher.follow) == 0) {
			p.crasher.next(p.disk.clone(), p.allowed, p.depth-1)
		}
	}
	p.disk.writing = p.kill
}

func (p *process) unwatch() { p.disk.changed, p.disk.writing = nil, nil }

// kill looks at the death of the process within a write, after any of its bytes.
func (p *process) kill(n *inode, offset int64, data []byte) {
	c, path := p.crasher, p.disk.nameOf(n)
	for i := range data {
		if len(data) > c.limit && c.rng.IntN(len(data)) >= c.limit {
			continue
		}
		killed := p.disk.clone()
		killed.names[path].apply(change{offset, slices.Clone(data[:i])})
		if p.depth > 0 && c.rng.IntN(c.follow) == 0 {
			c.states++
			c.next(killed, p.allowed, p.depth-1)
		} else {
			c.look(killed, p.allowed, 0)
		}
	}
}

// open opens the file and reports whether its content is allowed.
func (p *process) open() bool {
	before := p.disk.text(memPath)
	l, content, err := openContent(p.disk)
	if err != nil {
		p.crasher.fail("refused: %v\n%s", err, brief(before))
		return false
	}
	return p.opened(l, content, before)
}

func openContent(d *memDisk) (l *Log, content string, err error) {
	l, err = Open(memPath, memOptions(d), func(c Commit) error {
		content = join(content, string(c.Records))
		return nil
	})
	return l, content, err
}

func (p *process) opened(l *Log, content, before string) bool {
	if !slices.Contains(p.contents, content) {
		p.crasher.fail("content: got %s, want one of %s\nfile %s",
			brief(content), brief(p.contents...), brief(before))
		return false
	}
	p.log = l
	p.acknowledge(content)
	if l.end.n < staleNumbers && content == "" { // it is new: continue after the numbers of the stale lines
		n := l.end.n
		l.end.n = staleNumbers
		err := p.rewrite()
		if err != nil {
			l.end.n = n
			p.check(err)
			p.check(l.Close())
			return false
		}
	}
	return true
}

// acknowledge makes content the only one that is allowed.
func (p *process) acknowledge(content string) {
	p.content, p.contents = content, []string{content}
	p.disk.notify()
}

func (p *process) append(commit string) error {
	return p.change(join(p.content, commit), func() error { return p.log.Append([]byte(commit)) })
}

func (p *process) rewrite(commits ...string) error {
	content := ""
	for _, c := range commits {
		content = join(content, c)
	}
	return p.change(content, func() error { return p.log.Rewrite(seq(commits...)) })
}

// change calls write, which changes the content to after or not at all. If it breaks the log, both are
// allowed.
func (p *process) change(after string, write func() error) error {
	before, broken := p.contents, p.log.Err() != nil
	p.contents = append(slices.Clone(before), after)
	err := write()
	if err == nil {
		p.acknowledge(after)
	} else if broken || p.log.Err() == nil {
		p.contents = before
		p.disk.notify()
	}
	return err
}

// commits returns the acknowledged commits.
func (p *process) commits() []string {
	if p.content == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(p.content, "\n"), "\n")
}

// look opens what a crash left, and now and then continues with a process that may crash again.
func (c *crasher) look(d *memDisk, may allowed, depth int) {
	c.states++
	if len(c.failed) > 0 {
		return
	}
	if !strings.Contains(d.text(memPath)+strings.Join(d.torn(), ""), may.torn) {
		c.fail("the torn write was not saved: %s", brief(d.text(memPath)))
	}
	if depth > 0 && c.rng.IntN(c.follow) == 0 {
		c.next(d, may, depth-1)
		return
	}
	p := c.process(d, may, 0)
	if !p.open() {
		return
	}
	if d.tornWrites > 0 {
		c.torn++
	}
	if c.rng.IntN(4) == 0 {
		c.must(p.append("probe"))
		c.must(p.log.Close())
		p.open()
	}
}

// next is a process after a crash, with crashes of its own.
func (c *crasher) next(d *memDisk, may allowed, depth int) {
	p := c.process(d, may, depth)
	p.watch()
	defer p.unwatch()
	if !p.open() {
		return
	}
	if c.rng.IntN(3) == 0 {
		c.must(p.rewrite(p.commits()...))
	}
	c.must(p.append(c.commit(200)))
	c.must(p.append(c.commit(20)))
	c.must(p.log.Close())
}

// commit returns records of about size bytes.
func (c *crasher) commit(size int) string {
	return `{"r":"` + strings.Repeat(string(rune('a'+c.rng.IntN(26))), 1+c.rng.IntN(2*size)) + `"}`
}

// aligned crashes an append of size bytes that begins at an offset within its block.
func (c *crasher) aligned(block, offset, size int) {
	p := c.process(newMemDisk(block), allowedAtFirst, 0)
	if !p.open() {
		return
	}
	c.must(p.rewrite(`{"user":1}`))
	padding := (offset - int(p.log.end.offset) - len(appendLine(nil, 0, p.log.end.n+1, nil))) % block
	c.must(p.append(strings.Repeat("x", (padding+block)%block)))
	if int(p.log.end.offset)%block != offset {
		c.fail("the closing bracket is at %d of a block, want %d", int(p.log.end.offset)%block, offset)
	}
	p.depth = 1
	p.watch()
	c.must(p.append(strings.Repeat("y", size)))
	c.must(p.log.Close())
	p.unwatch()
}

// processes is a few processes, one after another, whose writes and syncs fail, so that they restart
// on a cache that isn't on disk. A crash can happen all the time.
func (c *crasher) processes(block int) {
	p := c.process(newMemDisk(block), allowedAtFirst, 1)
	p.watch()
	defer p.unwatch()
	for range 3 {
		if !p.open() {
			return
		}
		if c.rng.IntN(2) == 0 && p.content != "" {
			c.must(p.rewrite(p.commits()[0], c.commit(100)))
		}
		for range 1 + c.rng.IntN(3) {
			c.must(p.append(c.commit(block / 2)))
		}
		switch c.rng.IntN(3) {
		case 0:
			p.disk.fault = once("write", 0, fault{err: errFull, short: c.rng.IntN(block)})
			err := p.append(c.commit(block))
			if !errors.Is(err, errFull) {
				c.fail("Append to a full disk = %v, want %v", err, errFull)
			}
			c.must(p.log.Err())
			c.must(p.append(c.commit(block / 2)))
		case 1:
			p.disk.fault = once("sync", 0, fault{err: errIO, after: true})
			err := p.append(c.commit(block))
			if !errors.Is(err, ErrBroken) {
				c.fail("Append with a failed sync = %v, want %v", err, ErrBroken)
			}
		}
		p.disk.fault = nil
		p.log.Close()
	}
}

func TestCrash(t *testing.T) {
	t.Parallel()
	start := time.Now()
	states, torn := 0, 0
	for round := 0; states < *crashStates && !t.Failed(); round++ {
		const step = 32                // a round has every 32nd offset of a write within a block
		crashers := make([]crasher, 4) // which share the offsets
		var wg sync.WaitGroup
		for i := range crashers {
			c := &crashers[i]
			source := rand.NewPCG(*crashSeed+uint64(i), uint64(round))
			*c = crasher{rng: rand.New(source), limit: 10, follow: 500}
			wg.Go(func() {
				stride := step * len(crashers)
				for offset := round%step + i*step; offset < 512 && len(c.failed) == 0; offset += stride {
					size := 40 + c.rng.IntN(200)
					if c.rng.IntN(2) == 0 {
						size += c.rng.IntN(1500)
					}
					c.aligned(512, offset, size)
					c.aligned(4096, offset*8+round%8, 5*size)
				}
				switch i {
				case 0:
					c.processes(512)
				case 1:
					c.processes(4096)
				}
			})
		}
		wg.Wait()
		for i, c := range crashers {
			states, torn = states+c.states, torn+c.torn
			if len(c.failed) > 0 {
				t.Errorf("round %d, crasher %d, after %d states: got %s, want no failure",
					round, i, c.states, c.failed[0])
			}
		}
	}
	t.Logf("%d crash states, %d with a torn write, in %v", states, torn, time.Since(start).Round(time.Second))
	if torn < states/100 {
		t.Errorf("states with a torn write: got %d of %d, want more", torn, states)
	}
}

// A session is processes, one after another, that go through everything that can happen to a file. Its tests
// make it fail at every point.
type session struct {
	*process
	step   string                  // name of the current step
	counts map[string]int          // number of calls by step and kind
	report func(err error)         // called with each error
	inject func(call string) fault // if set, the session's own fault
}

func newSession(d *memDisk, seed uint64, report func(error)) *session {
	c := &crasher{rng: rand.New(rand.NewPCG(seed, 5)), limit: 1, follow: 1 << 30}
	s := &session{process: c.process(d, allowedAtFirst, 0), report: report, counts: map[string]int{}}
	s.check = s.note
	outer := d.fault
	d.fault = func(call, path string) fault {
		if s.inject != nil {
			f := s.inject(call)
			if f.err != nil {
				return f
			}
		}
		if outer == nil {
			return fault{}
		}
		return outer(call, path)
	}
	return s
}

// count counts a call of a kind, and returns its name: "torn: sync 1" is the first sync of the step torn.
func (s *session) count(call string) (name string) {
	name = s.step + ": " + call
	s.counts[name]++
	return fmt.Sprint(name, " ", s.counts[name])
}

// failing calls write while the first call of a kind fails.
func (s *session) failing(call string, f fault, write func() error) {
	faults := once(call, 0, f)
	s.inject = func(call string) fault { return faults(call, "") }
	s.note(write())
	s.inject = nil
}

func (s *session) note(err error) {
	if err == nil {
		return
	}
	expected := func(target error) bool { return errors.Is(err, target) }
	if !slices.ContainsFunc([]error{errIO, errFull, ErrBroken}, expected) {
		s.crasher.fail("%s: not the injected error: %v", s.step, err)
	}
	s.report(err)
}

// start opens the file as the next process and appends two commits.
func (s *session) start(step string) bool {
	s.step = step
	before := s.disk.text(memPath)
	l, content, err := openContent(s.disk)
	if err != nil {
		s.note(err)
		return false
	}
	if !s.opened(l, content, before) {
		return false
	}
	s.step = step + ": append"
	s.note(s.append(s.crasher.commit(100)))
	s.note(s.append(s.crasher.commit(600)))
	return true
}

func (s *session) end() {
	s.step += ": close"
	s.note(s.log.Close())
}

// watch makes the session look at crashes from now on. Power losses are enough.
func (s *session) watch() {
	s.process.watch()
	s.disk.writing = nil
}

func (s *session) run() {
	defer s.unwatch()
	if s.start("create") {
		s.step = "failed write"
		written := fault{err: errFull, after: true}
		s.failing("write", written, func() error { return s.append(s.crasher.commit(600)) })
		s.note(s.append(s.crasher.commit(600)))
		s.end()
	}
	if n := s.disk.names[memPath]; n != nil && s.log != nil && s.log.Err() == nil {
		s.torn = ",torn by a kill"
		n.apply(change{int64(len(n.cache)) - 2, []byte(s.torn)})
		n.sync(s.disk.block)
	}
	if s.start("torn") {
		s.step = "rewrite"
		s.note(s.rewrite(s.commits()...))
		s.note(s.append(s.crasher.commit(600)))
		s.step = "failed sync"
		lost := fault{err: errIO, after: true}
		s.failing("sync", lost, func() error { return s.append(s.crasher.commit(2000)) })
		s.end()
	}
	if s.start("after a failed sync") {
		s.step = "killed before the directory was synced"
		s.failing("syncdir", fault{err: errIO}, func() error { return s.rewrite(s.commits()...) })
		s.end()
	}
	if s.start("after a kill in a rewrite") {
		s.end()
	}
}

// TestEverySync leaves out each sync of a session in turn, and the writes of a recovery. The crash states
// must show it.
func TestEverySync(t *testing.T) {
	t.Parallel()
	var syncs []string
	whole := newSession(newMemDisk(512), 0, func(error) {})
	whole.disk.skipSync = func(call, _ string) bool {
		syncs = append(syncs, whole.count(call))
		return false
	}
	whole.watch()
	whole.run()
	if len(whole.crasher.failed) > 0 {
		t.Fatalf("with all syncs: got %s, want no failure", whole.crasher.failed[0])
	}
	// These syncs don't matter in this session. In others they do: the code is the same.
	harmless := []string{
		"create: syncdir 1",                 // nothing was acknowledged yet
		"torn: sync 2",                      // truncates again
		"torn: syncdir 2",                   // the first did it
		"after a failed sync: syncdir 1",    // there was no rename
		"after a kill in a rewrite: sync 1", // there was nothing after the snapshot

		// The next process appends the empty commit again.
		"failed write: close: sync 1",
		"after a kill in a rewrite: append: close: sync 1",
	}
	for _, skipped := range syncs {
		if slices.Contains(harmless, skipped) {
			continue
		}
		t.Run(skipped, func(t *testing.T) {
			t.Parallel()
			wantWrongStates(t, func(s *session) {
				s.disk.skipSync = func(call, _ string) bool {
					if s.count(call) != skipped {
						return false
					}
					s.watch()
					return true
				}
			})
		})
	}
	t.Run("writes of recovery", func(t *testing.T) {
		t.Parallel()
		wantWrongStates(t, func(s *session) {
			s.disk.skipSame = true
			s.watch()
		})
	})
}

// wantWrongStates runs sessions with a mistake until a crash state is wrong. Whether one of them shows it
// depends on the bytes that a failed sync happens to lose.
func wantWrongStates(t *testing.T, prepare func(*session)) {
	t.Helper()
	states := 0
	for seed := range uint64(10) {
		s := newSession(newMemDisk(512), seed, func(error) {})
		s.crasher.limit = 300
		prepare(s)
		s.run()
		states += s.crasher.states
		if len(s.crasher.failed) > 0 {
			return
		}
	}
	t.Errorf("crash states that are wrong: got 0 of %d, want one", states)
}

// seq returns the arguments of Rewrite.
func seq(commits ...string) (n int, all iter.Seq[[]byte]) {
	return len(commits), func(yield func([]byte) bool) {
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

// brief quotes texts, with a count instead of repeated bytes.
func brief(texts ...string) string {
	var b strings.Builder
	for _, s := range texts {
		b.WriteString("\n\t")
		for i := 0; i < len(s); {
			run := len(s[i:]) - len(strings.TrimLeft(s[i:], s[i:i+1]))
			run = max(run, 1)
			quoted := strconv.QuoteToASCII(s[i : i+1])
			b.WriteString(quoted[1 : len(quoted)-1])
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
