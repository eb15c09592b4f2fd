package docker

import (
	"slices"

	"berth/internal/ipam"
)

// What is of other hosts, where several share a store, no engine here can tell anything about: it is neither judged nor
// put right, and what runs here is not taken for the one who has it.

// elsewhere tells whether a lease is another host's. A swarm's manager leases for all nodes, on whichever host it is;
// the space local is this host's own, whatever it was called before.
func (c *comparison) elsewhere(l *ipam.LeaseInfo) bool {
	if !c.rec.cluster || l.Space == ipam.LocalSpace || l.Host == c.view.Host {
		return false
	}
	at, known := c.rec.attachments[l.Pool]
	return known && !at.Swarm
}

// visible is the view without the Docker networks of which nothing is known because the cluster's records were never
// read: those of which this host's own have no subnet.
func (rec *records) visible(view *ipam.EngineView) *ipam.EngineView {
	if rec.partial == nil {
		return view
	}
	seen := *view
	seen.Networks = slices.DeleteFunc(slices.Clone(view.Networks), func(n ipam.EngineNetwork) bool {
		return !slices.ContainsFunc(n.Subnets,
			func(sub ipam.EngineSubnet) bool { return len(rec.spacesWith(sub.CIDR)) > 0 })
	})
	return &seen
}
