package recordfile

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// memFS is a disk that can lose power. Each file has what processes read (its
// cache) and what is on disk; the two differ by the writes since its last sync.
// The names in the folder differ in the same way.
type memFS struct {
	mu     sync.Mutex
	names  map[string]*inode
	disk   map[string]*inode
	dirOps []dirOp         // since the last sync of the folder
	locked map[string]bool // by the path of the data file
	logged []string        // by files that openContent opened
	block  int             // bytes that reach the disk together

	// windows, if set, renames only files that are closed.
	windows bool

	// fault, if set, is asked before each call; what it returns is done instead.
	fault func(kind, path string) fault
	// changed, if set, is called after each call that changes something: a
	// crash may follow.
	changed func()
	// prefix, if set, is called before each write: the process may be killed
	// after any of its bytes.
	prefix func(n *inode, off int64, data []byte)
	// lie, if set, makes syncs of such a path do nothing.
	lie func(path string) bool
}

// fault is how a call fails.
type fault struct {
	err   error
	after bool // it has its effect nevertheless; a sync loses some of the bytes
	short int  // of a write: so many bytes have their effect
}

type inode struct {
	cache   []byte
	disk    []byte
	pending []change // since the last sync
	ghost   []byte   // the last that was written at each place, cut or not
	open    int      // by how many of memFile
}

// change is one write, or a truncation if data is nil.
type change struct {
	off  int64
	data []byte
}

// dirOp puts node at to (nil: nothing) and takes from away.
type dirOp struct {
	from, to string
	node     *inode
}

func newMemFS(block int) *memFS {
	return &memFS{names: map[string]*inode{}, disk: map[string]*inode{}, locked: map[string]bool{},
		block: block}
}

// empty is an empty disk of the same kind.
func (m *memFS) empty() *memFS {
	c := newMemFS(m.block)
	c.windows = m.windows
	return c
}

// put makes a file that is on disk.
func (m *memFS) put(path string, data []byte) *inode {
	data = slices.Clip(data)
	n := &inode{cache: slices.Clone(data), disk: data, ghost: data}
	m.names[path], m.disk[path] = n, n
	return n
}

// get is what processes read, nil if there is no such file.
func (m *memFS) get(path string) []byte {
	if n := m.names[path]; n != nil {
		return n.cache
	}
	return nil
}

// clone is the disk as it is, caches and all, after the process has died.
func (m *memFS) clone() *memFS {
	c := m.empty()
	nodes := map[*inode]*inode{}
	copied := func(n *inode) *inode {
		if n == nil {
			return nil
		}
		if nodes[n] == nil {
			nodes[n] = &inode{cache: slices.Clone(n.cache), disk: slices.Clone(n.disk),
				pending: slices.Clone(n.pending), ghost: slices.Clone(n.ghost)}
		}
		return nodes[n]
	}
	for path, n := range m.names {
		c.names[path] = copied(n)
	}
	for path, n := range m.disk {
		c.disk[path] = copied(n)
	}
	for _, op := range m.dirOps {
		c.dirOps = append(c.dirOps, dirOp{op.from, op.to, copied(op.node)})
	}
	return c
}

func (m *memFS) ask(kind, path string) fault {
	if m.fault == nil {
		return fault{}
	}
	return m.fault(kind, path)
}

func (m *memFS) notify() {
	if m.changed != nil {
		m.changed()
	}
}

func (m *memFS) dirChange(op dirOp) {
	op.apply(m.names)
	m.dirOps = append(m.dirOps, op)
	m.notify()
}

func (op dirOp) apply(names map[string]*inode) {
	delete(names, op.from)
	if op.node != nil {
		names[op.to] = op.node
	}
}

func pathError(op, path string, err error) error { return &fs.PathError{Op: op, Path: path, Err: err} }

func (m *memFS) Resolve(path string) (string, error) {
	if f := m.ask("resolve", path); f.err != nil {
		return "", f.err
	}
	return filepath.Join(topFolder, path), nil
}

type memLock struct {
	m    *memFS
	path string
}

func (m *memFS) Lock(path string) (io.Closer, error) {
	if f := m.ask("lock", path); f.err != nil {
		return nil, f.err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.locked[path] {
		return nil, &LockedError{File: path, PID: 1}
	}
	m.locked[path] = true
	return memLock{m, path}, nil
}

func (l memLock) Close() error {
	f := l.m.ask("unlock", l.path)
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	delete(l.m.locked, l.path)
	return f.err
}

func (m *memFS) Open(path string, flag int, _ handle) (handle, error) {
	if flag&os.O_CREATE != 0 {
		return m.create(path)
	}
	write := flag == os.O_RDWR
	if f := m.ask("open", path); f.err != nil {
		return nil, f.err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if path == topFolder {
		return &memFile{m: m, n: &inode{}, path: path}, nil
	}
	n := m.names[path]
	if n == nil {
		return nil, pathError("open", path, fs.ErrNotExist)
	}
	return m.opened(n, path, write), nil
}

func (m *memFS) opened(n *inode, path string, write bool) *memFile {
	n.open++
	return &memFile{m: m, n: n, path: path, write: write}
}

func (m *memFS) create(path string) (handle, error) {
	f := m.ask("create", path)
	if f.err != nil && !f.after {
		return nil, f.err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[path] != nil {
		return nil, pathError("open", path, fs.ErrExist)
	}
	n := &inode{}
	m.dirChange(dirOp{to: path, node: n})
	if f.err != nil {
		return nil, f.err
	}
	return m.opened(n, path, true), nil
}

func (m *memFS) RenamesOpen() bool { return !m.windows }

func (m *memFS) Rename(from, to string) error {
	f := m.ask("rename", to)
	if f.err != nil && !f.after {
		return f.err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, old := m.names[from], m.names[to]
	if n == nil {
		return pathError("rename", from, fs.ErrNotExist)
	}
	if m.windows && (n.open > 0 || old != nil && old.open > 0) {
		return pathError("rename", from, errors.New("the file is open"))
	}
	m.dirChange(dirOp{from, to, n})
	return f.err
}

func (m *memFS) Remove(path string) {
	if f := m.ask("remove", path); f.err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[path] != nil {
		m.dirChange(dirOp{from: path})
	}
}

func (m *memFS) SyncDir(dir handle) error {
	if f := m.ask("syncdir", topFolder); f.err != nil {
		return f.err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := dir.(*memFile); d.path != topFolder || d.closed {
		return pathError("sync", d.path, fs.ErrClosed)
	}
	if m.lie == nil || !m.lie(topFolder) {
		m.disk, m.dirOps = maps.Clone(m.names), nil
	}
	m.notify()
	return nil
}

func (m *memFS) Size(path string, f handle) (int64, error) {
	if f := m.ask("size", path); f.err != nil {
		return 0, f.err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.names[path]
	switch {
	case n == nil:
		return 0, nil
	case f == nil || f.(*memFile).n != n:
		return -1, nil
	}
	return int64(len(n.cache)), nil
}

// nameOf is the name that a file has now.
func (m *memFS) nameOf(n *inode) string {
	for path, node := range m.names {
		if node == n {
			return path
		}
	}
	return ""
}

type memFile struct {
	m      *memFS
	n      *inode
	path   string
	write  bool
	closed bool
}

func (f *memFile) check(op string) error {
	if f.closed {
		return pathError(op, f.path, fs.ErrClosed)
	}
	if !f.write {
		return pathError(op, f.path, fs.ErrPermission)
	}
	return nil
}

type memInfo struct {
	fs.FileInfo
	size int64
}

func (i memInfo) Size() int64 { return i.size }

func (f *memFile) Stat() (fs.FileInfo, error) {
	if x := f.m.ask("stat", f.path); x.err != nil {
		return nil, x.err
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return memInfo{size: int64(len(f.n.cache))}, nil
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if x := f.m.ask("read", f.path); x.err != nil {
		return 0, x.err
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return 0, f.check("read")
	}
	n := copy(p, f.n.cache[min(off, int64(len(f.n.cache))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt returns 0 with any error, as os.File does, whatever it has written.
func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	x := f.m.ask("write", f.path)
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check("write"); err != nil {
		return 0, err
	}
	if x.err != nil {
		if x.after {
			x.short = len(p)
		}
		p = p[:min(x.short, len(p))]
	}
	if len(p) > 0 {
		if f.m.prefix != nil {
			f.m.prefix(f.n, off, p)
		}
		f.n.do(change{off, slices.Clone(p)})
		f.m.notify()
	}
	if x.err != nil {
		return 0, x.err
	}
	return len(p), nil
}

func (f *memFile) Truncate(size int64) error {
	x := f.m.ask("truncate", f.path)
	if x.err != nil && !x.after {
		return x.err
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check("truncate"); err != nil {
		return err
	}
	f.n.do(change{off: size})
	f.m.notify()
	return x.err
}

func (f *memFile) Sync() error {
	x := f.m.ask("sync", f.path)
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.check("sync"); err != nil {
		return err
	}
	switch {
	case f.m.lie != nil && f.m.lie(f.m.nameOf(f.n)):
	case x.err == nil:
		f.n.sync(f.m.block)
	case x.after: // as Linux does: the pages count as clean, whatever reached the disk
		images := f.n.images(f.m.block, 1, rand.New(rand.NewPCG(uint64(len(f.n.cache)), 1)))
		for image := range images {
			f.n.disk = slices.Clone(image)
		}
		f.n.pending = nil
	}
	f.m.notify()
	return x.err
}

func (f *memFile) Close() error {
	x := f.m.ask("close", f.path)
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return pathError("close", f.path, fs.ErrClosed)
	}
	f.closed = true
	f.n.open--
	return x.err
}

// do changes what processes read.
func (n *inode) do(c change) {
	n.cache = c.on(n.cache)
	if c.data != nil {
		n.ghost = c.on(slices.Clone(n.ghost))
	}
	n.pending = append(n.pending, c)
}

// on returns b changed, in place if it fits.
func (c change) on(b []byte) []byte {
	end := int(c.off) + len(c.data)
	if c.data == nil && end < len(b) {
		return b[:end:end]
	}
	if end > len(b) {
		b = append(b, make([]byte, end-len(b))...)
	}
	copy(b[c.off:], c.data)
	return b
}

// sync puts the blocks that were written on disk; what a failed sync lost
// elsewhere stays lost.
func (n *inode) sync(block int) {
	disk := make([]byte, len(n.cache))
	copy(disk, n.disk)
	for b := range n.dirty(block) {
		lo := min(b*block, len(disk))
		copy(disk[lo:min(lo+block, len(disk))], n.cache[lo:])
	}
	n.disk, n.pending = disk, nil
}

// dirty is the blocks that pending writes touch.
func (n *inode) dirty(block int) map[int]bool {
	blocks := map[int]bool{}
	for _, c := range n.pending {
		for b := int(c.off) / block; b*block < int(c.off)+len(c.data); b++ {
			blocks[b] = true
		}
	}
	return blocks
}

// fills are what can stand in a block that belongs to the file but was never
// written: zeros, an older life of the file with right lines, noise, or what
// was written there and cut.
var fills = []func(n *inode, size int) []byte{
	func(n *inode, size int) []byte { return make([]byte, size) },
	func(n *inode, size int) []byte { return slices.Clone(oldLife[:size]) },
	func(n *inode, size int) []byte { return slices.Clone(noise[:size]) },
	func(n *inode, size int) []byte { b := make([]byte, size); copy(b, n.ghost); return b },
}

// oldNumbers is a number that no line of oldLife reaches.
const oldNumbers = 10_000

var oldLife, noise = func() (life, noise []byte) {
	h := header{before: 1, snap: 2, format: "events/1", saltText: "0123456789abcdef"}
	life = h.text()
	for n := uint64(2); len(life) < 64<<10; n++ {
		life = appendCommit(life, h.saltSum(), n, []byte(strings.Repeat("old", int(n)%30)))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 64 << 10 {
		noise = append(noise, byte(rng.Uint32()))
	}
	return life, noise
}()

// images are what can be on disk after a power loss: of each block that was
// written since the last sync any of its versions, at any size between, with
// any fill. All of them, or limit if there are more. An image is only good
// until the next.
func (n *inode) images(block, limit int, rng *rand.Rand) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		versions := [][]byte{n.disk}
		for _, c := range n.pending {
			versions = append(versions, c.on(slices.Clone(versions[len(versions)-1])))
		}
		if len(n.pending) == 0 {
			yield(n.disk)
			return
		}
		blocks := slices.Sorted(maps.Keys(n.dirty(block)))
		sizes := map[int]bool{}
		lo, hi := len(n.disk), len(n.disk)
		for _, v := range versions {
			lo, hi = min(lo, len(v)), max(hi, len(v))
			sizes[len(v)] = true
		}
		for at := lo/block*block + block; at < hi; at += block {
			sizes[at] = true
		}
		for range min(4, hi-lo) {
			sizes[lo+rng.IntN(hi-lo)] = true
		}
		allSizes := slices.Sorted(maps.Keys(sizes))
		combinations := uint64(1)
		for range blocks {
			if combinations *= uint64(len(versions)); combinations > 1<<30 {
				break
			}
		}
		build := func(combination uint64, size int, fill func(*inode, int) []byte) (image []byte, filled bool) {
			image = fill(n, size)
			known := copy(image, n.disk)
			for _, b := range blocks {
				v := versions[combination%uint64(len(versions))]
				combination /= uint64(len(versions))
				from := min(b*block, len(v), size)
				to := min(b*block+block, len(v), size)
				copy(image[from:to], v[from:to])
				if from <= known {
					known = max(known, to)
				}
			}
			return image, known < size
		}
		total := combinations * uint64(len(allSizes)*len(fills))
		if total > uint64(limit) {
			for range limit {
				size := allSizes[rng.IntN(len(allSizes))]
				image, _ := build(uint64(rng.Uint32()), size, fills[rng.IntN(len(fills))])
				if !yield(image) {
					return
				}
			}
			return
		}
		for combination := range combinations {
			for _, size := range allSizes {
				for _, fill := range fills {
					image, filled := build(combination, size, fill)
					if !yield(image) {
						return
					}
					if !filled {
						break
					}
				}
			}
		}
	}
}

// powerLosses are the disks that a power loss can leave now: each set of the
// changes to the folder since its last sync may have happened, and of each file
// there is one of its images.
func (m *memFS) powerLosses(limit int, rng *rand.Rand) func(yield func(*memFS) bool) {
	return func(yield func(*memFS) bool) {
		for set := range 1 << len(m.dirOps) {
			names := maps.Clone(m.disk)
			for i, op := range m.dirOps {
				if set&(1<<i) != 0 {
					op.apply(names)
				}
			}
			paths := slices.Sorted(maps.Keys(names))
			for _, main := range paths {
				if len(names[main].pending) == 0 && (main != paths[0] ||
					slices.ContainsFunc(paths, func(p string) bool { return len(names[p].pending) > 0 })) {
					continue // another file has the variants
				}
				for image := range names[main].images(m.block, limit, rng) {
					c := m.empty()
					for _, path := range paths {
						data := image
						if path != main {
							for data = range names[path].images(m.block, 1, rng) {
							}
						}
						n := c.put(path, data)
						n.ghost = names[path].ghost
					}
					if !yield(c) {
						return
					}
				}
			}
			if len(paths) == 0 && !yield(m.empty()) {
				return
			}
		}
	}
}

// appendCommit appends a commit's line with its comma and line end.
func appendCommit(b []byte, salt uint32, n uint64, records []byte) []byte {
	_, b, err := tail{salt: salt, n: n - 1}.add(b, records)
	if err != nil {
		panic(err)
	}
	return b
}
