package allocator

import (
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

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

// requested is the Source for a request of the engine.
type requested struct {
	t   *Target
	req *ipam.AddressRequest
	who ipam.Meaning
}

// Reserved implements Source. A stand-in gets the reservation of the container that it replaces.
func (r *requested) Reserved() (*ipam.Lease, error) {
	if l, err := r.t.ReservedFor(r.who, r.req.MAC); err != nil || l != nil {
		return l, err
	}
	return r.t.standIn(*r.req, r.who)
}

// Open implements Source.
func (r *requested) Open() error {
	if err := r.who.N.CheckAutomatic(); err != nil {
		return err
	}
	r.t.ByRule(r.who)
	return nil
}

// Remembered implements Source.
func (r *requested) Remembered() (*ipam.Lease, error) { return r.t.Remembered(r.req) }

// Any implements Source.
func (r *requested) Any() (netip.Addr, *ipam.Lease, error) { return r.t.Any() }

// AddressOf returns the address of a record, or the zero address for nil.
func AddressOf(l *ipam.Lease) netip.Addr {
	if l == nil {
		return netip.Addr{}
	}
	return l.Address
}

// ReservedFor returns the free address that is reserved for the owners of a name, or else for a MAC. If all of an
// owner's addresses are taken, it returns a refusal, because any other address would be wrong.
func (t *Target) ReservedFor(who ipam.Meaning, mac ipam.MAC) (*ipam.Lease, error) {
	if t.Sx.Reserved() == 0 {
		return nil, nil
	}
	for owner := range who.Owners {
		if r, err := t.reservedOf(owner); err != nil {
			return r, err
		} else if r != nil {
			return r, nil
		}
	}
	if mac == (ipam.MAC{}) {
		return nil, nil
	}
	return t.reservedOf(mac.String())
}

// reservedOf returns the first free reservation of an owner that is not replaced, or nil.
func (t *Target) reservedOf(owner string) (*ipam.Lease, error) {
	free, held, err := t.Reservations(t.Sub.ID, owner)
	if err != nil {
		return nil, err
	}
	for _, l := range free {
		if !l.Reservation.Replaced {
			return l, nil
		}
	}
	for _, l := range held {
		if !l.Reservation.Replaced {
			return nil, HeldError(t.Change, t.Sub, l)
		}
	}
	return nil, nil
}

// Remembered returns the free address that the container, else the name, else the MAC, of req had last. Otherwise it
// may be the address of one of the containers that start together with it. An address outside the pools counts only if
// it was requested by address, and no pool is named now. An address that another container requests by its own
// configuration does not count.
func (t *Target) Remembered(req *ipam.AddressRequest) (*ipam.Lease, error) {
	if n := t.Index().Network(t.Sub.Network); n != nil && n.Policy.Forget {
		return nil, nil
	}
	may := func(m *ipam.Lease) bool { return t.recalls(m) && !t.Kept.From(req.Name, m.Address) }
	for _, home := range req.Hint.Home {
		if !t.Sub.CIDR.Contains(home) {
			continue
		}
		if m, err := t.read(home); err != nil || isMemory(m) && may(m) {
			return m, err
		}
	}
	own, err := LastHad(t.Sx, t.Known().ContainerOf(req.Name), req.Name, req.MAC, t.read, may)
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
	slot := t.Slot()
	for _, p := range t.Pools() {
		if addr, before, err := t.chooseIn(p, slot); err != nil || addr.IsValid() {
			return addr, before, err
		}
	}
	return netip.Addr{}, nil, nil
}

// chooseIn proposes addresses of one pool until the record confirms that one is free.
func (t *Target) chooseIn(p ledger.OpenPool, slot int) (netip.Addr, *ipam.Lease, error) {
	for {
		addr, ok := Next(t.Sx, p, slot, t.Now(), t.Kept, t.Known().StillExists)
		if !ok {
			return netip.Addr{}, nil, nil
		}
		found, err := t.read(addr)
		if err != nil {
			return addr, found, err
		}
		if Free(found, t.Now()) {
			return addr, found, nil
		}
		t.Sx.Move(addr, found, found) // the index was wrong; this corrects it
	}
}

// Free reports whether anybody may have an address at the given time. l is the record of the address, or nil.
func Free(l *ipam.Lease, now time.Time) bool {
	return l == nil || !l.Held() && l.Reservation == nil && !ipam.Quarantined(l.QuarantineUntil, now)
}
