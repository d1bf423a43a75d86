package commitlog

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
)

// A memDisk is a file system in memory that can lose power. It holds one directory.
//
//	                      names                          inode of a file
//	processes see         names: events.json, …          cache:    [......new.new]
//	not yet on disk       renames (create, rename,       pending:  writes and truncations since the
//	                      remove since SyncDir)                    last Sync
//	power loss keeps      durable                        durable:  [......old]
//
// A power loss keeps any subset of renames. Of each file it keeps any version of each block that pending
// writes touched, at any length that the file had or passed; a block that belongs to the file, but was never
// written, holds zeros, noise, stale lines or what was once there. images and powerLosses enumerate these
// states, or choose some of them at random. The death of a process loses nothing (clone).
//
// Tests make calls fail (fault), skip syncs (skipSync), and look at the disk after each change (changed).
type memDisk struct {
	names   map[string]*inode
	durable map[string]*inode
	renames []rename
	locked  map[string]bool
	block   int // bytes that reach the disk together

	fault      func(call, path string) fault      // if set, called before each call
	skipSync   func(call, path string) bool       // if set, syncs for which it returns true do nothing
	skipSame   bool                               // writes of the same bytes do nothing, as without recovery
	changed    func()                             // if set, called after each change; a crash may follow
	writing    func(n *inode, at int64, b []byte) // if set, called before each write; a kill may cut it
	tornWrites int                                // number of torn writes saved
	log        bytes.Buffer                       // of processes that use the disk
}

// A fault is how a call fails. The zero fault is none.
type fault struct {
	err   error
	after bool // the call has its effect nevertheless; a sync loses some of the bytes
	short int  // number of bytes that a write writes before it fails
}

type inode struct {
	cache   []byte
	durable []byte
	pending []change // since the last sync
	ghost   []byte   // the last bytes written at each offset, truncated or not
}

// A change is a write, or a truncation if data is nil.
type change struct {
	offset int64
	data   []byte
}

// A rename puts node at to, unless it is nil, and removes from.
type rename struct {
	from, to string
	node     *inode
}

func (r rename) apply(names map[string]*inode) {
	delete(names, r.from)
	if r.node != nil {
		names[r.to] = r.node
	}
}

func newMemDisk(block int) *memDisk {
	return &memDisk{
		names:   map[string]*inode{},
		durable: map[string]*inode{},
		locked:  map[string]bool{},
		block:   block,
	}
}

// put creates a file that is durable.
func (d *memDisk) put(path string, data []byte) *inode {
	data = slices.Clip(data)
	n := &inode{cache: slices.Clone(data), durable: data, ghost: data}
	d.names[path], d.durable[path] = n, n
	return n
}

// text returns the content of a file as processes see it.
func (d *memDisk) text(path string) string {
	n := d.names[path]
	if n == nil {
		return ""
	}
	return string(n.cache)
}

// torn returns the content of the torn writes that were saved.
func (d *memDisk) torn() (texts []string) {
	for _, path := range slices.Sorted(maps.Keys(d.names)) {
		if strings.Contains(path, tornSuffix) {
			texts = append(texts, d.text(path))
		}
	}
	return texts
}

// clone returns the disk after the death of all processes, with its caches.
func (d *memDisk) clone() *memDisk {
	c := newMemDisk(d.block)
	copies := map[*inode]*inode{nil: nil}
	copied := func(n *inode) *inode {
		if copies[n] == nil && n != nil {
			copies[n] = &inode{slices.Clone(n.cache), slices.Clone(n.durable), slices.Clone(n.pending),
				slices.Clone(n.ghost)}
		}
		return copies[n]
	}
	for path, n := range d.names {
		c.names[path] = copied(n)
	}
	for path, n := range d.durable {
		c.durable[path] = copied(n)
	}
	for _, r := range d.renames {
		c.renames = append(c.renames, rename{r.from, r.to, copied(r.node)})
	}
	return c
}

func (d *memDisk) ask(call, path string) fault {
	if d.fault == nil {
		return fault{}
	}
	return d.fault(call, path)
}

// skips reports whether a sync does nothing.
func (d *memDisk) skips(call, path string) bool { return d.skipSync != nil && d.skipSync(call, path) }

func (d *memDisk) notify() {
	if d.changed != nil {
		d.changed()
	}
}

func (d *memDisk) rename(r rename) {
	r.apply(d.names)
	d.renames = append(d.renames, r)
	d.notify()
}

func (d *memDisk) Resolve(path string) (string, error) { return path, d.ask("resolve", path).err }

type memLock struct {
	disk *memDisk
	path string
}

func (d *memDisk) Lock(path string) (io.Closer, error) {
	injected := d.ask("lock", path)
	if injected.err != nil {
		return nil, injected.err
	}
	if d.locked[path] {
		return nil, ErrLocked
	}
	d.locked[path] = true
	return memLock{d, path}, nil
}

func (l memLock) Close() error {
	delete(l.disk.locked, l.path)
	return l.disk.ask("unlock", l.path).err
}

const memDir = "/"

func (d *memDisk) Open(path string) (file, error) { return d.open(path, false) }

func (d *memDisk) OpenLocked(path string) (file, error) { return d.open(path, true) }

func (d *memDisk) open(path string, writable bool) (file, error) {
	injected := d.ask("open", path)
	if injected.err != nil {
		return nil, injected.err
	}
	n := d.names[path]
	if n == nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return &memFile{disk: d, inode: n, path: path, writable: writable}, nil
}

func (d *memDisk) Create(path string, _ file) (file, error) {
	injected := d.ask("create", path)
	if injected.err != nil && !injected.after {
		return nil, injected.err
	}
	if d.names[path] != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrExist}
	}
	n := &inode{}
	d.rename(rename{to: path, node: n})
	if injected.err != nil {
		return nil, injected.err
	}
	if strings.Contains(path, tornSuffix) {
		d.tornWrites++
	}
	return &memFile{disk: d, inode: n, path: path, writable: true}, nil
}

func (d *memDisk) Replace(tmp, old file, path string) (file, error) {
	injected := d.ask("replace", path)
	if old == nil && d.names[path] != nil {
		tmp.Close()
		return nil, errAppeared
	}
	if injected.err == nil || injected.after {
		from := path + tmpSuffix
		if old == nil { // a link
			d.rename(rename{to: path, node: d.names[from]})
			d.rename(rename{from: from})
		} else {
			d.rename(rename{from, path, d.names[from]})
		}
	}
	if injected.err != nil {
		tmp.Close()
		return old, checkRename(injected.err)
	}
	if old != nil {
		old.Close()
	}
	return tmp, nil
}

func (d *memDisk) Remove(path string) {
	injected := d.ask("remove", path)
	if injected.err == nil && d.names[path] != nil {
		d.rename(rename{from: path})
	}
}

func (d *memDisk) SyncDir(string) error {
	injected := d.ask("syncdir", memDir)
	if injected.err != nil {
		return injected.err
	}
	if !d.skips("syncdir", memDir) {
		d.durable, d.renames = maps.Clone(d.names), nil
	}
	d.notify()
	return nil
}

func (d *memDisk) Size(path string, f file) (int64, error) {
	injected := d.ask("size", path)
	if injected.err != nil {
		return 0, injected.err
	}
	if d.names[path] != f.(*memFile).inode {
		return -1, nil
	}
	return int64(len(d.names[path].cache)), nil
}

// nameOf returns the name that a file has now.
func (d *memDisk) nameOf(n *inode) string {
	for path, node := range d.names {
		if node == n {
			return path
		}
	}
	return ""
}

type memFile struct {
	disk     *memDisk
	inode    *inode
	path     string
	writable bool
	closed   bool
}

func (f *memFile) check(write bool) error {
	if f.closed {
		return fs.ErrClosed
	}
	if write && !f.writable {
		return fs.ErrPermission
	}
	return nil
}

func (f *memFile) ReadAt(b []byte, at int64) (int, error) {
	injected := f.disk.ask("read", f.path)
	if injected.err != nil {
		return 0, injected.err
	}
	err := f.check(false)
	if err != nil {
		return 0, err
	}
	n := copy(b, f.inode.cache[min(at, int64(len(f.inode.cache))):])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt returns 0 with any error, as os.File does, however much it has written.
func (f *memFile) WriteAt(b []byte, at int64) (int, error) {
	injected := f.disk.ask("write", f.path)
	err := f.check(true)
	if err != nil {
		return 0, err
	}
	data := b
	if injected.err != nil && !injected.after {
		data = b[:min(injected.short, len(b))]
	}
	cache := f.inode.cache
	same := at+int64(len(data)) <= int64(len(cache)) && bytes.Equal(cache[at:][:len(data)], data)
	if len(data) > 0 && !(same && f.disk.skipSame) {
		if f.disk.writing != nil {
			f.disk.writing(f.inode, at, data)
		}
		f.inode.apply(change{at, slices.Clone(data)})
		f.disk.notify()
	}
	if injected.err != nil {
		return 0, injected.err
	}
	return len(b), nil
}

func (f *memFile) Truncate(size int64) error {
	injected := f.disk.ask("truncate", f.path)
	if injected.err != nil && !injected.after {
		return injected.err
	}
	err := f.check(true)
	if err != nil {
		return err
	}
	f.inode.apply(change{offset: size})
	f.disk.notify()
	return injected.err
}

func (f *memFile) Sync() error {
	injected := f.disk.ask("sync", f.path)
	err := f.check(true)
	if err != nil {
		return err
	}
	if injected.after { // as Linux does: the pages count as clean, whatever reached the disk
		rng := rand.New(rand.NewPCG(uint64(len(f.inode.cache)), 1))
		for image := range f.inode.images(f.disk.block, 1, rng) {
			f.inode.durable = slices.Clone(image)
		}
		f.inode.pending = nil
	} else if injected.err == nil && !f.disk.skips("sync", f.disk.nameOf(f.inode)) {
		f.inode.sync(f.disk.block)
	}
	f.disk.notify()
	return injected.err
}

func (f *memFile) Close() error {
	injected := f.disk.ask("close", f.path)
	err := f.check(false)
	if err != nil {
		return err
	}
	f.closed = true
	return injected.err
}

// apply changes what processes see.
func (n *inode) apply(c change) {
	n.cache = c.on(n.cache)
	if c.data != nil {
		n.ghost = c.on(slices.Clone(n.ghost))
	}
	n.pending = append(n.pending, c)
}

// on returns b changed, in place if there is room.
func (c change) on(b []byte) []byte {
	end := int(c.offset) + len(c.data)
	if c.data == nil && end < len(b) {
		return b[:end:end]
	}
	if end > len(b) {
		b = append(b, make([]byte, end-len(b))...)
	}
	copy(b[c.offset:], c.data)
	return b
}

// sync makes the blocks durable that were written. What a failed sync lost in other blocks stays lost.
func (n *inode) sync(block int) {
	durable := make([]byte, len(n.cache))
	copy(durable, n.durable)
	for _, b := range n.dirty(block) {
		start := min(b*block, len(durable))
		copy(durable[start:min(start+block, len(durable))], n.cache[start:])
	}
	n.durable, n.pending = durable, nil
}

// dirty returns the numbers of the blocks that pending writes touch.
func (n *inode) dirty(block int) []int {
	blocks := map[int]bool{}
	for _, c := range n.pending {
		for b := int(c.offset) / block; b*block < int(c.offset)+len(c.data); b++ {
			blocks[b] = true
		}
	}
	return slices.Sorted(maps.Keys(blocks))
}

// fills are what a block can hold that belongs to the file but was never written.
var fills = []func(n *inode, size int) []byte{
	func(n *inode, size int) []byte { return make([]byte, size) },
	func(n *inode, size int) []byte { return slices.Clone(staleLines[:size]) },
	func(n *inode, size int) []byte { return slices.Clone(noise[:size]) },
	func(n *inode, size int) []byte { b := make([]byte, size); copy(b, n.ghost); return b },
}

const staleNumbers = 10_000 // greater than the number of any stale line

var staleLines, noise = func() (stale, noise []byte) {
	h := header{n: 1, snapCommit: 2, format: "events/1", salt: "0123456789abcdef"}
	stale = h.text()
	for n := uint64(2); len(stale) < 64<<10; n++ {
		stale = appendLine(stale, h.saltSum(), n, []byte(strings.Repeat("old", int(n)%30)))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 64 << 10 {
		noise = append(noise, byte(rng.Uint32()))
	}
	return stale, noise
}()

// images returns what can be on disk after a power loss: all of it, or limit images chosen at random
// if there are more. An image is valid until the next.
func (n *inode) images(block, limit int, rng *rand.Rand) iter.Seq[[]byte] {
	versions := [][]byte{n.durable}
	for _, c := range n.pending {
		versions = append(versions, c.on(slices.Clone(versions[len(versions)-1])))
	}
	blocks := n.dirty(block)
	sizes := n.sizes(block, versions, rng)
	combinations := uint64(1)
	for range blocks {
		combinations *= uint64(len(versions))
		if combinations > 1<<30 {
			break
		}
	}
	// build returns the image of a combination of versions, and whether the fill shows.
	build := func(combination uint64, size int, fill func(*inode, int) []byte) (image []byte, filled bool) {
		image = fill(n, size)
		known := copy(image, n.durable)
		for _, b := range blocks {
			v := versions[combination%uint64(len(versions))]
			combination /= uint64(len(versions))
			start := min(b*block, len(v), size)
			end := min(b*block+block, len(v), size)
			copy(image[start:end], v[start:end])
			if start <= known {
				known = max(known, end)
			}
		}
		return image, known < size
	}
	return func(yield func([]byte) bool) {
		if len(n.pending) == 0 {
			yield(n.durable)
			return
		}
		if combinations*uint64(len(sizes)*len(fills)) > uint64(limit) {
			for range limit {
				image, _ := build(rng.Uint64(), sizes[rng.IntN(len(sizes))], fills[rng.IntN(len(fills))])
				if !yield(image) {
					return
				}
			}
			return
		}
		for combination := range combinations {
			for _, size := range sizes {
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

// sizes returns the lengths that the file can have after a power loss: those of its versions, of whole
// blocks, and a few between.
func (n *inode) sizes(block int, versions [][]byte, rng *rand.Rand) []int {
	sizes := map[int]bool{}
	low, high := len(n.durable), len(n.durable)
	for _, v := range versions {
		low, high = min(low, len(v)), max(high, len(v))
		sizes[len(v)] = true
	}
	for size := low/block*block + block; size < high; size += block {
		sizes[size] = true
	}
	for range min(4, high-low) {
		sizes[low+rng.IntN(high-low)] = true
	}
	return slices.Sorted(maps.Keys(sizes))
}

// powerLosses returns the disks that a power loss can leave now: each subset of the pending renames, and
// of each file up to limit images.
func (d *memDisk) powerLosses(limit int, rng *rand.Rand) iter.Seq[*memDisk] {
	return func(yield func(*memDisk) bool) {
		for subset := range 1 << len(d.renames) {
			names := maps.Clone(d.durable)
			for i, r := range d.renames {
				if subset&(1<<i) != 0 {
					r.apply(names)
				}
			}
			paths := slices.Sorted(maps.Keys(names))
			clean := func(path string) bool { return len(names[path].pending) == 0 }
			varied := slices.DeleteFunc(slices.Clone(paths), clean)
			if len(varied) == 0 {
				varied = append(varied, "") // one disk
			}
			for _, path := range varied {
				images := slices.Values([][]byte{nil})
				if path != "" {
					images = names[path].images(d.block, limit, rng)
				}
				for image := range images {
					c := newMemDisk(d.block)
					for _, other := range paths {
						data := image
						if other != path {
							for data = range names[other].images(d.block, 1, rng) {
							}
						}
						c.put(other, slices.Clone(data)).ghost = names[other].ghost
					}
					if !yield(c) {
						return
					}
				}
			}
		}
	}
}

var (
	errFull = fmt.Errorf("injected: %w", syscall.ENOSPC)
	errIO   = fmt.Errorf("injected: %w", syscall.EIO)
)

// once fails the k-th call of a kind, counted from 0.
func once(call string, k int, f fault) func(string, string) fault {
	return func(called, _ string) fault {
		if called != call {
			return fault{}
		}
		k--
		if k == -1 {
			return f
		}
		return fault{}
	}
}
