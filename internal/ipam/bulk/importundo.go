package bulk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
)

// revert takes back a step, and answers what it has removed. What is gone already, or is another's by now, stays as it
// is; what somebody uses is refused.
func (s *stepper) revert(st *step) (ipam.Counts, error) {
	if st.op == stepElastic {
		return s.dropElastic(st)
	}
	there, err := s.find(st)
	if err != nil {
		return ipam.Counts{}, err
	}
	if !there {
		return ipam.Counts{}, nil
	}
	switch st.op {
	case stepNetwork:
		return ipam.Counts{Networks: 1}, s.removeNetwork()
	case stepReveal:
		return ipam.Counts{}, s.hide()
	case stepOwner:
		return s.forget(st)
	}
	if there, err = s.findSubnet(st); err != nil {
		return ipam.Counts{}, err
	} else if !there {
		return ipam.Counts{}, nil
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
	return ipam.Counts{}, fmt.Errorf("%w: the journal of an import has a step %d, which this Berth does not know",
		ipam.ErrDamaged, st.op)
}

func (s *stepper) removeNetwork() error {
	n := s.p.N
	if _, err := s.p.Tell(&ipam.Event{Verb: ipam.NetworkRemoved}, edit.FactsOfNetwork(n), nil); err != nil {
		return err
	}
	s.p, s.sub = nil, nil
	return s.SetNetwork(n.ID, nil)
}

// hide lets the network be seen no longer, before anything of it goes. One that somebody has changed, or uses, stays.
func (s *stepper) hide() error {
	n := *s.p.N
	if n.Stage == ipam.Arriving {
		return nil
	}
	raw, err := s.Tx().Get(revealedKey(n.ID))
	if err != nil {
		return err
	}
	if len(raw) != 8 {
		return fmt.Errorf("%w: the journal of an import does not say when network %s was there", ipam.ErrDamaged,
			n.Name)
	}
	revealed := binary.BigEndian.Uint64(raw)
	if n.Revision != revealed {
		return ipam.Help(ipam.Refuse(ipam.ErrInUse, "network %s was changed since it was imported", n.Name),
			ipam.Advise(ipam.DoRemoveNetworkAll, n.Name))
	}
	subnets, err := s.p.Subnets()
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
	n.Stage = ipam.Arriving
	s.p.N = &n
	return s.SetNetwork(n.ID, &n)
}

// untouched refuses a subnet that has a Docker network, or an address that was taken or reserved after a moment.
func (s *stepper) untouched(sub *ipam.Subnet, since uint64) error {
	if len(sub.Attachments) > 0 {
		return s.p.Unused(sub, true)
	}
	var used error
	err := ledger.EachLease(s.Tx(), sub.ID, func(l *ipam.Lease) error {
		switch r := l.Reservation; {
		case l.Held() && l.ID > since:
			used = ipam.Refuse(ipam.ErrInUse, "network %s is in use: %s is held by %s", s.p.Called(), l.Address,
				l.Holder())
		case r != nil && r.ID > since:
			used = ipam.Help(ipam.Refuse(ipam.ErrInUse, "network %s is in use: %s is reserved for %s", s.p.Called(),
				l.Address, r.Owner),
				ipam.Advise(ipam.DoEndReservation))
		default:
			return nil
		}
		return edit.ErrStop
	})
	if errors.Is(err, edit.ErrStop) {
		return used
	}
	return err
}

// asMade refuses to remove a subnet that somebody has changed since it was made.
func (s *stepper) asMade(st *step) error {
	made := new(ipam.Subnet)
	if err := st.decode(made); err != nil {
		return err
	}
	same, err := ledger.Nothing(ledger.FactsOfSubnet(made), ledger.FactsOfSubnet(s.sub))
	if err == nil && !same {
		err = ipam.Help(ipam.Refuse(ipam.ErrInUse, "the subnet %s of network %s was changed since it was imported",
			s.sub.CIDR,
			s.p.Called()), ipam.Advise(ipam.DoRemoveSubnetOf, s.p.Called(), s.sub.CIDR))
	}
	return err
}

// dropSubnet removes the subnet of the last step.
func (s *stepper) dropSubnet(st *step) (ipam.Counts, error) {
	sub := s.sub
	if err := s.asMade(st); err != nil {
		return ipam.Counts{}, err
	}
	s.sub = nil
	return ipam.Counts{Subnets: 1, Pools: len(sub.Pools)}, s.p.UnmakeSubnet(sub)
}

func (s *stepper) dropPools(st *step) (n ipam.Counts, err error) {
	var pools []ipam.Pool
	if err := st.decode(&pools); err != nil {
		return n, err
	}
	slices.Reverse(pools)
	s.sub, n.Pools, err = s.p.DropPools(s.sub, pools...)
	return n, err
}

func (s *stepper) dropExclusions(st *step) (n ipam.Counts, err error) {
	var exclusions []ipam.Exclusion
	if err := st.decode(&exclusions); err != nil {
		return n, err
	}
	slices.Reverse(exclusions)
	s.sub, n.Exclusions, err = s.p.DropExclusions(s.sub, exclusions...)
	return n, err
}

// endReservation makes the address nobody's. Who has it in use keeps it.
func (s *stepper) endReservation(st *step) (ipam.Counts, error) {
	l, err := s.Lease(s.sub.ID, st.addr)
	if r := l.Reserved(); err != nil {
		return ipam.Counts{}, err
	} else if r == nil || r.Owner != st.owner || r.Slot != st.slot {
		return ipam.Counts{}, nil
	}
	return ipam.Counts{Reservations: 1},
		ledger.EndReservation(s.p.Change, ledger.Picked{Sub: s.sub, Addr: st.addr, Record: l}, "an import is taken back")
}

// release gives the address back, without a memory of it: it is as if it had never been taken.
func (s *stepper) release(st *step) (ipam.Counts, error) {
	l, err := s.Lease(s.sub.ID, st.addr)
	if err != nil {
		return ipam.Counts{}, err
	}
	if !l.Held() || l.Kind != ipam.External || l.Name != st.owner || l.Slot != st.slot {
		return ipam.Counts{}, nil
	}
	e := &ipam.Event{Verb: ipam.LeaseReleased, Subnet: s.sub.CIDR, Address: st.addr, Lease: l.ID, Name: l.Name}
	if _, err := s.p.Tell(e, nil, nil); err != nil {
		return ipam.Counts{}, err
	}
	return ipam.Counts{Addresses: 1}, s.SetLease(s.sub.ID, st.addr, l, l.Unheld())
}
