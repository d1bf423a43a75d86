package greeting

import (
	"sync/atomic"

	"example.com/events/internal/command"
)

// Progress is how far the start of a server is: how much of its data file is read and, after that,
// how much of its seed is applied. It is safe for concurrent use.
type Progress struct {
	done, size atomic.Int64 // bytes of the data file
	applied    atomic.Pointer[func() int64]
}

// Reading notes how many bytes of the data file are read, and how many it has.
func (p *Progress) Reading(done, size int64) {
	p.done.Store(done)
	p.size.Store(size)
}

// Seeding notes that the data file is read, and what says how many records of the seed are applied.
func (p *Progress) Seeding(applied func() int64) { p.applied.Store(&applied) }

func (p *Progress) String() string {
	applied := p.applied.Load()
	if applied != nil {
		return "start: " + command.Thousands((*applied)()) + " records of the seed"
	}
	return "start: " + command.Percent(p.done.Load(), p.size.Load()) + " of the data file"
}
