package ledger

import (
	"context"
	"slices"

	"berth/internal/ipam"
	"berth/store"
)

// Read runs fn over the index, for reading only. It locks the index, so fn may call neither Update nor Read. fn may
// keep records, but nothing else of the index.
func (s *Ledger) Read(fn func(*Index)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn(s.index)
}

// Look is Ledger.Look with a result.
func Look[T any](ctx context.Context, s *Ledger, fn func(*Change) (T, error)) (found T, err error) {
	err = s.Look(ctx, func(c *Change) (err error) {
		found, err = fn(c)
		return err
	})
	return found, err
}

// View is Ledger.View with a result.
func View[T any](ctx context.Context, s *Ledger, fn func(store.Tx) (T, error)) (found T, err error) {
	err = s.View(ctx, func(tx store.Tx) (err error) {
		found, err = fn(tx)
		return err
	})
	return found, err
}

// Ask is Read with a result.
func Ask[T any](s *Ledger, fn func(*Index) T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fn(s.index)
}

// Overdue reports whether a reservation may have ended.
func (s *Ledger) Overdue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.ends.overdue(s.now())
}

// Attachment returns the record of an attachment, or nil.
func (s *Ledger) Attachment(id ipam.ID) *ipam.Attachment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.attachments[id].Value
}

// Knows reports whether the store has a network, a subnet or an attachment of that id.
func (s *Ledger) Knows(id ipam.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, attached := s.index.attachments[id]
	return attached || s.index.subnets[id] != nil || s.index.Network(id) != nil
}

// SubnetsOf lists the subnets of a network in search order, or nil if it is unknown.
func (s *Ledger) SubnetsOf(network ipam.ID) []ipam.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if nx := s.index.networks[network]; nx != nil {
		return slices.Clone(nx.subnets)
	}
	return nil
}

// addLeftovers notes what a committed change has left for the sweep.
func (s *Ledger) addLeftovers(gone []*ipam.Subnet, strays []Stray) {
	if len(gone) == 0 && len(strays) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.orphans, s.index.strays = append(s.index.orphans, gone...), append(s.index.strays, strays...)
}

// HasLeftovers reports whether leases of removed subnets, or memories outside of subnets, remain to be swept.
func (s *Ledger) HasLeftovers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.index.orphans) > 0 || len(s.index.strays) > 0
}

// Orphan returns a removed subnet that may still have leases, or nil. It stays until OrphanSwept.
func (s *Ledger) Orphan() *ipam.Subnet {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.index.orphans); n > 0 {
		return s.index.orphans[n-1]
	}
	return nil
}

// OrphanSwept notes that a removed subnet has no leases left.
func (s *Ledger) OrphanSwept(gone *ipam.Subnet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.orphans = slices.DeleteFunc(s.index.orphans, func(other *ipam.Subnet) bool { return other == gone })
}

// Strays returns a page of the known strays. They stay until StraysSwept.
func (s *Ledger) Strays() []Stray {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.index.strays[:min(len(s.index.strays), s.page)])
}

// StraysSwept notes that the strays of a page were removed.
func (s *Ledger) StraysSwept(page []Stray) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.strays = slices.DeleteFunc(s.index.strays, func(one Stray) bool { return slices.Contains(page, one) })
}

// KnownHost returns the record of a host of the cluster by name, or nil.
func (s *Ledger) KnownHost(name string) *ipam.Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.hosts[name].Value
}
