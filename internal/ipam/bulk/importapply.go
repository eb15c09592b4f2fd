package bulk

import (
	"encoding/binary"
	"fmt"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
)

// stepper makes the steps of an import inside a transaction. It holds on to the network and the subnet of the last one.
type stepper struct {
	*ledger.Change
	p   *edit.Plan
	sub *ipam.Subnet

	unmade []ipam.PlanProblem // associations that were refused
}

// apply makes a step, and answers what it has added. What is no longer as it was when the plan was checked is refused.
func (s *stepper) apply(st *step) (ipam.Counts, error) {
	if st.op == stepNetwork {
		return ipam.Counts{Networks: 1}, s.makeNetwork(st)
	}
	if st.op == stepElastic {
		return s.addElastic(st)
	}
	if err := s.open(st); err != nil {
		return ipam.Counts{}, err
	}
	switch st.op {
	case stepReveal:
		return ipam.Counts{}, s.reveal()
	case stepSubnet:
		return s.makeSubnet(st)
	case stepOwner:
		return ipam.Counts{Reservations: 1}, s.know(st)
	}
	if err := s.openSubnet(st); err != nil {
		return ipam.Counts{}, err
	}
	switch st.op {
	case stepPools:
		return s.addPools(st)
	case stepExclusions:
		return s.addExclusions(st)
	case stepReserve:
		return ipam.Counts{Reservations: 1}, s.reserve(st)
	case stepTake:
		return ipam.Counts{Addresses: 1}, s.take(st)
	}
	return ipam.Counts{}, fmt.Errorf("%w: the journal of an import has a step %d, which this Berth does not know",
		ipam.ErrDamaged, st.op)
}

// find reads the network of a step; false where it is gone.
func (s *stepper) find(st *step) (bool, error) {
	if s.p != nil && s.p.N.ID == st.network {
		return true, nil
	}
	s.p, s.sub = nil, nil
	n, err := s.ReadNetwork(st.network)
	if err != nil {
		return false, err
	}
	if n == nil {
		return false, nil
	}
	switch n.Stage {
	case ipam.Leaving:
		return false, nil
	case ipam.Moving:
		return false, ledger.BeingCopied(n)
	}
	s.p = edit.PlanOf(s.Change, n)
	return true, nil
}

func (s *stepper) open(st *step) error {
	there, err := s.find(st)
	if err == nil && !there {
		err = ipam.Refuse(ipam.ErrNotFound, "network %s, to which it adds, was removed meanwhile", st.network)
	}
	return err
}

// findSubnet reads the subnet of a step; false where it is gone.
func (s *stepper) findSubnet(st *step) (bool, error) {
	if s.sub != nil && s.sub.ID == st.subnet {
		return true, nil
	}
	s.sub = nil
	sx := s.Index().Subnet(st.subnet)
	if sx == nil {
		return false, nil
	}
	var err error
	s.sub, err = s.Change.ReadSubnet(sx.Record())
	return err == nil, err
}

func (s *stepper) openSubnet(st *step) error {
	there, err := s.findSubnet(st)
	if err == nil && !there {
		err = ipam.Refuse(ipam.ErrNotFound, "a subnet of network %s, to which it adds, was removed meanwhile",
			s.p.Called())
	}
	return err
}

func (s *stepper) makeNetwork(st *step) error {
	n := new(ipam.Network)
	if err := st.decode(n); err != nil {
		return err
	}
	if err := edit.NameFree(s.Change, n.Name); err != nil {
		return err
	}
	if err := s.EnsureSpace(n.Space); err != nil {
		return err
	}
	n.Created, n.Stage = s.Now(), ipam.Arriving
	s.p, s.sub = edit.PlanOf(s.Change, n), nil
	if _, err := s.p.Tell(&ipam.Event{Verb: ipam.NetworkCreated}, nil, edit.FactsOfNetwork(n)); err != nil {
		return err
	}
	return s.SetNetwork(n.ID, n)
}

// reveal lets the network be seen, with all that is in it.
func (s *stepper) reveal() error {
	n := *s.p.N
	n.Stage, n.Revision = "", s.Index().LastEvent()
	s.p.N = &n
	if err := s.Tx().Put(revealedKey(n.ID), binary.BigEndian.AppendUint64(nil, n.Revision)); err != nil {
		return err
	}
	return s.SetNetwork(n.ID, &n)
}

func (s *stepper) makeSubnet(st *step) (ipam.Counts, error) {
	sub := new(ipam.Subnet)
	if err := st.decode(sub); err != nil {
		return ipam.Counts{}, err
	}
	s.sub = sub
	return ipam.Counts{Subnets: 1, Pools: len(sub.Pools)}, s.p.MakeSubnet(sub)
}

func (s *stepper) addPools(st *step) (ipam.Counts, error) {
	var pools []ipam.Pool
	if err := st.decode(&pools); err != nil {
		return ipam.Counts{}, err
	}
	sub, err := s.p.AddPools(s.sub, pools...)
	s.sub = sub
	return ipam.Counts{Pools: len(pools)}, err
}

func (s *stepper) addExclusions(st *step) (ipam.Counts, error) {
	var exclusions []ipam.Exclusion
	if err := st.decode(&exclusions); err != nil {
		return ipam.Counts{}, err
	}
	sub, err := s.p.AddExclusions(s.sub, exclusions...)
	s.sub = sub
	return ipam.Counts{Exclusions: len(exclusions)}, err
}

// fewSubnets is how many subnets a network may have for an owner's slots to be looked up in all of them again. The
// check has done so; between it and the step another admin may have filled the same slot, which then has two addresses.
const fewSubnets = 64

func (s *stepper) slotFree(st *step, all func(owner string) (map[ipam.Slot]ledger.Picked, error)) error {
	if s.p.N.Stage != "" || len(s.Index().NetworkIndex(s.p.N.ID).Subnets()) > fewSubnets {
		return nil // nobody else writes in it, or too many to ask
	}
	has, err := all(st.owner)
	if one, taken := has[st.slot]; err == nil && taken {
		err = ipam.Refuse(ipam.ErrInUse, "%s has %s as %s in network %s meanwhile, and cannot have %s there", st.owner,
			one.Addr, st.slot, s.p.Called(), st.addr)
	}
	return err
}

// reserve reserves an address, be it excluded or not: an import is an admin's word.
func (s *stepper) reserve(st *step) error {
	if why := allocator.NotHost(s.sub.CIDR, st.addr); why != "" {
		return ipam.Refuse(ipam.ErrInvalid, "%s is %s, which was changed meanwhile", st.addr, why)
	}
	l, err := s.Lease(s.sub.ID, st.addr)
	if err != nil {
		return err
	}
	switch r := l.Reserved(); {
	case r != nil:
		return allocator.ReservedError(s.Change, st.addr, r)
	case edit.Bars(s.p.N, l, st.owner, st.force):
		return allocator.HeldError(s.Change, s.sub, l)
	}
	if err := checkKind(s.p.N, st.owner, s.sub, st.addr, st.automatic); err != nil {
		return err
	}
	if err := s.ownerFree(st); err != nil {
		return err
	}
	r := &ipam.Reservation{Owner: st.owner, Kind: ipam.Static, Slot: st.slot, Terms: st.Terms}
	if st.automatic {
		r.Kind = ipam.Automatic
	}
	if err := s.p.WriteReservation(ledger.Picked{Sub: s.sub, Addr: st.addr, Record: l}, r); err != nil {
		return err
	}
	return s.p.Keep()
}

// ownerFree refuses a slot that has an address meanwhile. Who was known without one is so no longer.
func (s *stepper) ownerFree(st *step) error {
	if st.Replaced {
		return nil
	}
	if _, err := allocator.ForgetOwner(&s.p.NetworkPlan, st.owner, ""); err != nil {
		return err
	}
	return s.slotFree(st, func(owner string) (map[ipam.Slot]ledger.Picked, error) {
		owned, err := s.p.Owned(owner)
		return owned.Wanted, err
	})
}

// take takes an address for what is no container.
func (s *stepper) take(st *step) error {
	if why := allocator.NotHost(s.sub.CIDR, st.addr); why != "" {
		return ipam.Refuse(ipam.ErrInvalid, "%s is %s, which was changed meanwhile", st.addr, why)
	}
	l, err := s.Lease(s.sub.ID, st.addr)
	if err != nil {
		return err
	}
	switch r := l.Reserved(); {
	case l.Held():
		return allocator.HeldError(s.Change, s.sub, l)
	case r != nil && r.Owner != st.owner:
		return allocator.ReservedError(s.Change, st.addr, r)
	}
	if err := s.slotFree(st,
		func(owner string) (map[ipam.Slot]ledger.Picked, error) { return s.p.Taken(owner) }); err != nil {
		return err
	}
	taken := ledger.Picked{Sub: s.sub, Addr: st.addr, Record: l}
	if err := s.p.WriteTaken(taken, st.owner, st.slot, st.Note); err != nil {
		return err
	}
	return s.p.Keep()
}
