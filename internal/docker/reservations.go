package docker

import "berth/internal/ipam"

// judgeReservations finds reservations that were kept until their owners run with others, which they do now.
func (c *comparison) judgeReservations() {
	at := make(map[place]match, len(c.matches))
	for _, m := range c.matches {
		at[place{m.lease.Space, m.lease.Address}] = m
	}
	wanted := map[holding]bool{} // owners with a current reservation on a network
	runs := map[holding]*ipam.ReservationInfo{}
	for i := range c.rec.reservations {
		r := &c.rec.reservations[i]
		if r.Replaced {
			continue
		}
		wanted[holding{r.Owner, r.Network}] = true
		if m, seen := at[place{r.Space, r.Address}]; seen && (c.owns(m, r) || c.standsInFor(m, r)) {
			runs[holding{r.Owner, r.Network}], runs[holding{r.Owner, ""}] = r, r
		}
	}
	for i := range c.rec.reservations {
		r := &c.rec.reservations[i]
		where := holding{r.Owner, r.Network}
		if !wanted[where] {
			where.network = "" // nothing is reserved for it there any more, so its address on any network counts
		}
		if now := runs[where]; r.Replaced && !r.InUse && now != nil {
			c.addSuperseded(r, now)
		}
	}
}

// holding is an owner on a network, or on any network if that is empty.
type holding struct{ owner, network string }

func (c *comparison) addSuperseded(old, now *ipam.ReservationInfo) {
	f := ofSubnet(ipam.SupersededReservation, segment{old.Space, old.Subnet}, old.Network)
	f.sure, f.Address, f.Owner = true, old.Address, old.Owner
	c.add(f, "%s was kept for %s, which now runs with %s", old.Address, old.Owner, now.Address)
}
