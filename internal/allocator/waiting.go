package allocator

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// The engine ignores the error of a release and forgets the address. So a release that the host's own store cannot
// write succeeds all the same, and waits in memory. It names its lease, so it never ends a later one. It is made before
// the next request, and is tried again every second. What waits when the daemon ends is lost. Then the witness finds
// the leases. A store with a failed write accepts nothing until the daemon restarts, so there it is always lost.
//
// Releases in a shared store wait elsewhere (cluster/outbox.go).

// waitingRelease is the release of an address, or of a pool.
type waitingRelease struct {
	pool  ipam.ID
	addr  netip.Addr // zero: the whole pool
	lease uint64     // the only lease that it ends
}

// waiting are the releases that wait, in order.
type waiting struct {
	turn sync.Mutex // held while releases are made

	mu    sync.Mutex // guards queue
	queue []waitingRelease
}

func (w *waiting) add(r waitingRelease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.queue, r) {
		w.queue = append(w.queue, r)
	}
}

func (w *waiting) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue)
}

// next returns the first release without removing it.
func (w *waiting) next() (r waitingRelease, any bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return r, false
	}
	return w.queue[0], true
}

// made removes the first release.
func (w *waiting) made() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = slices.Delete(w.queue, 0, 1)
}

// CannotWrite reports whether a host's own store could not write: its disk is full, its file is gone, or a write has
// failed.
func CannotWrite(err error) bool {
	return errors.Is(err, store.ErrNoSpace) || errors.Is(err, store.ErrAstray) || errors.Is(err, store.ErrUnknown)
}

// Waiting is the number of releases that the host's own store could not write yet.
func (s Allocator) Waiting() int { return s.waiting.count() }

// MakeWaiting makes the releases that wait. The error says why the store still cannot write them.
func (s Allocator) MakeWaiting(ctx context.Context) error {
	if s.waiting.count() == 0 {
		return nil
	}
	s.waiting.turn.Lock()
	defer s.waiting.turn.Unlock()
	ctx = ipam.WithActor(ctx, releasingActor)
	for r, any := s.waiting.next(); any; r, any = s.waiting.next() {
		if err := r.make(ctx, s.homes.Own); CannotWrite(err) || err != nil && ctx.Err() != nil {
			return err
		}
		s.waiting.made() // after any other error, as for a damaged record, no repetition helps
	}
	return nil
}

// releasingActor is the actor of a release that waited, whoever causes it.
const releasingActor = "engine"

func (r *waitingRelease) make(ctx context.Context, s *ledger.Ledger) error {
	if !r.addr.IsValid() {
		return ReleasePool(ctx, s, r.pool)
	}
	return s.Update(ctx, func(c *ledger.Change) error {
		_, err := GiveFree(c, r.pool, r.addr, r.lease)
		return err
	})
}

// KeepWaiting makes the releases that wait as soon as that is possible, until ctx ends.
func (s Allocator) KeepWaiting(ctx context.Context) {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			_ = s.MakeWaiting(ctx) // the store has logged the reason
		}
	}
}

// ReleaseAddress releases an address. It acts only on a lease taken through this attachment. It ignores a free
// address, another attachment's, the subnet's gateway, and a removed pool, because the engine could not handle an
// error. The address is remembered for its last holder. If the store cannot write, the release waits in memory.
func (s Allocator) ReleaseAddress(ctx context.Context, pool ipam.ID, addr netip.Addr) error {
	own := s.homes.Own
	if own.Member() != nil {
		_, err := ReleaseAddress(ctx, own, pool, addr)
		return err
	}
	_ = s.MakeWaiting(ctx) // if it fails, this one waits behind the others
	last := ledger.Ask(own, (*ledger.Index).LastEvent)
	lease, err := ReleaseAddress(ctx, own, pool, addr)
	if !CannotWrite(err) {
		return err
	}
	if lease == 0 { // the store did not even begin
		var lookErr error
		if lease, lookErr = HeldLease(ctx, own, pool, addr); lookErr != nil {
			return err
		}
	}
	if lease != 0 && lease <= last { // not one that began meanwhile
		s.waiting.add(waitingRelease{pool: pool, addr: addr, lease: lease})
	}
	return nil
}

// HeldLease returns the id of an attachment's lease of an address, as far as known here, or 0.
func HeldLease(ctx context.Context, s *ledger.Ledger, pool ipam.ID, addr netip.Addr) (lease uint64, err error) {
	err = s.Look(ctx, func(c *ledger.Change) error {
		t, err := OpenTarget(c, pool)
		if errors.Is(err, ipam.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		held, err := t.heldThrough(pool, addr)
		if held != nil {
			lease = held.ID
		}
		return err
	})
	return lease, err
}

// ReleasePool ends an attachment and its leases. The last attachment removes its subnet and network. An
// unknown attachment is no error. Remaining leases are no error either, because the engine leaks some. If the store
// cannot write, the release waits in memory.
func (s Allocator) ReleasePool(ctx context.Context, pool ipam.ID) error {
	own := s.homes.Own
	if own.Member() != nil {
		return ReleasePool(ctx, own, pool)
	}
	_ = s.MakeWaiting(ctx)
	err := ReleasePool(ctx, own, pool)
	if !CannotWrite(err) {
		return err
	}
	if own.Knows(pool) {
		s.waiting.add(waitingRelease{pool: pool})
	}
	return nil
}
