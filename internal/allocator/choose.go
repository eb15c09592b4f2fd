package allocator

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// source holds what one subnet offers to a requester.
type source interface {
	// Reserved returns the address that is reserved for the requester, or nil.
	Reserved() (*ipam.Lease, error)
	// Open returns an error if only reserved addresses may be given.
	Open() error
	// Remembered returns the free address that the requester had last, or nil.
	Remembered() (*ipam.Lease, error)
	// Any returns an address that anybody may have, with its record. It returns the zero address if there is none.
	Any() (netip.Addr, *ipam.Lease, error)
}

// First applies the rule of which address a requester gets: its reservation, else its last address. Else it is an
// address from the pools of the first source that has one (Next). First also returns the address's record (a memory, a
// reservation or nil) and its source. It returns the zero address if there is none.
func First[S source](sources ...S) (from S, addr netip.Addr, record *ipam.Lease, err error) {
	for _, from = range sources {
		if record, err = from.Reserved(); err != nil || record != nil {
			return from, addressOf(record), record, err
		}
	}
	for _, from = range sources {
		if err := from.Open(); err != nil {
			return from, netip.Addr{}, nil, err
		}
	}
	for _, from = range sources {
		if record, err = from.Remembered(); err != nil || record != nil {
			return from, addressOf(record), record, err
		}
	}
	for _, from = range sources {
		if addr, record, err = from.Any(); err != nil || addr.IsValid() {
			return from, addr, record, err
		}
	}
	return from, netip.Addr{}, nil, nil
}

// Next chooses an address of a pool for a requester without a claim to one. It is the lowest address that was never
// used; hosts that share the pool start at different places. Otherwise it is the address released longest ago and past
// its quarantine. Addresses of removed containers come before those of existing ones.
func Next(sx *ledger.SubnetIndex, p ledger.OpenPool, slot int, now time.Time, kept ipam.Wants,
	exists func(name, id string) bool) (netip.Addr, bool) {
	if addr, ok := sx.NeverUsed(p, slot, kept); ok {
		return addr, true
	}
	addr, _, ok := sx.LongestReleased(p, now, kept, exists)
	return addr, ok
}

// choose finds a free address for req and returns it with its record: a memory, a reservation or nil. The index
// proposes an address, and the record decides. If the record shows that the address is held, it corrects the index, and
// the next proposal is another address.
func (t *Target) choose(req *ipam.AddressRequest) (netip.Addr, *ipam.Lease, error) {
	who := t.Index().Network(t.Sub.Network).Meaning(req.Name)
	_, addr, before, err := First(&requested{t, req, who})
	if err == nil && !addr.IsValid() {
		err = t.exhausted()
	}
	return addr, before, err
}

// requested is the source for a request of the engine.
type requested struct {
	*Target // has Any
	req     *ipam.AddressRequest
	who     ipam.Meaning
}

// Reserved implements source. A stand-in gets the reservation of the container that it replaces.
func (r *requested) Reserved() (*ipam.Lease, error) {
	if l, err := r.ReservedFor(r.who, r.req); err != nil || l != nil {
		return l, err
	}
	return r.standIn(*r.req, r.who)
}

// Open implements source.
func (r *requested) Open() error {
	if err := r.who.N.CheckAutomatic(); err != nil {
		return err
	}
	r.ByRule(r.who)
	return nil
}

// Remembered implements source.
func (r *requested) Remembered() (*ipam.Lease, error) { return r.Target.Remembered(r.req) }

// addressOf returns the address of a record, or the zero address for nil.
func addressOf(l *ipam.Lease) netip.Addr {
	if l == nil {
		return netip.Addr{}
	}
	return l.Address
}

// ReservedFor returns the free address that is reserved for the owners of a name, or else for the MAC of req. If all of
// an owner's addresses are taken, it returns a refusal, because any other address would be wrong. A container that comes
// back may have the address whose release was lost.
func (t *Target) ReservedFor(who ipam.Meaning, req *ipam.AddressRequest) (*ipam.Lease, error) {
	if t.Sx.Reserved() == 0 {
		return nil, nil
	}
	l, err := t.reservation(who.Owners)
	if l == nil && err == nil && req.MAC != (ipam.MAC{}) {
		l, err = t.reservation(slices.Values([]string{req.MAC.String()}))
	}
	switch {
	case l.Held() && !t.comesBack(req, l):
		return nil, HeldError(t.Change, t.Sub, l)
	case l != nil:
		if by, runs := t.runsElsewhere(l.Address, req.Name); runs {
			return nil, runsError(t.Change, l.Address, by)
		}
	}
	return l, err
}

// reservation returns the first reservation in the subnet, of the first owner that has any, and that is not replaced. A
// held one counts only if the owner has no other.
func (t *Target) reservation(owners iter.Seq[string]) (*ipam.Lease, error) {
	for owner := range owners {
		all, err := t.Reservations(t.Sub.ID, owner)
		if err != nil {
			return nil, err
		}
		for _, l := range all {
			if !l.Reservation.Replaced {
				return l, nil
			}
		}
	}
	return nil, nil
}

// Remembered returns the free address that the container, else the name, else the MAC, of req had last. Otherwise it
// may be the address of one of the containers that start together with it. An address outside the pools counts only if
// it was requested by address, and no pool is named now. An address that another container requests by its own
// configuration does not count.
func (t *Target) Remembered(req *ipam.AddressRequest) (*ipam.Lease, error) {
	if t.Index().Policy(t.Sub).Forget {
		return nil, nil
	}
	may := func(m *ipam.Lease) bool {
		_, runs := t.runsElsewhere(m.Address, req.Name)
		return t.recalls(m) && !t.Kept.From(req.Name, m.Address) && !runs
	}
	for _, home := range req.Hint.Home {
		if !t.Sub.CIDR.Contains(home) {
			continue
		}
		if m, err := t.Record(home); err != nil || IsMemory(m) && may(m) {
			return m, err
		}
	}
	had := func(l *ipam.Lease) bool { return IsMemory(l) || l.Reserved() == nil && t.comesBack(req, l) }
	own, err := LastHad(t.Sx, t.Known().ContainerOf(req.Name), req.Name, req.MAC, t.Record, had, may)
	if own != nil || err != nil {
		return own, err
	}
	return t.leftByOthers(&req.Hint, may)
}

// recalls reports whether a requester may get its last address again. Outside the pools it may only if it requested the
// address before, and no pool is named now.
func (t *Target) recalls(m *ipam.Lease) bool {
	return t.InPools(m.Address) || m.Kind == ipam.Static && t.Pool == "" && t.Sub.Exclusion(m.Address) == nil &&
		t.Sub.StaticBand(m.Address).IsZero()
}

// Any returns an unreserved address of the pools, in their order, with its record. It returns the zero address if there
// is none.
func (t *Target) Any() (netip.Addr, *ipam.Lease, error) {
	return t.chooseIn(t.Pools(), t.Slot())
}

// chooseIn proposes addresses of the pools until the record confirms that one is free.
func (t *Target) chooseIn(pools []ledger.OpenPool, slot int) (netip.Addr, *ipam.Lease, error) {
	for _, p := range pools {
		for {
			addr, ok := Next(t.Sx, p, slot, t.Now(), t.Kept, t.Known().StillExists)
			if !ok {
				break
			}
			found, err := t.Record(addr)
			if err != nil {
				return addr, found, err
			}
			if _, runs := t.runsElsewhere(addr, ""); runs {
				t.Kept = t.Kept.And(addr) // nobody may get it, whatever the records say
				continue
			}
			if Free(found, t.Now()) {
				return addr, found, nil
			}
			t.Sx.Move(addr, found, found) // the index was wrong; this corrects it
		}
	}
	return netip.Addr{}, nil, nil
}

// Free reports whether nobody has a claim to an address at the given time. l is the record of the address, or nil.
func Free(l *ipam.Lease, now time.Time) bool {
	return l.Claim().State(ipam.AddressFree, now) == ipam.AddressFree
}

// Reading reads the record of an address, or nil if it has none. An index alone is only a hint.
type Reading func(netip.Addr) (*ipam.Lease, error)

// LastHad returns what a container had last, by its short id, else its name, else its MAC: the latest record that had
// selects, such as memories, and that may be given. A renamed container is the same container. The address of a name
// belongs to whoever has the name, once its old holder is gone. The quarantine does not apply.
func LastHad(sx *ledger.SubnetIndex, container, name string, mac ipam.MAC, read Reading,
	had, may func(*ipam.Lease) bool) (*ipam.Lease, error) {
	own, err := latest(sx.SawContainer(container), read, func(m *ipam.Lease) bool {
		return had(m) && m.Container == container && may(m)
	})
	if err != nil || own != nil {
		return own, err
	}
	name = ipam.RememberedName(name)
	byName, err := latest(sx.SawName(name), read, func(m *ipam.Lease) bool {
		return had(m) && ipam.RememberedName(m.Name) == name && may(m)
	})
	if err != nil || byName != nil {
		return byName, err
	}
	return latest(sx.SawMAC(mac), read, func(m *ipam.Lease) bool {
		return had(m) && m.MAC == mac && may(m)
	})
}

// IsMemory reports whether a record is only the memory of a lease.
func IsMemory(l *ipam.Lease) bool { return l.Remembered() && l.Reservation == nil }

// latest returns the record that was in use last, of those that is selects. Of two it takes the lower address; it
// returns nil if there is none. The order of places does not help, because a rolled-back change can alter it.
func latest(places []netip.Addr, read Reading, is func(*ipam.Lease) bool) (last *ipam.Lease, err error) {
	for _, addr := range places {
		l, err := read(addr)
		if err != nil {
			return nil, err
		}
		if l == nil || !is(l) {
			continue
		}
		if last == nil || cmp.Or(l.LastUsed().Compare(last.LastUsed()), last.Address.Compare(l.Address)) > 0 {
			last = l
		}
	}
	return last, nil
}
