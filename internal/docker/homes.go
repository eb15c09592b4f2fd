package docker

import (
	"context"
	"net/netip"
	"time"

	"berth/internal/ipam"
)

// StartFor is how long after its start a container may be put back, which interrupts it. So far nothing relies on its
// connections. Later its current address counts as its own.
const StartFor = 30 * time.Second

// homes are the last addresses of containers, by name and subnet. If several start at once, each of them may get
// another's address.
type homes map[home]netip.Addr

// home is a container in a subnet. The name is an ipam.RememberedName, because Compose renames a container while it
// recreates it.
type home struct {
	name string
	segment
}

// learn reads the homes from the leases before the first look, because an engine's start may mix up the addresses.
func (h homes) learn(ctx context.Context, s Records, host string) error {
	since := map[home]time.Time{}
	for l, err := range s.Leases(ctx, ipam.LeaseFilter{}) {
		if err != nil {
			return err
		}
		key := home{ipam.RememberedName(l.Name), segment{l.Space, l.Subnet}}
		// the release of an older lease may be lost
		if l.Host == host && l.Name != "" && l.Kind == ipam.Automatic && l.DHCP == nil && l.Since.After(since[key]) {
			h[key], since[key] = l.Address, l.Since
		}
	}
	return nil
}

// judge returns the containers that have just started on another address than their last. It updates the homes of the
// others.
func (h homes) judge(c *comparison, startedAt func(id string) (time.Time, bool)) (all []Astray) {
	for _, m := range c.matches {
		l, by := m.lease, m.sight.container
		if by.ID == "" || l.Kind != ipam.Automatic || l.DHCP != nil || m.sight.network.Swarm ||
			len(m.sight.endpoint.Wanted) > 0 || !m.certain(c.view.Taken) {
			continue
		}
		key := home{ipam.RememberedName(by.Name), segment{l.Space, l.Subnet}}
		had, known := h[key]
		started, settled := startedAt(by.ID)
		switch {
		case !known, settled && c.now.Sub(started) > StartFor:
			h[key] = l.Address
			continue
		case !settled, had == l.Address:
			continue
		}
		if c.reserved.at[place{l.Space, had}] != nil || c.wantedElsewhere(m) != nil {
			continue // a reservation overrides the last address
		}
		all = append(all, Astray{Container: by.Name, ID: by.ID, Project: by.Project, Network: m.sight.network.Name,
			Space: l.Space, Planned: l.NetworkID, Subnet: l.Subnet, Has: l.Address, Home: had,
			Taken: c.whoHas(l.Space, had), Started: started})
	}
	return all
}
