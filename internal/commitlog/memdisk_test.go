package commitlog

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
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
	d    *memDisk
	path string
}

func (d *memDisk) Lock(path string) (io.Closer, error) {
	f := d.ask("lock", path)
	if f.err != nil {
		return nil, f.err
	}
	if d.locked[path] {
		return nil, ErrLocked
	}
	d.locked[path] = true
	return memLock{d, path}, nil
}

func (l memLock) Close() error {
	delete(l.d.locked, l.path)
	return l.d.ask("unlock", l.path).err
}

const memDir = "/"

func (d *memDisk) Open(path string, flag int) (file, error) {
	f := d.ask("open", path)
	if f.err != nil {
		return nil, f.err
	}
	n := d.names[path]
	if n == nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return &memFile{d: d, n: n, path: path, writable: flag == os.O_RDWR}, nil
}

func (d *memDisk) Create(path string, _ file) (file, error) {
	f := d.ask("create", path)
	if f.err != nil && !f.after {
		return nil, f.err
	}
	if d.names[path] != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrExist}
	}
	n := &inode{}
	d.rename(rename{to: path, node: n})
	if f.err != nil {
		return nil, f.err
	}
	if strings.Contains(path, tornSuffix) {
		d.tornWrites++
	}
	return &memFile{d: d, n: n, path: path, writable: true}, nil
}

func (d *memDisk) Replace(tmp, old file, path string) (file, error) {
	f := d.ask("replace", path)
	if f.err == nil || f.after {
		from := path + tmpSuffix
		d.rename(rename{from, path, d.names[from]})
	}
	if f.err != nil {
		tmp.Close()
		return old, f.err
	}
	if old != nil {
		old.Close()
	}
	return tmp, nil
}

func (d *memDisk) Remove(path string) {
	f := d.ask("remove", path)
	if f.err == nil && d.names[path] != nil {
		d.rename(rename{from: path})
	}
}

func (d *memDisk) SyncDir(string) error {
	f := d.ask("syncdir", memDir)
	if f.err != nil {
		return f.err
	}
	if d.skipSync == nil || !d.skipSync("syncdir", memDir) {
		d.durable, d.renames = maps.Clone(d.names), nil
	}
	d.notify()
	return nil
}

func (d *memDisk) Size(path string, f file) (int64, error) {
	fault := d.ask("size", path)
	if fault.err != nil {
		return 0, fault.err
	}
	if d.names[path] != f.(*memFile).n {
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
	d        *memDisk
	n        *inode
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
	x := f.d.ask("read", f.path)
	if x.err != nil {
		return 0, x.err
	}
	err := f.check(false)
	if err != nil {
		return 0, err
	}
	n := copy(b, f.n.cache[min(at, int64(len(f.n.cache))):])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt returns 0 with any error, as os.File does, however much it has written.
func (f *memFile) WriteAt(b []byte, at int64) (int, error) {
	x := f.d.ask("write", f.path)
	err := f.check(true)
	if err != nil {
		return 0, err
	}
	data := b
	if x.err != nil && !x.after {
		data = b[:min(x.short, len(b))]
	}
	same := at+int64(len(data)) <= int64(len(f.n.cache)) && bytes.Equal(f.n.cache[at:][:len(data)], data)
	if len(data) > 0 && !(same && f.d.skipSame) {
		if f.d.writing != nil {
			f.d.writing(f.n, at, data)
		}
		f.n.apply(change{at, slices.Clone(data)})
		f.d.notify()
	}
	if x.err != nil {
		return 0, x.err
	}
	return len(b), nil
}

func (f *memFile) Truncate(size int64) error {
	x := f.d.ask("truncate", f.path)
	if x.err != nil && !x.after {
		return x.err
	}
	err := f.check(true)
	if err != nil {
		return err
	}
	f.n.apply(change{offset: size})
	f.d.notify()
	return x.err
}

func (f *memFile) Sync() error {
	x := f.d.ask("sync", f.path)
	err := f.check(true)
	if err != nil {
		return err
	}
	if x.after { // as Linux does: the pages count as clean, whatever reached the disk
		for image := range f.n.images(f.d.block, 1, rand.New(rand.NewPCG(uint64(len(f.n.cache)), 1))) {
			f.n.durable = slices.Clone(image)
		}
		f.n.pending = nil
	} else if x.err == nil && (f.d.skipSync == nil || !f.d.skipSync("sync", f.d.nameOf(f.n))) {
		f.n.sync(f.d.block)
	}
	f.d.notify()
	return x.err
}

func (f *memFile) Close() error {
	x := f.d.ask("close", f.path)
	err := f.check(false)
	if err != nil {
		return err
	}
	f.closed = true
	return x.err
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
	h := header{n: 1, snap: 2, format: "events/1", salt: "0123456789abcdef"}
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
