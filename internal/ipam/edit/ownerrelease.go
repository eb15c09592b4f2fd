package edit

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/elastic"
	"berth/internal/ipam/ledger"
)

func releaseOwner(c *run, e *ipam.ReleaseOwner) error {
	if err := ipam.CheckOwner(e.Owner); err != nil {
		return err
	}
	owners := Owners(e)
	if e.Replaced {
		return releaseReplaced(c, owners, nil)
	}
	err := EachOwned(c.Change, owners, func(at ledger.Picked) error {
		c.gave(at.Addr)
		return ledger.EndReservation(c.Change, at, "")
	})
	if err != nil {
		return err
	}
	err = EachTaken(c.Change, owners, func(at ledger.Picked) error {
		if !slices.Contains(c.result.Addresses, at.Addr) {
			c.gave(at.Addr)
		}
		return allocator.Release(c.Change, at.Sub, at.Record)
	})
	if err != nil {
		return err
	}
	if err := elastic.EndOwners(c.Change, owners.Has); err != nil {
		return err
	}
	return forgetOwners(c.Change, owners)
}

// Owners returns the owners that a release covers.
func Owners(e *ipam.ReleaseOwner) OwnerSet {
	owners := OwnerSet{names: []string{ipam.CanonicalOwner(e.Owner)}}
	if e.Under {
		owners.under = e.Owner + "/"
	}
	return owners
}

// OwnerSet is a set of owners: some by name, and all below a path.
type OwnerSet struct {
	names []string
	under string // the path with its trailing slash; empty: none
}

// in lists the addresses of the owners.
func (o OwnerSet) in(p *ledger.OwnerPlaces) (all []netip.Addr) {
	if o.under == "" {
		for _, name := range o.names {
			all = slices.AppendSeq(all, p.Of(name))
		}
		return all
	}
	for owner, addr := range p.All() {
		if o.Has(owner) {
			all = append(all, addr)
		}
	}
	return all
}

// Has reports whether an owner is in the set.
func (o OwnerSet) Has(owner string) bool {
	return slices.Contains(o.names, owner) || o.under != "" && strings.HasPrefix(owner, o.under)
}

// EachOwned calls fn for each reservation of the owners in complete networks, by space and address.
func EachOwned(c *ledger.Change, owners OwnerSet, fn func(ledger.Picked) error) error {
	there := func(sx *ledger.SubnetIndex) bool { return sx.Reserved() > 0 && len(owners.in(sx.ByOwner())) > 0 }
	for _, sx := range wholeSubnets(c, there) {
		err := eachAt(c, sx, owners.in(sx.ByOwner()), fn,
			func(l *ipam.Lease) bool { return l.Reserved() != nil && owners.Has(l.Reservation.Owner) })
		if err != nil {
			return err
		}
	}
	return nil
}

// EachTaken calls fn for each external address of the owners.
func EachTaken(c *ledger.Change, owners OwnerSet, fn func(ledger.Picked) error) error {
	for _, sx := range wholeSubnets(c, func(*ledger.SubnetIndex) bool { return true }) {
		named := OwnerSet{under: owners.under}
		for _, name := range owners.names {
			named.names = append(named.names, ipam.RememberedName(name))
		}
		err := eachAt(c, sx, named.in(sx.ByTaken()), fn,
			func(l *ipam.Lease) bool { return l.Held() && l.Kind == ipam.External && owners.Has(l.Name) })
		if err != nil {
			return err
		}
	}
	return nil
}

// eachAt reads the records at places, which may be outdated, and calls fn for the chosen ones.
func eachAt(c *ledger.Change, sx *ledger.SubnetIndex, places []netip.Addr, fn func(ledger.Picked) error,
	chosen func(*ipam.Lease) bool) error {
	sub := sx.Record()
	slices.SortFunc(places, netip.Addr.Compare)
	for _, addr := range slices.Compact(places) {
		l, err := c.Lease(sub.ID, addr)
		if err == nil && chosen(l) {
			err = fn(ledger.Picked{Sub: sub, Addr: addr, Record: l})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wholeSubnets lists the subnets of complete networks that keep selects, by space and address.
func wholeSubnets(c *ledger.Change, keep func(*ledger.SubnetIndex) bool) []*ledger.SubnetIndex {
	var all []*ledger.SubnetIndex
	for _, sx := range c.Index().Subnets() {
		if n := c.Index().Network(sx.Record().Network); n != nil && n.Stage == "" && keep(sx) {
			all = append(all, sx)
		}
	}
	slices.SortFunc(all, func(a, b *ledger.SubnetIndex) int {
		x, y := a.Record(), b.Record()
		return cmp.Or(cmp.Compare(x.Space, y.Space), x.CIDR.Addr().Compare(y.CIDR.Addr()))
	})
	return all
}

// ownerPlace is an owner's slot in a network.
type ownerPlace struct {
	owner   string
	network ipam.ID
	slot    ipam.Slot
}

// releaseReplaced ends replaced reservations whose owner uses the replacement. That is the address in the same
// slot. If that slot is no longer wanted, it is any address of the owner, even in the other store. A holder of the old
// address keeps it.
func releaseReplaced(c *run, owners OwnerSet, elsewhere map[string]bool) error {
	var old []ledger.Picked
	inUse := map[ownerPlace]bool{} // for each wanted slot
	any := map[string]bool{}
	err := EachOwned(c.Change, owners, func(at ledger.Picked) error {
		r := at.Record.Reservation
		if r.Replaced {
			old = append(old, at)
			return nil
		}
		inUse[ownerPlace{r.Owner, at.Sub.Network, r.Slot}] = at.Record.Held()
		any[r.Owner] = any[r.Owner] || at.Record.Held()
		return nil
	})
	if err != nil {
		return err
	}
	for _, at := range old {
		r := at.Record.Reservation
		runs, wanted := inUse[ownerPlace{r.Owner, at.Sub.Network, r.Slot}]
		if wanted && !runs || !any[r.Owner] && !elsewhere[r.Owner] {
			continue
		}
		if err := ledger.EndReservation(c.Change, at, "its owner uses the address that replaced it"); err != nil {
			return err
		}
		c.gave(at.Addr)
	}
	return nil
}
