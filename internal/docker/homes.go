package docker

import (
	"context"
	"net/netip"
	"time"

	"berth/internal/ipam"
)

// StartFor is for how long after its start a container may be on an address that is not its own, and may be cut off to
// be put back: nobody relies on its connections yet. What it has later is its own.
const StartFor = 30 * time.Second

// homes are the addresses that containers had last, by name and subnet: where several start at once nobody can tell
// which is whose, and each is given one of those that they had.
type homes map[home]netip.Addr

// home is a container in a subnet, by ipam.NameKey: while Compose recreates it, it has another name.
type home struct {
	name string
	segment
}

// learn takes in who had what before the first look: an engine that booted has mixed it up since.
func (h homes) learn(ctx context.Context, s Records, host string) error {
	since := map[home]time.Time{}
	for l, err := range s.Leases(ctx, ipam.LeaseFilter{}) {
		if err != nil {
			return err
		}
		key := home{ipam.NameKey(l.Name), segment{l.Space, l.Subnet}}
		// the release of an older one may have gone astray
		if l.Host == host && l.Name != "" && l.Kind == ipam.Automatic && l.DHCP == nil && l.Since.After(since[key]) {
			h[key], since[key] = l.Address, l.Since
		}
	}
	return nil
}

// judge finds containers that have started and run on another address than before, and takes in where all others are.
func (h homes) judge(c *comparison, startedAt func(id string) (time.Time, bool)) (all []Astray) {
	for _, m := range c.matches {
		l, by := m.lease, m.sight.container
		if by.ID == "" || l.Kind != ipam.Automatic || l.DHCP != nil || m.sight.network.Swarm ||
			len(m.sight.endpoint.Wanted) > 0 || !m.certain(c.view.Taken) {
			continue
		}
		key := home{ipam.NameKey(by.Name), segment{l.Space, l.Subnet}}
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
			continue // it is somebody's by a reservation, which goes before
		}
		all = append(all, Astray{Container: by.Name, ID: by.ID, Project: by.Project, Network: m.sight.network.Name,
			Space: l.Space, Planned: l.NetworkID, Subnet: l.Subnet, Has: l.Address, Home: had,
			Taken: c.whoHas(l.Space, had), Started: started})
	}
	return all
}
