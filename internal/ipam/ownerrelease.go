package ipam

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

func (e *ReleaseOwner) apply(c *change) (Result, error) {
	if err := CheckOwner(e.Owner); err != nil {
		return Result{}, err
	}
	owners := e.owners()
	if e.Replaced {
		return c.releaseReplaced(owners)
	}
	var result Result
	err := c.eachOwned(owners, func(at picked) error {
		result.Addresses = append(result.Addresses, at.addr)
		return c.endReservation(at, "")
	})
	if err != nil {
		return Result{}, err
	}
	err = c.eachTaken(owners, func(at picked) error {
		if !slices.Contains(result.Addresses, at.addr) {
			result.Addresses = append(result.Addresses, at.addr)
		}
		return c.release(at.sub, at.record)
	})
	if err != nil {
		return Result{}, err
	}
	return result, c.forgetOwners(owners)
}

func (e *ReleaseOwner) owners() ownerSet {
	owners := ownerSet{names: []string{canonicalOwner(e.Owner)}}
	if e.Under {
		owners.under = e.Owner + "/"
	}
	return owners
}

// ownerSet is owners by name, or by what their paths begin with.
type ownerSet struct {
	names []string
	under string // with the slash at its end; empty: none
}

// in lists the places of the owners.
func (o ownerSet) in(p *places[string]) (all []netip.Addr) {
	if o.under == "" {
		for _, name := range o.names {
			all = slices.AppendSeq(all, p.of(name))
		}
		return all
	}
	for owner, addr := range p.all() {
		if o.has(owner) {
			all = append(all, addr)
		}
	}
	return all
}

func (o ownerSet) has(owner string) bool {
	return slices.Contains(o.names, owner) || o.under != "" && strings.HasPrefix(owner, o.under)
}

// eachOwned walks over what is reserved for owners in networks that are there as a whole, by space and address.
func (c *change) eachOwned(owners ownerSet, fn func(picked) error) error {
	for _, sx := range c.wholeSubnets() {
		if sx.reserved == 0 {
			continue
		}
		err := c.eachAt(sx, owners.in(&sx.byOwner), fn, func(l *Lease) bool { return l.reserved() != nil && owners.has(l.Reservation.Owner) })
		if err != nil {
			return err
		}
	}
	return nil
}

// eachTaken walks over what owners have in hand by TakeAddress.
func (c *change) eachTaken(owners ownerSet, fn func(picked) error) error {
	for _, sx := range c.wholeSubnets() {
		named := ownerSet{under: owners.under}
		for _, name := range owners.names {
			named.names = append(named.names, rememberedName(name))
		}
		err := c.eachAt(sx, named.in(&sx.byName), fn, func(l *Lease) bool { return l.Held() && l.Kind == External && owners.has(l.Name) })
		if err != nil {
			return err
		}
	}
	return nil
}

// eachAt reads the records of places, which are advice, and hands on those that are chosen.
func (c *change) eachAt(sx *subnetIndex, places []netip.Addr, fn func(picked) error, chosen func(*Lease) bool) error {
	sub := sx.record.value
	slices.SortFunc(places, netip.Addr.Compare)
	for _, addr := range slices.Compact(places) {
		l, err := c.lease(sub.ID, addr)
		if err == nil && chosen(l) {
			err = fn(picked{sub, addr, l})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wholeSubnets lists the subnets of networks that are there as a whole, by space and address.
func (c *change) wholeSubnets() []*subnetIndex {
	all := make([]*subnetIndex, 0, len(c.ix.subnets))
	for _, sx := range c.ix.subnets {
		if n := c.ix.network(sx.record.value.Network); n != nil && n.Stage == "" {
			all = append(all, sx)
		}
	}
	slices.SortFunc(all, func(a, b *subnetIndex) int {
		x, y := a.record.value, b.record.value
		return cmp.Or(cmp.Compare(x.Space, y.Space), x.CIDR.Addr().Compare(y.CIDR.Addr()))
	})
	return all
}

// ownerPlace is what an address is of its owner.
type ownerPlace struct {
	owner   string
	network ID
	slot    Slot
}

// releaseReplaced ends what was replaced where the owner has in use what replaced it (BO-13): the address in the same place or,
// where that is wanted no more, any that the owner has. Who has the old one in hand keeps it.
func (c *change) releaseReplaced(owners ownerSet) (Result, error) {
	var old []picked
	inUse := map[ownerPlace]bool{} // of each that is wanted
	any := map[string]bool{}
	err := c.eachOwned(owners, func(at picked) error {
		r := at.record.Reservation
		if r.Replaced {
			old = append(old, at)
			return nil
		}
		inUse[ownerPlace{r.Owner, at.sub.Network, r.Slot}] = at.record.Held()
		any[r.Owner] = any[r.Owner] || at.record.Held()
		return nil
	})
	if err != nil {
		return Result{}, err
	}
	var result Result
	for _, at := range old {
		r := at.record.Reservation
		runs, wanted := inUse[ownerPlace{r.Owner, at.sub.Network, r.Slot}]
		if wanted && !runs || !any[r.Owner] {
			continue
		}
		if err := c.endReservation(at, "its owner has the address that replaced it in use"); err != nil {
			return Result{}, err
		}
		result.Addresses = append(result.Addresses, at.addr)
	}
	return result, nil
}
