package ledger

import (
	"slices"

	"berth/internal/ipam"
)

// Read runs fn over the index, for reading only. The index is locked while fn runs: no change and no other Read may run
// inside of it, and nothing of it but the records that it points to is kept.
func (s *Ledger) Read(fn func(*Index)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn(s.index)
}

// Ask is Read for one answer.
func Ask[T any](s *Ledger, fn func(*Index) T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fn(s.index)
}

// Overdue tells whether a reservation of an owner can have ended (BO-11).
func (s *Ledger) Overdue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.ends.overdue(s.now())
}

// Attachment is what is known of an attachment; nil where it is unknown.
func (s *Ledger) Attachment(id ipam.ID) *ipam.Attachment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.attachments[id].Value
}

// Knows tells whether the store has a network, a subnet or an attachment of that id.
func (s *Ledger) Knows(id ipam.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, attached := s.index.attachments[id]
	return attached || s.index.subnets[id] != nil || s.index.Network(id) != nil
}

// SubnetsOf lists the subnets of a network in the order in which they are searched; none where it is unknown.
func (s *Ledger) SubnetsOf(network ipam.ID) []ipam.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if nx := s.index.networks[network]; nx != nil {
		return slices.Clone(nx.subnets)
	}
	return nil
}

// addLeftovers notes what a change that succeeded has left to be swept.
func (s *Ledger) addLeftovers(gone []*ipam.Subnet, strays []Stray) {
	if len(gone) == 0 && len(strays) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.orphans, s.index.strays = append(s.index.orphans, gone...), append(s.index.strays, strays...)
}

// HasLeftovers tells whether leases of subnets that are gone, or memories outside of subnets, are left to be swept.
func (s *Ledger) HasLeftovers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.index.orphans) > 0 || len(s.index.strays) > 0
}

// Orphan is a subnet that is gone and may have leases still; nil where there is none. It stays until OrphanSwept.
func (s *Ledger) Orphan() *ipam.Subnet {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.index.orphans); n > 0 {
		return s.index.orphans[n-1]
	}
	return nil
}

// OrphanSwept notes that a subnet that is gone has no leases any more.
func (s *Ledger) OrphanSwept(gone *ipam.Subnet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.orphans = slices.DeleteFunc(s.index.orphans, func(other *ipam.Subnet) bool { return other == gone })
}

// Strays is a page of the strays that are known. They stay until StraysSwept.
func (s *Ledger) Strays() []Stray {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.index.strays[:min(len(s.index.strays), s.page)])
}

// StraysSwept notes that a page of strays is gone.
func (s *Ledger) StraysSwept(page []Stray) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.index.strays = slices.DeleteFunc(s.index.strays, func(one Stray) bool { return slices.Contains(page, one) })
}

// KnownHost is what is known of a host that takes part in the cluster, by name; nil where it is unknown.
func (s *Ledger) KnownHost(name string) *ipam.Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.hosts[name].Value
}
