package ipam

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// stepper makes the steps of an import inside a transaction. It holds on to the network and the subnet of the last one.
type stepper struct {
	*change
	p   *plan
	sub *Subnet
}

// apply makes a step, and answers what it has added. What is no longer as it was when the plan was checked is refused.
func (s *stepper) apply(st *step) (Counts, error) {
	if st.op == stepNetwork {
		return Counts{Networks: 1}, s.makeNetwork(st)
	}
	if err := s.open(st); err != nil {
		return Counts{}, err
	}
	switch st.op {
	case stepReveal:
		return Counts{}, s.reveal()
	case stepSubnet:
		return s.makeSubnet(st)
	case stepOwner:
		return Counts{Reservations: 1}, s.know(st)
	}
	if err := s.openSubnet(st); err != nil {
		return Counts{}, err
	}
	switch st.op {
	case stepPools:
		return s.addPools(st)
	case stepExclusions:
		return s.addExclusions(st)
	case stepReserve:
		return Counts{Reservations: 1}, s.reserve(st)
	case stepTake:
		return Counts{Addresses: 1}, s.take(st)
	}
	return Counts{}, fmt.Errorf("%w: the journal of an import has a step %d, which this Berth does not know", ErrDamaged, st.op)
}

// find reads the network of a step; false where it is gone.
func (s *stepper) find(st *step) (bool, error) {
	if s.p != nil && s.p.n.ID == st.network {
		return true, nil
	}
	s.p, s.sub = nil, nil
	s.key = networkKey(s.key[:0], st.network)
	raw, err := s.tx.Get(s.key)
	if err != nil || raw == nil {
		return false, err
	}
	n := new(Network)
	if nx := s.ix.networks[st.network]; nx != nil && nx.record.is(raw) {
		n = nx.record.value
	} else if err := decodeJSON("network "+st.network.String(), raw, n); err != nil {
		return false, err
	}
	switch n.Stage {
	case Leaving:
		return false, nil
	case Moving:
		return false, beingCopied(n)
	}
	s.p = &plan{s.change, n}
	return true, nil
}

func (s *stepper) open(st *step) error {
	there, err := s.find(st)
	if err == nil && !there {
		err = &refusal{ErrNotFound, fmt.Sprintf("network %s, to which it adds, was removed meanwhile", st.network)}
	}
	return err
}

// findSubnet reads the subnet of a step; false where it is gone.
func (s *stepper) findSubnet(st *step) (bool, error) {
	if s.sub != nil && s.sub.ID == st.subnet {
		return true, nil
	}
	s.sub = nil
	sx := s.ix.subnets[st.subnet]
	if sx == nil {
		return false, nil
	}
	var err error
	s.sub, err = s.readSubnet(sx.record.value)
	return err == nil, err
}

func (s *stepper) openSubnet(st *step) error {
	there, err := s.findSubnet(st)
	if err == nil && !there {
		err = &refusal{ErrNotFound, fmt.Sprintf("a subnet of network %s, to which it adds, was removed meanwhile", s.p.n.Name)}
	}
	return err
}

// tell writes the event of a step. A network that is seen gets a new revision with it.
func (s *stepper) tell(e *Event, before, after any) (uint64, error) {
	if s.p.n.Stage != "" {
		return s.p.tell(e, before, after)
	}
	err := s.p.note(e, before, after)
	return s.p.n.Revision, err
}

// set writes the subnet of the last step anew.
func (s *stepper) set(sub *Subnet) error {
	s.sub = sub
	return s.setSubnet(sub)
}

func (s *stepper) makeNetwork(st *step) error {
	n := new(Network)
	if err := st.decode(n); err != nil {
		return err
	}
	if err := s.nameFree(n.Name); err != nil {
		return err
	}
	if err := s.ensureSpace(n.Space); err != nil {
		return err
	}
	n.Created, n.Stage = s.now, Arriving
	s.p, s.sub = &plan{s.change, n}, nil
	return s.p.note(&Event{Verb: NetworkCreated}, nil, n.facts())
}

// reveal lets the network be seen, with all that is in it.
func (s *stepper) reveal() error {
	n := *s.p.n
	n.Stage, n.Revision = "", s.ix.lastEvent
	s.p.n = &n
	if err := s.tx.Put(revealedKey(n.ID), binary.BigEndian.AppendUint64(nil, n.Revision)); err != nil {
		return err
	}
	return s.setNetwork(n.ID, &n)
}

func (s *stepper) makeSubnet(st *step) (Counts, error) {
	sub := new(Subnet)
	if err := st.decode(sub); err != nil {
		return Counts{}, err
	}
	if err := s.p.noOverlap(sub.CIDR, ID{}); err != nil {
		return Counts{}, err
	}
	if err := s.p.checkSubnet(sub); err != nil {
		return Counts{}, err
	}
	id, err := s.tell(&Event{Verb: SubnetCreated, Subnet: sub.CIDR}, nil, sub.facts())
	if err != nil {
		return Counts{}, err
	}
	sub.Created = eventTime(id)
	if err := s.set(sub); err != nil {
		return Counts{}, err
	}
	return Counts{Subnets: 1, Pools: len(sub.Pools)}, s.p.setGatewayLease(sub)
}

func (s *stepper) addPools(st *step) (Counts, error) {
	var pools []Pool
	if err := st.decode(&pools); err != nil {
		return Counts{}, err
	}
	edited := *s.sub
	edited.Pools = slices.Clone(edited.Pools)
	for _, pool := range pools {
		if !covers(edited.CIDR, pool.Range.IPRange) {
			return Counts{}, &refusal{ErrInvalid, fmt.Sprintf("the pool %s is no longer inside the subnet %s of network %s", pool, edited.CIDR, s.p.n.Name)}
		}
		if other := edited.overlappingPool(pool.Range); other != nil {
			return Counts{}, &refusal{ErrOverlap, fmt.Sprintf("the pool %s overlaps %s of the subnet %s of network %s, which was added meanwhile", pool, *other, edited.CIDR, s.p.n.Name)}
		}
		if _, err := s.tell(&Event{Verb: PoolAdded, Subnet: edited.CIDR}, nil, pool); err != nil {
			return Counts{}, err
		}
		edited.Pools = append(edited.Pools, pool)
	}
	return Counts{Pools: len(pools)}, s.set(&edited)
}

func (s *stepper) addExclusions(st *step) (Counts, error) {
	var exclusions []Exclusion
	if err := st.decode(&exclusions); err != nil {
		return Counts{}, err
	}
	edited := *s.sub
	edited.Exclusions = slices.Clone(edited.Exclusions)
	for _, x := range exclusions {
		if !covers(edited.CIDR, x.Range.IPRange) {
			return Counts{}, &refusal{ErrInvalid, fmt.Sprintf("the exclusion %s is no longer inside the subnet %s of network %s", x, edited.CIDR, s.p.n.Name)}
		}
		at, other := edited.placeOfExclusion(x.Range)
		if other != nil {
			return Counts{}, &refusal{ErrOverlap, fmt.Sprintf("the exclusion %s overlaps %s of the subnet %s of network %s, which was added meanwhile", x, *other, edited.CIDR, s.p.n.Name)}
		}
		if err := edited.outsideStatic(x.Range); err != nil {
			return Counts{}, err
		}
		if _, err := s.tell(&Event{Verb: ExclusionAdded, Subnet: edited.CIDR}, nil, x); err != nil {
			return Counts{}, err
		}
		edited.Exclusions = slices.Insert(edited.Exclusions, at, x)
	}
	return Counts{Exclusions: len(exclusions)}, s.set(&edited)
}

// fewSubnets is how many subnets a network may have for an owner's slots to be looked up in all of them again. The check has
// done so; between it and the step another admin may have filled the same slot, which then has two addresses.
const fewSubnets = 64

func (s *stepper) slotFree(st *step, all func(owner string) (map[Slot]picked, error)) error {
	if s.p.n.Stage != "" || len(s.ix.networkIndex(s.p.n.ID).subnets) > fewSubnets {
		return nil // nobody else writes in it, or too many to ask
	}
	has, err := all(st.owner)
	if one, taken := has[st.slot]; err == nil && taken {
		err = &refusal{ErrInUse, fmt.Sprintf("%s has %s as %s in network %s meanwhile, and cannot have %s there", st.owner, one.addr, st.slot, s.p.n.Name, st.addr)}
	}
	return err
}

// reserve reserves an address, be it excluded or not: an import is an admin's word.
func (s *stepper) reserve(st *step) error {
	if why := notHost(s.sub.CIDR, st.addr); why != "" {
		return &refusal{ErrInvalid, fmt.Sprintf("%s is %s, which was changed meanwhile", st.addr, why)}
	}
	l, err := s.lease(s.sub.ID, st.addr)
	if err != nil {
		return err
	}
	switch r := l.reserved(); {
	case r != nil:
		return s.reservedError(st.addr, r)
	case l.Held() && (l.Kind == Gateway || !s.p.n.holds(l, st.owner) && !st.force):
		return s.heldError(l)
	}
	if err := s.p.n.checkKind(st.owner, s.sub, st.addr, st.automatic); err != nil {
		return err
	}
	if err := s.ownerFree(st); err != nil {
		return err
	}
	r := &Reservation{Owner: st.owner, Kind: Static, Slot: st.slot, Replaced: st.replaced, Until: st.until}
	if st.automatic {
		r.Kind = Automatic
	}
	if err := s.p.writeReservation(picked{s.sub, st.addr, l}, r); err != nil {
		return err
	}
	return s.p.keep()
}

// ownerFree refuses a slot that has an address meanwhile. Who was known without one is so no longer.
func (s *stepper) ownerFree(st *step) error {
	if st.replaced {
		return nil
	}
	if _, err := s.p.forgetOwner(st.owner, ""); err != nil {
		return err
	}
	return s.slotFree(st, func(owner string) (map[Slot]picked, error) {
		owned, err := s.p.owned(owner)
		return owned.wanted, err
	})
}

// take takes an address for what is no container.
func (s *stepper) take(st *step) error {
	if why := notHost(s.sub.CIDR, st.addr); why != "" {
		return &refusal{ErrInvalid, fmt.Sprintf("%s is %s, which was changed meanwhile", st.addr, why)}
	}
	l, err := s.lease(s.sub.ID, st.addr)
	if err != nil {
		return err
	}
	switch r := l.reserved(); {
	case l.Held():
		return s.heldError(l)
	case r != nil && r.Owner != st.owner:
		return s.reservedError(st.addr, r)
	}
	if err := s.slotFree(st, func(owner string) (map[Slot]picked, error) { return s.p.taken(owner) }); err != nil {
		return err
	}
	if err := s.p.writeTaken(picked{s.sub, st.addr, l}, st.owner, st.slot); err != nil {
		return err
	}
	return s.p.keep()
}
