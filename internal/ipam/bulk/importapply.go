package bulk

import (
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

	done   int // steps
	added  ipam.Counts
	unmade []ipam.PlanProblem // associations that were refused
}

// some makes steps until they have made so many writes, or somebody else asks meanwhile.
func (s *stepper) some(steps []step, of *ledger.Ledger, most int) error {
	asked := of.Asked()
	writes := 0
	for i := range steps {
		if writes >= most || writes >= fewWrites && of.Asked() != asked {
			return nil
		}
		added, err := s.apply(&steps[i])
		if err != nil {
			return err
		}
		s.done++
		s.added = plus(s.added, added)
		writes += steps[i].writes()
	}
	return nil
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
		return ipam.Counts{Reservations: 1}, s.know(st.wanted)
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
		return ipam.Counts{Reservations: 1}, s.reserve(st.wanted)
	case stepTake:
		return ipam.Counts{Addresses: 1}, s.take(st.wanted)
	}
	return ipam.Counts{}, fmt.Errorf("an import has no step %d", st.op)
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
	made := *st.newNetwork
	n := &made
	if err := edit.NameFree(s.Change, n.Name); err != nil {
		return err
	}
	if err := s.EnsureSpace(n.Space); err != nil {
		return err
	}
	n.Created, n.Stage = s.Now(), ipam.Arriving
	if m := s.Member(); m != nil {
		n.Importer = &ipam.Importer{Host: s.Host(), Session: m.Session}
	}
	s.p, s.sub = edit.PlanOf(s.Change, n), nil
	if _, err := s.p.Tell(&ipam.Event{Verb: ipam.NetworkCreated}, nil, edit.FactsOfNetwork(n)); err != nil {
		return err
	}
	return s.SetNetwork(n.ID, n)
}

// reveal lets the network be seen, with all that is in it.
func (s *stepper) reveal() error {
	n := *s.p.N
	n.Stage, n.Importer, n.Revision = "", nil, s.Index().LastEvent()
	s.p.N = &n
	return s.SetNetwork(n.ID, &n)
}

func (s *stepper) makeSubnet(st *step) (ipam.Counts, error) {
	made := *st.newSubnet
	s.sub = &made
	return ipam.Counts{Subnets: 1, Pools: len(made.Pools)}, s.p.MakeSubnet(s.sub)
}

func (s *stepper) addPools(st *step) (ipam.Counts, error) {
	sub, err := s.p.AddPools(s.sub, st.pools...)
	s.sub = sub
	return ipam.Counts{Pools: len(st.pools)}, err
}

func (s *stepper) addExclusions(st *step) (ipam.Counts, error) {
	sub, err := s.p.AddExclusions(s.sub, st.exclusions...)
	s.sub = sub
	return ipam.Counts{Exclusions: len(st.exclusions)}, err
}

// fewSubnets is how many subnets a network may have for an owner's slots to be looked up in all of them again. The
// check has done so; between it and the step another admin may have filled the same slot, which then has two addresses.
const fewSubnets = 64

func (s *stepper) slotFree(w *wanted, all func(owner string) (map[ipam.Slot]ledger.Picked, error)) error {
	if s.p.N.Stage != "" || len(s.Index().NetworkIndex(s.p.N.ID).Subnets()) > fewSubnets {
		return nil // nobody else writes in it, or too many to ask
	}
	has, err := all(w.owner)
	if one, taken := has[w.slot]; err == nil && taken {
		err = ipam.Refuse(ipam.ErrInUse, "%s has %s as %s in network %s meanwhile, and cannot have %s there", w.owner,
			one.Addr, w.slot, s.p.Called(), w.addr)
	}
	return err
}

// reserve reserves an address, be it excluded or not: an import is an admin's word.
func (s *stepper) reserve(w *wanted) error {
	if why := allocator.NotHost(s.sub.CIDR, w.addr); why != "" {
		return ipam.Refuse(ipam.ErrInvalid, "%s is %s, which was changed meanwhile", w.addr, why)
	}
	l, err := s.Lease(s.sub.ID, w.addr)
	if err != nil {
		return err
	}
	switch r := l.Reserved(); {
	case r != nil:
		return allocator.ReservedError(s.Change, w.addr, r)
	case edit.Bars(s.p.N, l, w.owner, w.force):
		return allocator.HeldError(s.Change, s.sub, l)
	}
	if err := checkKind(s.p.N, w.owner, s.sub, w.addr, w.automatic); err != nil {
		return err
	}
	if err := s.ownerFree(w); err != nil {
		return err
	}
	r := &ipam.Reservation{Owner: w.owner, Kind: ipam.Static, Slot: w.slot, Terms: w.Terms}
	if w.automatic {
		r.Kind = ipam.Automatic
	}
	if err := s.p.WriteReservation(ledger.Picked{Sub: s.sub, Addr: w.addr, Record: l}, r); err != nil {
		return err
	}
	return s.p.Keep()
}

// ownerFree refuses a slot that has an address meanwhile. Who was known without one is so no longer.
func (s *stepper) ownerFree(w *wanted) error {
	if w.Replaced {
		return nil
	}
	if _, err := allocator.ForgetOwner(&s.p.NetworkPlan, w.owner, ""); err != nil {
		return err
	}
	return s.slotFree(w, func(owner string) (map[ipam.Slot]ledger.Picked, error) {
		owned, err := s.p.Owned(owner)
		return owned.Wanted, err
	})
}

// take takes an address for what is no container.
func (s *stepper) take(w *wanted) error {
	if why := allocator.NotHost(s.sub.CIDR, w.addr); why != "" {
		return ipam.Refuse(ipam.ErrInvalid, "%s is %s, which was changed meanwhile", w.addr, why)
	}
	l, err := s.Lease(s.sub.ID, w.addr)
	if err != nil {
		return err
	}
	switch r := l.Reserved(); {
	case l.Held():
		return allocator.HeldError(s.Change, s.sub, l)
	case r != nil && r.Owner != w.owner:
		return allocator.ReservedError(s.Change, w.addr, r)
	}
	if err := s.slotFree(w,
		func(owner string) (map[ipam.Slot]ledger.Picked, error) { return s.p.Taken(owner) }); err != nil {
		return err
	}
	taken := ledger.Picked{Sub: s.sub, Addr: w.addr, Record: l}
	if err := s.p.WriteTaken(taken, w.owner, w.slot, w.Note); err != nil {
		return err
	}
	return s.p.Keep()
}
