package docker

import (
	"context"
	"net/netip"
	"strings"

	"berth/internal/ipam"
)

// This file finds containers with elastic addresses that do not work as they should: containers that publish ports, and
// containers that lack a system address.

// readElastic reads the elastic addresses of containers that publish ports, and the containers that lack a system
// address.
func (rec *records) readElastic(ctx context.Context, s Records, view *ipam.EngineView) (err error) {
	var guests []netip.Addr
	for i := range view.Containers {
		c := &view.Containers[i]
		for j := range c.Endpoints {
			if len(c.Published) > 0 {
				guests = append(guests, c.Endpoints[j].Addresses...)
			}
		}
	}
	if rec.gaps, err = s.SystemGaps(ctx); err != nil || len(guests) == 0 {
		return err
	}
	rec.mapped, err = s.ElasticGuests(ctx, guests)
	return err
}

// judgeElastic adds findings for them.
func (c *comparison) judgeElastic() {
	for i := range c.rec.mapped {
		g := &c.rec.mapped[i]
		for _, s := range c.seen.at[place{g.Space, g.Guest}] {
			if len(s.container.Published) > 0 {
				c.addPublished(s, g)
			}
		}
	}
	for i := range c.rec.gaps {
		c.addGap(&c.rec.gaps[i])
	}
}

func (c *comparison) addPublished(s *sight, g *ipam.ElasticGuest) {
	f := c.ofSight(ipam.PublishedElastic, s)
	f.Space, f.Network = g.Space, g.Network
	c.add(f, "%s publishes %s on its host, but the elastic address %s is mapped to it too; run it without published "+
		"ports, or end the mapping with `berth elastic disassociate %s`", s.who(),
		strings.Join(s.container.Published, ", "), g.Elastic, g.Elastic)
}

func (c *comparison) addGap(g *ipam.SystemGap) {
	f := ofSubnet(ipam.NoSystemAddress, segment{g.Space, g.Subnet}, g.Network)
	f.Address, f.Owner, f.Lease = g.Guest, g.Instance, g.Lease
	if len(g.Published) > 0 {
		f.Kind = ipam.PublishedElastic
		c.add(f, "%s has no system address on network %s (elastic auto), because it publishes %s on its host; run it "+
			"without published ports, or on another network", g.Instance, g.Network,
			strings.Join(g.Published, ", "))
		return
	}
	c.add(f, "%s has no system address on network %s (elastic auto), because no elastic range of host %s has a free "+
		"address; add a range with `berth elastic range add RANGE --host %s`", g.Instance, g.Network, c.view.Host,
		c.view.Host)
}
