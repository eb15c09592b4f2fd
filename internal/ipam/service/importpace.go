package service

import (
	"context"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam/ledger"
)

// The writes of one transaction of an import, about. Where somebody else asks for something, they are few, because he
// waits for it; as long as nobody does, each transaction has twice as many as the one before, because each costs a
// sync.
const (
	fewWrites  = 64
	mostWrites = 1024
)

// maxPause bounds how long an import stands back.
const maxPause = 20 * time.Millisecond

// pace is how large the transactions of an import are, and how close they follow one another.
type pace struct {
	writes int
	asked  uint64 // how often anybody had asked when the last one began
	quiet  bool   // nobody but the import had asked since the one before
}

// next is the size of the next transaction. asked counts all questions, of which one is the import's own.
func (p *pace) next(asked uint64) int {
	p.quiet = p.asked != 0 && asked == p.asked+1
	p.asked = asked
	if !p.quiet {
		p.writes = fewWrites
	} else {
		p.writes = min(2*p.writes, mostWrites)
	}
	return p.writes
}

// rest lets those who ask go first after a transaction that took so long: who has waited for it does not wait for the
// next one, too.
func (p *pace) rest(ctx context.Context, took time.Duration) {
	if p.quiet {
		return
	}
	pause := time.NewTimer(min(took, maxPause))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
}

// update is Ledger.Update for a transaction of an import, which may make so many writes.
func (p *pace) update(ctx context.Context, s *ledger.Ledger, fn func(c *ledger.Change, most int) error) error {
	begin := time.Now()
	most := 0
	err := allocator.Update(ctx, s, func(c *ledger.Change) error {
		if most == 0 { // once: fn may run again
			most = p.next(s.Asked())
		}
		c.TouchPlan()
		return fn(c, most)
	})
	if err == nil {
		p.rest(ctx, time.Since(begin))
	}
	return err
}
