package service

import (
	"context"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam/ledger"
)

// The approximate number of writes in one transaction of an import. It is small while other requests come, because they
// wait for it. Otherwise it doubles with each transaction, because each costs a sync.
const (
	fewWrites  = 64
	mostWrites = 1024
)

// maxPause is the longest pause between two transactions.
const maxPause = 20 * time.Millisecond

// pace determines the size of an import's transactions and the pauses between them.
type pace struct {
	writes int
	asked  uint64 // the number of all requests when the last transaction began
	quiet  bool   // no other request came since the transaction before
}

// next returns the size of the next transaction. asked counts all requests, including one of the import.
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

// rest pauses after a transaction that took the given time, so that waiting requests go first.
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

// update is Ledger.Update for a transaction of an import. most is the number of writes that fn may make.
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
