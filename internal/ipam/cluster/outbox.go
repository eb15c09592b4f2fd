package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store"
)

// queuedRelease is a release that has yet to be delivered to the shared store. It releases an address, or a pool with
// all leases of its attachment.
type queuedRelease struct {
	Seq     uint64     `json:"-"` // its place in the queue, which is its key
	Pool    ipam.ID    `json:"pool"`
	Address netip.Addr `json:"address,omitzero"` // zero: the whole pool
	// the id of the only lease that it ends; 0 if the daemon had not reached the store and knew no id
	Lease uint64    `json:"lease,omitempty"`
	Since time.Time `json:"since"`

	unsaved bool // it is only in memory, because the host's own store cannot write
}

// decodeQueued reads a queued release. If the record is invalid, the error wraps ErrDamaged.
func decodeQueued(rec store.Record) (q queuedRelease, err error) {
	if len(rec.Key) != 9 {
		return q, fmt.Errorf("%w: the key %x is not the key of a release that waits for the cluster's store",
			ipam.ErrDamaged, rec.Key)
	}
	err = ipam.DecodeJSON("a release that waits for the cluster's store", rec.Value, &q)
	q.Seq = binary.BigEndian.Uint64(rec.Key[1:])
	return q, err
}

// isOf reports whether the release ends a lease of its attachment.
func (q *queuedRelease) isOf(l *ipam.Lease) bool {
	return !q.Address.IsValid() || q.Address == l.Address && (q.Lease == 0 || q.Lease == l.ID)
}

// outboxKeys is the first byte of the keys of queued releases; ledger/keys.go lists all.
const outboxKeys = 'q'

func outboxKey(seq uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{outboxKeys}, seq)
}

// readOutbox reads the queued releases in order, and the number of the next one.
func readOutbox(tx store.Tx) (all []queuedRelease, next uint64, err error) {
	next = 1
	for rec, err := range tx.Scan(ledger.KindRange(outboxKeys)) {
		if err != nil {
			return nil, 0, err
		}
		w, err := decodeQueued(rec)
		if err != nil {
			return nil, 0, err
		}
		all, next = append(all, w), w.Seq+1
	}
	return all, next, nil
}

// Undelivered returns the number of records in a host's own store that the shared store does not have: queued releases,
// and headroom in use.
func Undelivered(ctx context.Context, own store.Store) (n int, err error) {
	err = own.View(ctx, func(tx store.Tx) error {
		n = 0
		all, _, err := readOutbox(tx)
		if err != nil {
			return err
		}
		headroom, err := readHeadroom(tx)
		for _, hr := range headroom {
			n += len(hr.toTell())
		}
		n += len(all)
		return err
	})
	return n, err
}

// note is a write to the host's own store.
type note struct{ key, value []byte } // a nil value deletes

func noteJSON(key []byte, v any) (note, error) {
	raw, err := ipam.EncodeJSON(v)
	return note{key, raw}, err
}

// keep makes writes to the host's own store, all or none, and then calls then to change the copy in memory. It
// continues if the caller goes away, because answers depend on it. The caller has turn.
func (s *Shared) keep(ctx context.Context, notes []note, then func()) error {
	if len(notes) == 0 {
		return nil
	}
	if err := s.keepNotes(context.WithoutCancel(ctx), notes); err != nil {
		return fmt.Errorf("this host cannot write its notes for the shared store to its own store: %w",
			err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	then()
	return nil
}

// keepRelease is keep for what ends something. If the host's own store cannot write, the change is only in memory, and
// a restart loses it. Then the witness finds what should have ended. unsaved reports that.
func (s *Shared) keepRelease(ctx context.Context, notes []note, then func(unsaved bool)) error {
	err := s.keep(ctx, notes, func() { then(false) })
	if !allocator.CannotWrite(err) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	then(true)
	return nil
}

// queue queues a release for the shared store. It queues none twice.
func (s *Shared) queue(ctx context.Context, p queuedRelease) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	return s.queueInTurn(ctx, p)
}

func (s *Shared) queueInTurn(ctx context.Context, p queuedRelease) error {
	return s.queueWith(ctx, p, nil, func() {})
}

// queueWith is queueInTurn with further writes.
func (s *Shared) queueWith(ctx context.Context, p queuedRelease, notes []note, then func()) error {
	if s.isQueued(p) {
		return s.keepRelease(ctx, notes, func(bool) { then() })
	}
	p.Since = s.now().UTC()
	p.Seq = s.nextSeq
	n, err := noteJSON(outboxKey(p.Seq), &p)
	if err != nil {
		return err
	}
	return s.keepRelease(ctx, append(notes, n), func(unsaved bool) {
		p.unsaved = unsaved
		s.outbox = append(s.outbox, p)
		s.nextSeq++
		then()
	})
}

// queuePool queues the release of a pool, and deletes its headroom.
func (s *Shared) queuePool(ctx context.Context, pool ipam.ID) error {
	s.turn.Lock()
	defer s.turn.Unlock()
	notes, then := s.withoutHeadroom(pool)
	return s.queueWith(ctx, queuedRelease{Pool: pool}, notes, then)
}

// isQueued reports whether a release is queued, or that of its whole pool.
func (s *Shared) isQueued(p queuedRelease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.outbox, func(w queuedRelease) bool {
		return w.Pool == p.Pool && (!w.Address.IsValid() || w.Address == p.Address &&
			(w.Lease == p.Lease || w.Lease == 0))
	})
}

// queuedFor lists the queued releases of an attachment.
func (s *Shared) queuedFor(pool ipam.ID) (all []queuedRelease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.outbox {
		if w.Pool == pool {
			all = append(all, w)
		}
	}
	return all
}

// keeps reports whether anything has yet to be delivered to the shared store.
func (s *Shared) keeps() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.outbox) > 0 || s.inUse > 0
}

// tell delivers everything to the store, in order: first the uses of headroom, then the releases. What the store has is
// deleted here, durably, before tell returns nil.
func (s *Shared) tell(ctx context.Context, svc *service.Service) error {
	return s.inTellingTurn(ctx, func() error { return s.tellInTurn(ctx, svc) })
}

// inTellingTurn runs fn while nobody else delivers to the store.
func (s *Shared) inTellingTurn(ctx context.Context, fn func() error) error {
	select {
	case s.telling <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.telling }()
	return fn()
}

// heldActor is the actor of what is delivered, whoever causes the delivery.
const heldActor = "engine"

func (s *Shared) tellInTurn(ctx context.Context, svc *service.Service) error {
	ctx = ipam.WithActor(ctx, heldActor)
	for {
		page := s.usesPage()
		if len(page) == 0 {
			break
		}
		if err := s.tellUses(ctx, svc, page); err != nil {
			return err
		}
	}
	for {
		page := s.outboxPage()
		if len(page) == 0 {
			return nil
		}
		if err := s.tellReleases(ctx, svc, page); err != nil {
			return err
		}
	}
}

// outboxPage returns the releases to deliver next, in one transaction: several addresses, or one pool.
func (s *Shared) outboxPage() []queuedRelease {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for n < min(len(s.outbox), allocator.ClaimPage) && s.outbox[n].Address.IsValid() {
		n++
	}
	if n == 0 {
		n = min(len(s.outbox), 1)
	}
	return slices.Clone(s.outbox[:n])
}

// tellReleases delivers releases. It gives up one that can never succeed because a record is damaged; the witness finds
// the consequences.
func (s *Shared) tellReleases(ctx context.Context, svc *service.Service, page []queuedRelease) error {
	err := makeReleases(ctx, svc.Ledger, page)
	if hopeless(err) {
		if len(page) > 1 {
			for i := range page {
				if err := s.tellReleases(ctx, svc, page[i:i+1]); err != nil {
					return err
				}
			}
			return nil
		}
		s.warn(ipam.Help(fmt.Errorf("Berth gave up a release that waited for the cluster's store (pool %s, address "+
			"%s): %w", page[0].Pool, page[0].Address, err), ipam.Advise(ipam.DoRunCheck)))
		err = nil
	}
	if err != nil {
		return err
	}
	var saved []note
	for _, w := range page {
		if !w.unsaved {
			saved = append(saved, note{key: outboxKey(w.Seq)})
		}
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	told := func() {
		s.outbox = slices.DeleteFunc(s.outbox, func(w queuedRelease) bool {
			return slices.ContainsFunc(page, func(told queuedRelease) bool { return told.Seq == w.Seq })
		})
	}
	if len(saved) > 0 {
		return s.keep(ctx, saved, told)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	told()
	return nil
}

// hopeless reports whether an error is permanent, so that no repetition helps.
func hopeless(err error) bool {
	return errors.Is(err, ipam.ErrDamaged) || errors.Is(err, ipam.ErrInvalid) || errors.Is(err, ipam.ErrNotFound)
}

// makeReleases makes queued releases in the store. It may be repeated.
func makeReleases(ctx context.Context, s *ledger.Ledger, page []queuedRelease) error {
	if len(page) == 1 && !page[0].Address.IsValid() {
		return allocator.ReleasePool(ctx, s, page[0].Pool)
	}
	return s.Update(ctx, func(c *ledger.Change) error {
		for _, w := range page {
			if _, err := allocator.GiveFree(c, w.Pool, w.Address, w.Lease); err != nil {
				return err
			}
		}
		return nil
	})
}
