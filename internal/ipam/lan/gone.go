package lan

import (
	"context"
	"sync"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// goneAgain is the pause before a return is sent again to a server that did not receive it.
const goneAgain = 10 * time.Second

// gone remembers, between two rounds, when to read the leases of removed subnets again.
type gone struct {
	mu    sync.Mutex
	asked uint64 // changes that had begun when they were read
	next  time.Time
	busy  bool
}

// looks reports whether the records must be read, because something has changed or is due.
func (g *gone) looks(l *ledger.Ledger) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	asked, now := l.Asked(), l.Now()
	if g.busy || asked == g.asked && g.next.After(now) {
		return false
	}
	g.asked, g.next, g.busy = asked, now.Add(seldom), true
	return true
}

func (g *gone) rest(until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy = false; until.Before(g.next) {
		g.next = until
	}
}

// beginGone starts to return this host's leases of removed subnets, one after the other, in the background.
func (k *Schedule) beginGone(ctx context.Context, wg *sync.WaitGroup, failed func(error)) error {
	if !k.gone.looks(k.ledger) {
		return nil
	}
	all, err := ledger.View(ctx, k.ledger, allocator.ReadReturning)
	if err != nil || len(all) == 0 {
		k.gone.rest(k.ledger.Now().Add(seldom))
		return err
	}
	wg.Go(func() {
		next := seldom
		for i := range all {
			done, err := k.giveBackGone(ctx, &all[i])
			if err != nil && ctx.Err() == nil {
				failed(err)
			}
			if !done {
				next = goneAgain
			}
		}
		k.gone.rest(k.ledger.Now().Add(next))
	})
	return nil
}

// giveBackGone returns one lease to its server and forgets it. done is false if the server did not receive it.
func (k *Schedule) giveBackGone(ctx context.Context, r *allocator.Returning) (done bool, err error) {
	over := !r.Expires.After(k.ledger.Now())
	if r.Host != k.ledger.Host() && !over {
		return true, nil
	}
	if !over {
		if done, err := k.returns(ctx, r); err != nil || !done {
			return false, err
		}
	}
	return true, k.ledger.Update(ctx, func(c *ledger.Change) error { return r.Forget(c) })
}

// returns tells a server that a lease is not needed, which no record has. done is false if the server did not receive
// it. Meanwhile no request uses the same client. If the records show that the client has the address again, nothing is
// sent.
func (k *Schedule) returns(ctx context.Context, r *allocator.Returning) (done bool, err error) {
	end, err := k.ledger.OwnClient(ctx, r.Client)
	if err != nil {
		return false, err
	}
	defer end()
	used, err := ledger.Look(ctx, k.ledger, r.InUse)
	if err != nil || used {
		return used, err
	}
	got, err := k.ledger.AskLAN(ctx, ipam.LANAsk{Verb: ipam.LANRelease, Parent: r.Parent, IPv6: r.Address.Is6(),
		Client: r.Client, Subnet: r.Subnet, Address: r.Address, Server: r.Server, ServerID: r.ServerID,
		Within: ipam.Duration(patience)})
	return err == nil && got.Failure == "", err
}
