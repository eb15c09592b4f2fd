package docker

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
)

// This file finds containers whose address contradicts the reservations. A request of an engine without names does not
// show who asks, but a view shows who has the address.

// judgeStrays finds containers on addresses that are reserved for others, and owners that do not have their own. It
// skips leases that are not certainly the endpoint's.
func (c *comparison) judgeStrays() {
	if len(c.rec.reservations) == 0 {
		return
	}
	own := map[endpointKey][]netip.Addr{} // reserved addresses that their owners have
	for _, m := range c.matches {
		if m.sight.container.ID == "" || m.lease.Kind == ipam.Headroom || !m.certain(c.view.Taken) {
			continue
		}
		of := c.reserved.at[place{m.lease.Space, m.lease.Address}]
		switch wanted := c.wantedElsewhere(m); {
		case of != nil && c.owns(m, of):
			key := endpointKey{m.sight.container.ID, m.sight.network.Name}
			own[key] = append(own[key], of.Address)
			continue
		case of != nil && c.standsInFor(m, of):
			continue
		case wanted != nil:
			c.addElsewhere(m, wanted, of)
		}
		if of != nil {
			c.addForeign(m, of)
		}
	}
	for i := range c.found {
		if a := c.found[i].astray; a != nil {
			a.Own = own[endpointKey{a.ID, a.Network}]
		}
	}
}

// reserved indexes the reservations.
type reserved struct {
	at    map[place]*ipam.ReservationInfo
	owned map[ownedIn][]*ipam.ReservationInfo // without the replaced ones
}

// ownedIn is an owner in a subnet.
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

// owners yields the owners that a container may be on the network of its lease, the likeliest first. They come from the
// rules for its name, from Compose's labels, and from its MAC.
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

// owns reports whether a container may be the owner of a reservation.
func (c *comparison) owns(m match, r *ipam.ReservationInfo) bool {
	for owner := range c.owners(m) {
		if owner == r.Owner {
			return true
		}
	}
	return false
}

// standsInFor reports whether a container stands in for the owner of a reservation.
func (c *comparison) standsInFor(m match, r *ipam.ReservationInfo) bool {
	for _, s := range c.rec.standIns {
		if s.ID == m.sight.container.ID && c.rulesOf(m.lease).Means(s.For, r.Owner) {
			return true
		}
	}
	return false
}

// rulesOf returns the network with the owner rules for a lease.
func (c *comparison) rulesOf(l *ipam.LeaseInfo) *ipam.Network {
	if n := c.rec.rules[planned{l.Space, l.Network}]; n != nil {
		return n
	}
	return &ipam.Network{}
}

// wantedElsewhere returns a reservation for the lease's container in the same subnet, or nil.
func (c *comparison) wantedElsewhere(m match) *ipam.ReservationInfo {
	for owner := range c.owners(m) {
		if own := c.reserved.owned[ownedIn{owner, segment{m.lease.Space, m.lease.Subnet}}]; len(own) > 0 {
			return own[0]
		}
	}
	return nil
}

// whoHas returns the name of the container that has an address, or empty.
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
		text += "; it got the address before the reservation was made"
	}
	brief := "reserved for " + r.Owner
	if was := m.lease.Name; was != who && c.rulesOf(m.lease).Means(was, r.Owner) {
		text += fmt.Sprintf("; its name was %s when it got the address, and a reservation stays with the name", was)
		brief += ", its former name"
	}
	text += fmt.Sprintf(": remove %s, or start it with another address, and then start %s again; or give %s the "+
		"address, starting with `berth reservation rm %s --owner %s --ip "+
		"%s`", who, r.Owner, who, r.Network, r.Owner, r.Address)
	f := c.ofStray(ipam.ForeignHolder, m, r)
	f.stray = brief
	c.add(f, "%s", text)
}

// addElsewhere reports an owner on another address than its own. instead is the reservation of that other address, or
// nil.
func (c *comparison) addElsewhere(m match, own, instead *ipam.ReservationInfo) {
	who := m.sight.container.Name
	text := fmt.Sprintf("%s runs with %s, not with %s, which is reserved for %s", m.sight.who(), m.lease.Address,
		own.Address, own.Owner)
	brief := fmt.Sprintf("%s is reserved for %s", own.Address, own.Owner)
	if other := c.whoHas(own.Space, own.Address); other != "" {
		text += fmt.Sprintf(" and which %s has: remove %s, or start it with another address, and then", other, other)
		brief += ", and " + other + " has it"
	} else {
		text += " and which no container has:"
	}
	text += fmt.Sprintf(" start %s again with the reserved address (`docker run --ip`, or ipv4_address in an "+
		"override file as `berth "+
		"compose` writes it), "+
		"or stop it, run `berth pin %s`, and start it", who, who)
	if instead == nil {
		text += fmt.Sprintf("; to keep %s, end the reservation with `berth reservation rm %s --owner %s --ip %s`",
			m.lease.Address, own.Network, own.Owner, own.Address)
	}
	f := c.ofStray(ipam.OwnerElsewhere, m, own)
	f.stray, f.astray = brief, c.astray(m, own)
	c.add(f, "%s", text)
}

// Astray is a container on another address than its own (reserved or last used), because its request could not be
// identified when it started.
type Astray struct {
	Container, ID, Project string
	Network                string // the name of Docker's network
	Space                  string
	Planned                ipam.ID // the id of Berth's network
	Subnet                 netip.Prefix
	Has, Home              netip.Addr
	Reserved               bool         // Home is reserved for it
	Own                    []netip.Addr // what else it has on the network, and is reserved for it
	Taken                  string       // the container that has Home, by name; empty: none
	Started                time.Time    // when it was last heard to start; zero: unknown
}

// astray returns the container if it can be put back, or nil. Its own address must be unused, and must have been
// reserved before the container got the other one. A user's choice of the other one is respected. A user may choose an
// IPv6 address and leave the IPv4 address to Berth.
func (c *comparison) astray(m match, own *ipam.ReservationInfo) *Astray {
	l := m.lease
	if c.whoHas(own.Space,
		own.Address) != "" || !l.Since.After(own.Since) || l.Kind != ipam.Automatic || l.DHCP != nil ||
		m.sight.network.Swarm || slices.ContainsFunc(m.sight.endpoint.Wanted, m.lease.Subnet.Contains) {
		return nil
	}
	by := m.sight.container
	return &Astray{Container: by.Name, ID: by.ID, Project: by.Project, Network: m.sight.network.Name, Space: l.Space,
		Planned: l.NetworkID, Subnet: l.Subnet, Has: l.Address, Home: own.Address, Reserved: true}
}

// tellAstray reports the containers to put back. If the engine sends names, it does nothing, because every request was
// identified.
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

// ofStray is a finding about a container that contradicts a reservation.
func (c *comparison) ofStray(kind ipam.FindingKind, m match, r *ipam.ReservationInfo) finding {
	f := ofLease(kind, m.lease)
	f.thing, f.name = m.sight.container.ID, m.sight.container.Name
	f.Owner, f.MAC = r.Owner, m.sight.endpoint.MAC
	return f
}

// tellStrays writes an event for each container that is newly found on a wrong address.
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
				w.log.WithError(err).Warn("cannot record the events about containers that run with a wrong address")
			}
			return
		}
	}
	w.strays = now
}
