package docker

import (
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"

	"go4.org/netipx"
)

// judgeSegments compares, for each subnet of this host, the number of attachments with the number of Docker networks.
func (c *comparison) judgeSegments() {
	for seg, all := range c.rec.here {
		var own, manager []ipam.AttachmentInfo
		young := false
		for _, at := range all {
			switch {
			case at.Created.After(c.view.Taken): // its Docker network is being created
			case at.Swarm:
				manager = append(manager, at)
			default:
				own = append(own, at)
				young = young || c.beingMade(&at)
			}
		}
		networks := c.seen.networks[seg]
		if len(networks) == 0 {
			for _, at := range manager {
				c.addLeftManager(&at)
			}
		}
		own = c.judgeSuperseded(seg, own, networks)
		networks = slices.DeleteFunc(slices.Clone(networks), func(n *ipam.EngineNetwork) bool {
			return !slices.ContainsFunc(own, func(at ipam.AttachmentInfo) bool { return !younger(n, at.Created) })
		})
		switch surplus := len(own) - len(networks); {
		case surplus > 0 && young: // its Docker network may not be listed yet
		case surplus > 0:
			c.judgeSurplus(seg, own, networks, surplus)
		case surplus < 0 && len(own) > 0:
			c.judgeLack(seg, own, networks)
		}
	}
}

// judgeSuperseded finds the attachments of Docker networks that were removed unseen: all Docker networks on the subnet are
// younger, and no endpoint has one of their addresses. It returns the other attachments.
func (c *comparison) judgeSuperseded(seg segment, own []ipam.AttachmentInfo,
	networks []*ipam.EngineNetwork) (others []ipam.AttachmentInfo) {
	for _, at := range own {
		older := func(n *ipam.EngineNetwork) bool { return !younger(n, at.Created) }
		if len(networks) == 0 || c.busy[at.ID] || slices.ContainsFunc(networks, older) || c.beingMade(&at) {
			others = append(others, at)
			continue
		}
		f := ofSubnet(ipam.UnusedAttachment, seg, at.Network)
		f.sure, f.superseded, f.pools, f.Pool = true, true, []ipam.ID{at.ID}, at.ID
		c.add(f, "pool %s of the subnet %s was made at %s, before every Docker network that has the subnet now (%s), "+
			"so the Docker network of this pool is gone; Berth ends the pool and its "+
			"leases", at.ID.Short(), seg.cidr, at.Created.Format(timeForm),
			names(networks))
	}
	return others
}

// beingMade reports whether an attachment's Docker network may still be being created. The engine lists a network only
// at the end.
func (c *comparison) beingMade(at *ipam.AttachmentInfo) bool {
	return at.Created.After(c.view.Taken.Add(-c.rec.creation))
}

// judgeSurplus finds attachments without a Docker network. That is certain only if two conditions hold. The attachments
// without an endpoint are exactly as many as the surplus, and the others match the existing networks.
func (c *comparison) judgeSurplus(seg segment, own []ipam.AttachmentInfo, networks []*ipam.EngineNetwork, surplus int) {
	var idle, rest []ipam.AttachmentInfo
	for _, at := range own {
		if c.busy[at.ID] {
			rest = append(rest, at)
		} else {
			idle = append(idle, at)
		}
	}
	switch {
	case len(idle) != surplus || !agree(seg, rest, networks):
		c.add(ofSubnet(ipam.UnusedAttachment, seg, own[0].Network), "%d Docker networks were created on the subnet "+
			"%s on this host, but the engine has only %d of them (%s). Berth cannot tell whose pool is left over "+
			"until each of those networks has a container", len(own), seg.cidr, len(networks), names(networks))
	case len(networks) == 0 && !own[0].Planned && len(c.rec.all[seg]) == len(own):
		c.addUnusedSubnet(seg, idle)
	default:
		for _, at := range idle {
			f := ofSubnet(ipam.UnusedAttachment, seg, at.Network)
			f.sure, f.slow, f.pools, f.Pool = true, true, []ipam.ID{at.ID}, at.ID
			c.add(f, "pool %s of the subnet %s was made for a Docker network at %s, but the engine has no Docker "+
				"network that matches the pool", at.ID.Short(), seg.cidr, at.Created.Format(timeForm))
		}
	}
}

func (c *comparison) addUnusedSubnet(seg segment, all []ipam.AttachmentInfo) {
	f := ofSubnet(ipam.UnusedSubnet, seg, all[0].Network)
	f.sure, f.slow, f.Pool = true, true, all[0].ID
	for _, at := range all {
		f.pools = append(f.pools, at.ID)
	}
	c.add(f, "the subnet %s was made for a Docker network at %s, but the engine has no Docker network on it", seg.cidr,
		all[0].Created.Format(timeForm))
}

// addLeftManager reports an attachment of a swarm's manager whose network this engine does not list. It is never
// certain, because another manager may have taken over.
func (c *comparison) addLeftManager(at *ipam.AttachmentInfo) {
	f := ofSubnet(ipam.UnusedAttachment, segment{at.Space, at.CIDR}, at.Network)
	f.Pool = at.ID
	c.add(f, "pool %s of the subnet %s was made for a swarm's network at %s, which this engine does not list; "+
		"another manager can show whether the swarm still has it", at.ID.Short(), at.CIDR, at.Created.Format(timeForm))
}

// judgeLack reports Docker networks in excess of the attachments of their subnet.
func (c *comparison) judgeLack(seg segment, own []ipam.AttachmentInfo, networks []*ipam.EngineNetwork) {
	var local []*ipam.EngineNetwork
	for _, n := range networks {
		if !n.Swarm { // a node has no attachment before its first container
			local = append(local, n)
		}
	}
	if len(local) <= len(own) {
		return
	}
	var ids []string
	for _, n := range local {
		ids = append(ids, n.ID)
	}
	f := ofSubnet(ipam.UnknownPool, seg, own[0].Network)
	f.thing = strings.Join(ids, " ")
	c.add(f, "the Docker networks %s have the subnet %s, but Berth knows only %d pools of it: remove and create the "+
		"network in which no container starts", names(local), seg.cidr, len(own))
}

// agree reports whether the attachments may be those of the networks, judging by their ranges. An attachment to a named
// pool, or of a swarm, matches any network.
func agree(seg segment, attachments []ipam.AttachmentInfo, networks []*ipam.EngineNetwork) bool {
	count := map[ipam.Range]int{}
	anyAttachment, anyNetwork := 0, 0
	for _, at := range attachments {
		if at.Named != "" {
			anyAttachment++
		} else {
			count[at.Range]++
		}
	}
	for _, n := range networks {
		if n.Swarm || n.Options["pool"] != "" {
			anyNetwork++
		} else {
			count[rangeOf(n, seg.cidr)]--
		}
	}
	for _, n := range count {
		if n > 0 {
			anyNetwork -= n
		} else {
			anyAttachment += n
		}
	}
	return anyAttachment >= 0 && anyNetwork >= 0
}

// rangeOf is the part of a subnet that a Docker network got by --ip-range. For the whole subnet it is zero.
func rangeOf(n *ipam.EngineNetwork, cidr netip.Prefix) ipam.Range {
	for _, sub := range n.Subnets {
		if sub.CIDR == cidr && sub.Range.IsValid() && sub.Range != cidr {
			return ipam.Range{IPRange: netipx.RangeOfPrefix(sub.Range)}
		}
	}
	return ipam.Range{}
}

func names(networks []*ipam.EngineNetwork) string {
	if len(networks) == 0 {
		return "none"
	}
	var all []string
	for _, n := range networks {
		all = append(all, n.Name)
	}
	return strings.Join(all, ", ")
}

// judgeNetworks looks for an attachment for each subnet of each Docker network.
func (c *comparison) judgeNetworks() {
	for i := range c.view.Networks {
		n := &c.view.Networks[i]
		for j := range n.Subnets {
			sub := &n.Subnets[j]
			spaces := c.rec.spacesOf(n, sub.CIDR)
			switch attached := c.attachedTo(n, spaces, sub.CIDR); {
			case len(attached) > 0:
				c.judgeGateway(n, sub, spaces, attached)
			case !n.Swarm || c.seen.used[n.ID]:
				f := ofSubnet(ipam.UnknownPool, segment{spaces[0], sub.CIDR}, n.Name)
				f.thing = n.ID
				c.add(f, "Berth does not know the pool of the Docker network %s on the subnet %s, so no container "+
					"can start there: stop its containers, then remove and create the network", n.Name, sub.CIDR)
			}
		}
	}
}

// attachedTo returns the attachments that may be a Docker network's. They are of this host or, for a swarm's network,
// of any host with its manager.
func (c *comparison) attachedTo(n *ipam.EngineNetwork, spaces []string, cidr netip.Prefix) (all []ipam.AttachmentInfo) {
	for _, space := range spaces {
		if n.Swarm && space != ipam.LocalSpace {
			all = append(all, c.rec.all[segment{space, cidr}]...)
		} else {
			all = append(all, c.rec.here[segment{space, cidr}]...)
		}
	}
	return slices.DeleteFunc(all, func(at ipam.AttachmentInfo) bool { return younger(n, at.Created) })
}

// judgeGateway finds a gateway that is neither the subnet's nor an attachment's own.
func (c *comparison) judgeGateway(n *ipam.EngineNetwork, sub *ipam.EngineSubnet, spaces []string,
	attached []ipam.AttachmentInfo) {
	if !sub.Gateway.IsValid() {
		return
	}
	for _, at := range attached {
		if at.Gateway == sub.Gateway {
			return
		}
	}
	for _, space := range spaces {
		if l := c.held[place{space, sub.Gateway}]; l != nil && l.Kind == ipam.Gateway &&
			(n.Swarm || l.Host == c.view.Host) {
			return
		}
	}
	instead := "no gateway"
	if gateway := attached[0].Gateway; gateway.IsValid() {
		instead = "the gateway " + gateway.String()
	}
	f := ofSubnet(ipam.WrongGateway, segment{attached[0].Space, sub.CIDR}, attached[0].Network)
	f.thing, f.Address = n.ID, sub.Gateway
	c.add(f, "the Docker network %s has the gateway %s, but its subnet %s has %s: remove and create the Docker "+
		"network, or change the gateway of the subnet once it has no Docker network", n.Name, sub.Gateway, sub.CIDR,
		instead)
}

// nftables is a backend of the engine's firewall. If one of its chains drops a packet, an accept in another table does
// not help.
const nftables = "nftables"

// judgeFirewall finds Docker networks of this host whose elastic addresses are blocked by the engine's firewall.
func (c *comparison) judgeFirewall() {
	if c.view.Firewall != nftables {
		return
	}
	for seg, attached := range c.rec.here {
		if len(attached) == 0 || !c.rec.elastic[planned{seg.space, attached[0].Network}] {
			continue
		}
		for _, n := range c.seen.networks[seg] {
			family, open := "ipv4", n.Open4
			if seg.cidr.Addr().Is6() {
				family, open = "ipv6", n.Open6
			}
			if n.Kind != bridgeDriver || open {
				continue
			}
			f := ofSubnet(ipam.FirewallInWay, seg, n.Name)
			f.thing = n.ID
			c.add(f, "the engine filters with nftables, and drops traffic to elastic addresses of the Docker "+
				"network %s (%s): recreate it with `--opt "+
				"com.docker.network.bridge.gateway_mode_%s=nat-unprotected`; traffic from its containers is still "+
				"mapped", n.Name, seg.cidr, family)
		}
	}
}
