package docker

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"time"

	"berth/internal/ipam"
)

// This file finds containers whose address is not that which reservations say. A request of an engine that sends no
// names cannot tell who asks; the view can.

// judgeStrays finds containers that run on what is reserved for another, and owners that run beside what is reserved
// for them. A lease that may be another's than the endpoint's, because it is younger than the view, tells nothing.
func (c *comparison) judgeStrays() {
	if len(c.rec.reservations) == 0 {
		return
	}
	for _, m := range c.matches {
		if m.sight.container.ID == "" || m.lease.Kind == ipam.Headroom || !m.certain(c.view.Taken) {
			continue
		}
		of := c.reserved.at[place{m.lease.Space, m.lease.Address}]
		switch own := c.wantedElsewhere(m); {
		case of != nil && c.isOwner(m, of):
			continue
		case own != nil:
			c.addElsewhere(m, own, of)
		}
		if of != nil {
			c.addForeign(m, of)
		}
	}
}

// reserved are reservations by what they are looked up by.
type reserved struct {
	at    map[place]*ipam.ReservationInfo
	owned map[ownedIn][]*ipam.ReservationInfo // those that are wanted
}

// ownedIn is what an owner has in a subnet.
type ownedIn struct {
	owner string
	segment
}

func newReserved(all []ipam.ReservationInfo) *reserved {
	r := &reserved{at: map[place]*ipam.ReservationInfo{}, owned: map[ownedIn][]*ipam.ReservationInfo{}}
	for i := range all {
		one := &all[i]
		if !one.Address.IsValid() {
			continue
		}
		r.at[place{one.Space, one.Address}] = one
		if !one.Replaced {
			key := ownedIn{one.Owner, segment{one.Space, one.Subnet}}
			r.owned[key] = append(r.owned[key], one)
		}
	}
	return r
}

// owners are whom a container can be on the network of a lease that it has, the likeliest first: what its name means
// there, what Compose's labels make it, its MAC.
func (c *comparison) owners(m match) iter.Seq[string] {
	return func(yield func(string) bool) {
		for owner := range c.rulesOf(m.lease).Owners(m.sight.container.Name) {
			if !yield(owner) {
				return
			}
		}
		if yield(m.sight.container.Owner()) && m.sight.endpoint.MAC != (ipam.MAC{}) {
			yield(m.sight.endpoint.MAC.String())
		}
	}
}

// isOwner tells whether a container can be the one that an address is reserved for, or stands in for that one.
func (c *comparison) isOwner(m match, r *ipam.ReservationInfo) bool {
	for owner := range c.owners(m) {
		if owner == r.Owner {
			return true
		}
	}
	for _, s := range c.rec.standIns {
		if s.ID == m.sight.container.ID && c.rulesOf(m.lease).Means(s.For, r.Owner) {
			return true
		}
	}
	return false
}

// rulesOf is what names mean on the network of a lease.
func (c *comparison) rulesOf(l *ipam.LeaseInfo) *ipam.Network {
	if n := c.rec.rules[planned{l.Space, l.Network}]; n != nil {
		return n
	}
	return &ipam.Network{}
}

// wantedElsewhere is what is reserved for a container in the subnet of a lease that it has; nil where there is nothing.
func (c *comparison) wantedElsewhere(m match) *ipam.ReservationInfo {
	for owner := range c.owners(m) {
		if own := c.reserved.owned[ownedIn{owner, segment{m.lease.Space, m.lease.Subnet}}]; len(own) > 0 {
			return own[0]
		}
	}
	return nil
}

// whoHas names the container that has an address; empty where no container has it.
func (c *comparison) whoHas(space string, addr netip.Addr) string {
	for _, s := range c.seen.at[place{space, addr}] {
		return s.container.Name
	}
	return ""
}

func (c *comparison) addForeign(m match, r *ipam.ReservationInfo) {
	who := m.sight.container.Name
	text := fmt.Sprintf("%s runs with %s, which is reserved for %s", m.sight.who(), r.Address, r.Owner)
	if m.lease.Since.Before(r.Since) {
		text += ", since before that was reserved"
	}
	brief := "reserved for " + r.Owner
	if was := m.lease.Name; was != who && c.rulesOf(m.lease).Means(was, r.Owner) {
		text += fmt.Sprintf("; it was called %s when it was given that, and a reservation stays with the name", was)
		brief += ", as it was called"
	}
	text += fmt.Sprintf(": remove %s, or start it with another address, and then start %s again; or make the "+
		"address %s's, "+
		"beginning with `berth reservation rm %s --owner %s --ip %s`", who, r.Owner, who, r.Network, r.Owner, r.Address)
	c.addStray(m, finding{stray: brief,
		Finding: ipam.Finding{Kind: ipam.ForeignHolder, Address: r.Address,
			Owner: r.Owner, Detail: text}})
}

// addElsewhere tells of an owner without its address. What it has instead may be reserved, too.
func (c *comparison) addElsewhere(m match, own, instead *ipam.ReservationInfo) {
	who := m.sight.container.Name
	text := fmt.Sprintf("%s runs with %s and not with %s, which is reserved for %s", m.sight.who(), m.lease.Address,
		own.Address, own.Owner)
	brief := fmt.Sprintf("%s is reserved for %s", own.Address, own.Owner)
	if other := c.whoHas(own.Space, own.Address); other != "" {
		text += fmt.Sprintf(" and which %s has: remove %s, or start it with another address, and then", other, other)
		brief += ", and " + other + " has it"
	} else {
		text += " and which no container has:"
	}
	text += fmt.Sprintf(" start %s again with it (`docker run --ip`, or ipv4_address in an override file as `berth "+
		"compose` writes it), "+
		"or stop it, `berth pin %s`, and start it", who, who)
	if instead == nil {
		text += fmt.Sprintf("; to keep %s, end the reservation with `berth reservation rm %s --owner %s --ip %s`",
			m.lease.Address, own.Network, own.Owner, own.Address)
	}
	c.addStray(m, finding{stray: brief, astray: c.astray(m, own), Finding: ipam.Finding{Kind: ipam.OwnerElsewhere,
		Address: m.lease.Address, Owner: own.Owner, Detail: text}})
}

// Astray is a container that runs on another address than is reserved for it, because nobody could tell who it was when
// it started.
type Astray struct {
	Container, ID, Project string
	Network                string // Docker's, by its name
	Space                  string
	Planned                ipam.ID // Berth's network
	Subnet                 netip.Prefix
	Has, Home              netip.Addr
	Reserved               bool      // Home is
	Taken                  string    // the container that has Home, by its name; empty: none
	Started                time.Time // when it was last heard to; zero: that is not known
}

// astray is a container that can be put back to its own address: nobody has that, it was reserved before the container
// was given another one, and that other one is not of its user's choice.
func (c *comparison) astray(m match, own *ipam.ReservationInfo) *Astray {
	l := m.lease
	if c.whoHas(own.Space, own.Address) != "" || !l.Since.After(own.Since) || l.Kind != ipam.Automatic || l.DHCP != nil ||
		m.sight.network.Swarm || len(m.sight.endpoint.Wanted) > 0 {
		return nil
	}
	by := m.sight.container
	return &Astray{Container: by.Name, ID: by.ID, Project: by.Project, Network: m.sight.network.Name, Space: l.Space,
		Planned: l.NetworkID, Subnet: l.Subnet, Has: l.Address, Home: own.Address, Reserved: true}
}

// tellAstray tells whoever puts containers back which are to be. Where the engine sends names nothing was unknown, and
// what a container has is what it was to have.
func (w *Witness) tellAstray(c *comparison) {
	state := w.State()
	if named, _ := state.SendsNames(); named || w.cfg.Astray == nil {
		return
	}
	var all []Astray
	for i := range c.found {
		if a := c.found[i].astray; a != nil {
			var settled bool
			if a.Started, settled = w.cfg.Roster.startedAt(a.ID); settled {
				all = append(all, *a)
			}
		}
	}
	all = append(all, w.homes.judge(c, w.cfg.Roster.startedAt)...)
	if len(all) > 0 {
		w.cfg.Astray(all)
	}
}

// addStray fills in what both kinds have in common.
func (c *comparison) addStray(m match, f finding) {
	f.thing, f.name = m.sight.container.ID, m.sight.container.Name
	f.Space, f.Network, f.Subnet = m.lease.Space, m.lease.Network, m.lease.Subnet
	f.Lease, f.Pool, f.MAC = m.lease.ID, m.lease.Pool, m.sight.endpoint.MAC
	c.add(f)
}

// tellStrays writes an event of each container that is found with the wrong address and was not told of yet.
func (w *Witness) tellStrays(ctx context.Context, found []finding) {
	now := map[key]bool{}
	var news []ipam.Stray
	for i := range found {
		f := &found[i]
		if f.stray == "" {
			continue
		}
		now[f.key()] = true
		if !w.strays[f.key()] {
			news = append(news, ipam.Stray{LeaseRef: ipam.LeaseRef{Space: f.Space, Address: f.Address, ID: f.Lease},
				Kind: f.Kind, Name: f.name, Detail: f.stray})
		}
	}
	if len(news) > 0 {
		if err := w.cfg.Service.TellStrays(ctx, news); err != nil {
			if ctx.Err() == nil {
				w.log.WithError(err).Warn("containers with an address that is not theirs were not written down")
			}
			return
		}
	}
	w.strays = now
}
