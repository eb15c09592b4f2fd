package pin

import (
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/ipam"
)

// This file decides whose an address is, by reservations and memories, and what to reserve for a container.

// owner returns for whom the addresses of a container are reserved: its Compose owner, if the container's name means
// that on the network, else its name. A service with a container_name has that name.
func (s *judged) owner() string {
	if owner := s.c.Owner(); s.means(s.pin.PlannedID, owner) {
		return owner
	}
	return s.c.Name
}

// means reports whether the container's name can mean an owner on a network of Berth's.
func (s *judged) means(network, owner string) bool {
	n := s.plans[network]
	if n == nil {
		n = &ipam.Network{}
	}
	return n.Means(s.c.Name, owner)
}

// mine reports whether an owner is the container: by its name, by an owner rule of the network, or by its MAC. If the
// engine sends no names, the owner by Compose's labels also counts.
func (s *judged) mine(sub *ipam.SubnetInfo, owner string) bool {
	switch {
	case owner == "":
		return false
	case s.means(sub.NetworkID.String(), owner):
		return true
	case s.ep.MAC != (ipam.MAC{}) && owner == s.ep.MAC.String():
		return true
	}
	return !s.rec.TakesAny && owner == s.c.Owner()
}

// holder returns the current lease of an address, or nil.
func (s *judged) holder(sub *ipam.SubnetInfo, addr netip.Addr) *ipam.LeaseInfo {
	for i := range s.rec.Leases {
		l := &s.rec.Leases[i]
		if l.Address == addr && l.Space == sub.Space && l.Released.IsZero() {
			return l
		}
	}
	return nil
}

// memory returns the newest remembered lease of the container in a subnet, or nil.
func (s *judged) memory(sub *ipam.SubnetInfo) (last *ipam.LeaseInfo) {
	for i := range s.rec.Leases {
		l := &s.rec.Leases[i]
		if l.Subnet != sub.CIDR || l.Space != sub.Space || l.Released.IsZero() {
			continue
		}
		if l.Name == "" || !s.means(sub.NetworkID.String(), l.Name) {
			continue
		}
		if last == nil || last.Released.Before(l.Released) {
			last = l
		}
	}
	return last
}

// reservation returns the container's reservation in a subnet, or nil. Replaced reservations do not count: they end
// when their owner runs with its new address.
func (s *judged) reservation(sub *ipam.SubnetInfo) *ipam.ReservationInfo {
	for i := range s.rec.Reservations {
		r := &s.rec.Reservations[i]
		if r.Subnet == sub.CIDR && r.Space == sub.Space && !r.Replaced && r.Address.IsValid() && s.mine(sub, r.Owner) {
			return r
		}
	}
	return nil
}

// reserve records the container's reservation of an address, or the edit that makes it. It refuses an address that is
// reserved for somebody else, and a second address of an owner in one subnet.
func (s *judged) reserve(sub *ipam.SubnetInfo, addr netip.Addr) (refusal string) {
	for i := range s.rec.Reservations {
		r := &s.rec.Reservations[i]
		if r.Address != addr || r.Space != sub.Space {
			continue
		}
		if !s.mine(sub, r.Owner) {
			return fmt.Sprintf("%s, which %s has, is reserved for %s in network %s: end the reservation with `berth "+
				"reservation rm %s --owner %s --ip %s`, or start %s with another address", addr, s.c.Name, r.Owner,
				r.Network, r.Network, r.Owner, addr, s.c.Name)
		}
		s.pin.Reservation = append(s.pin.Reservation, Kept{r.Network, r.NetworkID, r.Owner, addr})
		return ""
	}
	if r := s.reservation(sub); r != nil {
		return fmt.Sprintf("%s has %s, and %s is reserved for %s in network %s: to keep the first, end the "+
			"reservation with `berth reservation rm %s --owner %s --ip %s` and pin again; to have the reserved one, stop %s, "+
			"pin it, and start it", s.c.Name, addr, r.Address,
			r.Owner, r.Network, r.Network, r.Owner,
			r.Address, s.c.Name)
	}
	if err := ipam.CheckOwner(s.pin.Owner); err != nil {
		return err.Error()
	}
	s.fresh = append(s.fresh, addr)
	s.pin.Reserve = append(s.pin.Reserve, s.edit(sub, addr))
	return ""
}

// edit reserves an address in the lowest free slot of its owner on the network. The edit repeats the owner's other
// addresses, because the slots of an interface must have no gaps. It has Force for a running container: engines before
// v29 send no names, so the lease of its address may have any name or none. It names the network by id, because the two
// networks of a dual-stack Docker network have the same name.
func (s *judged) edit(sub *ipam.SubnetInfo, addr netip.Addr) *ipam.AddReservation {
	add := &ipam.AddReservation{Network: sub.NetworkID.String(), Owner: s.pin.Owner, Force: s.pin.Runs(),
		Automatic: s.automatic(sub, addr)}
	for _, r := range s.rec.Reservations {
		if r.NetworkID != sub.NetworkID || r.Replaced {
			continue
		}
		if !r.Address.IsValid() || !s.mine(sub, r.Owner) {
			continue
		}
		add.Owner, add.Number = r.Owner, r.Interface
		add.Automatic = add.Automatic && r.Kind == ipam.Automatic
		add.Wishes = append(add.Wishes, ipam.Wish{Slot: r.Slot, Address: r.Address})
	}
	key := add.Network + "\x00" + add.Owner
	add.Wishes = append(add.Wishes, s.wished[key]...)
	wish := ipam.Wish{Address: addr}
	for slices.ContainsFunc(add.Wishes, func(w ipam.Wish) bool { return w.Slot == wish.Slot }) {
		wish.Slot++
	}
	s.wished[key] = append(s.wished[key], wish)
	add.Wishes = append(add.Wishes, wish)
	slices.SortFunc(add.Wishes, func(a, b ipam.Wish) int { return a.Slot - b.Slot })
	return add
}

// automatic reports whether Berth chose the address. It did if no user asked for it and it is outside the static bands,
// which are for people.
func (s *judged) automatic(sub *ipam.SubnetInfo, addr netip.Addr) bool {
	if n := s.types[sub.NetworkID.String()]; n != nil && n.Type == ipam.VIP.String() {
		return false
	}
	if slices.ContainsFunc(sub.Static, func(r ipam.Range) bool { return r.Contains(addr) }) {
		return false
	}
	return !slices.Contains(s.ep.Wanted, addr) || len(sub.Static) > 0
}
