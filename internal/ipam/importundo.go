package ipam

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// revert takes back a step, and answers what it has removed. What is gone already, or is another's by now, stays as it is;
// what somebody uses is refused.
func (s *stepper) revert(st *step) (Counts, error) {
	there, err := s.find(st)
	if err != nil || !there {
		return Counts{}, err
	}
	switch st.op {
	case stepNetwork:
		return Counts{Networks: 1}, s.removeNetwork()
	case stepReveal:
		return Counts{}, s.hide()
	case stepOwner:
		return s.forget(st)
	}
	if there, err = s.findSubnet(st); err != nil || !there {
		return Counts{}, err
	}
	switch st.op {
	case stepSubnet:
		return s.dropSubnet(st)
	case stepPools:
		return s.dropPools(st)
	case stepExclusions:
		return s.dropExclusions(st)
	case stepReserve:
		return s.endReservation(st)
	case stepTake:
		return s.release(st)
	}
	return Counts{}, fmt.Errorf("%w: the journal of an import has a step %d, which this Berth does not know", ErrDamaged, st.op)
}

func (s *stepper) removeNetwork() error {
	n := s.p.n
	if _, err := s.p.tell(&Event{Verb: NetworkRemoved}, n.facts(), nil); err != nil {
		return err
	}
	s.p, s.sub = nil, nil
	return s.setNetwork(n.ID, nil)
}

// hide lets the network be seen no longer, before anything of it goes. One that somebody has changed, or uses, stays.
func (s *stepper) hide() error {
	n := *s.p.n
	if n.Stage == Arriving {
		return nil
	}
	raw, err := s.tx.Get(revealedKey(n.ID))
	if err != nil {
		return err
	}
	if len(raw) != 8 {
		return fmt.Errorf("%w: the journal of an import does not say when network %s was there", ErrDamaged, n.Name)
	}
	revealed := binary.BigEndian.Uint64(raw)
	if n.Revision != revealed {
		return &refusal{ErrInUse, fmt.Sprintf("network %s was changed since it was imported; if it is to go all the same, remove it with `berth network rm %s`", n.Name, n.Name)}
	}
	subnets, err := s.p.subnets()
	if err != nil {
		return err
	}
	for _, sub := range subnets {
		if err := s.untouched(sub, revealed); err != nil {
			return err
		}
	}
	if err := s.noneKnown(revealed); err != nil {
		return err
	}
	n.Stage = Arriving
	s.p.n = &n
	return s.setNetwork(n.ID, &n)
}

// untouched refuses a subnet that has a Docker network, or an address that was taken or reserved after a moment.
func (s *stepper) untouched(sub *Subnet, since uint64) error {
	if len(sub.Attachments) > 0 {
		return s.p.unused(sub, true)
	}
	var used error
	err := eachLease(s.tx, sub.ID, func(l *Lease) error {
		switch r := l.Reservation; {
		case l.Held() && l.ID > since:
			used = &refusal{ErrInUse, fmt.Sprintf("network %s is in use: %s is held by %s", s.p.n.Name, l.Address, l.Holder())}
		case r != nil && r.ID > since:
			used = &refusal{ErrInUse, fmt.Sprintf("network %s is in use: %s is reserved for %s; end that with `berth reservation rm`", s.p.n.Name, l.Address, r.Owner)}
		default:
			return nil
		}
		return errStop
	})
	if errors.Is(err, errStop) {
		return used
	}
	return err
}

// asMade refuses to remove a subnet that somebody has changed since it was made.
func (s *stepper) asMade(st *step) error {
	made := new(Subnet)
	if err := st.decode(made); err != nil {
		return err
	}
	same, err := nothing(made.facts(), s.sub.facts())
	if err == nil && !same {
		err = &refusal{ErrInUse, fmt.Sprintf("the subnet %s of network %s was changed since it was imported; if it is to go all the same, remove it with `berth subnet rm %s %s`", s.sub.CIDR, s.p.n.Name, s.p.n.Name, s.sub.CIDR)}
	}
	return err
}

// dropSubnet removes the subnet of the last step.
func (s *stepper) dropSubnet(st *step) (Counts, error) {
	sub := s.sub
	if err := s.p.unused(sub, false); err != nil {
		return Counts{}, err
	}
	if err := s.asMade(st); err != nil {
		return Counts{}, err
	}
	if err := s.p.dropGateway(sub); err != nil {
		return Counts{}, err
	}
	if _, err := s.tell(&Event{Verb: SubnetRemoved, Subnet: sub.CIDR}, sub.facts(), nil); err != nil {
		return Counts{}, err
	}
	if s.ix.subnets[sub.ID].recorded.Len() > 0 {
		s.edit.swept = append(s.edit.swept, sub) // memories
	}
	s.sub = nil
	return Counts{Subnets: 1, Pools: len(sub.Pools)}, s.removeSubnet(sub)
}

func (s *stepper) dropPools(st *step) (n Counts, err error) {
	var pools []Pool
	if err := st.decode(&pools); err != nil {
		return n, err
	}
	edited := *s.sub
	edited.Pools = slices.Clone(edited.Pools)
	for _, pool := range slices.Backward(pools) {
		i := slices.Index(edited.Pools, pool)
		if i < 0 {
			continue
		}
		edited.Pools = slices.Delete(edited.Pools, i, i+1)
		if _, err := s.tell(&Event{Verb: PoolRemoved, Subnet: edited.CIDR}, pool, nil); err != nil {
			return n, err
		}
		n.Pools++
	}
	return n, s.set(&edited)
}

func (s *stepper) dropExclusions(st *step) (n Counts, err error) {
	var exclusions []Exclusion
	if err := st.decode(&exclusions); err != nil {
		return n, err
	}
	edited := *s.sub
	edited.Exclusions = slices.Clone(edited.Exclusions)
	for _, x := range slices.Backward(exclusions) {
		i := slices.Index(edited.Exclusions, x)
		if i < 0 {
			continue
		}
		edited.Exclusions = slices.Delete(edited.Exclusions, i, i+1)
		if _, err := s.tell(&Event{Verb: ExclusionRemoved, Subnet: edited.CIDR}, x, nil); err != nil {
			return n, err
		}
		n.Exclusions++
	}
	return n, s.set(&edited)
}

// endReservation makes the address nobody's. Who has it in use keeps it.
func (s *stepper) endReservation(st *step) (Counts, error) {
	l, err := s.lease(s.sub.ID, st.addr)
	if r := l.reserved(); err != nil || r == nil || r.Owner != st.owner || r.Slot != st.slot {
		return Counts{}, err
	}
	return Counts{Reservations: 1}, s.p.endReservation(picked{s.sub, st.addr, l}, "an import is taken back")
}

// release gives the address back, without a memory of it: it is as if it had never been taken.
func (s *stepper) release(st *step) (Counts, error) {
	l, err := s.lease(s.sub.ID, st.addr)
	if err != nil || !l.Held() || l.Kind != External || l.Name != st.owner || l.Slot != st.slot {
		return Counts{}, err
	}
	e := &Event{Verb: LeaseReleased, Subnet: s.sub.CIDR, Address: st.addr, Lease: l.ID, Name: l.Name}
	if _, err := s.p.tell(e, nil, nil); err != nil {
		return Counts{}, err
	}
	return Counts{Addresses: 1}, s.setLease(s.sub.ID, st.addr, l, l.unheld())
}
