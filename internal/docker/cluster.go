package docker

import (
	"slices"

	"berth/internal/ipam"
)

// In a cluster this engine knows nothing about other hosts. Their leases are neither judged nor repaired, and a local
// container is not taken for their holder.

// elsewhere reports whether a lease belongs to another host. A swarm's manager leases for all nodes, so its leases may
// be here. The space local is always this host's, even if the host had another name.
func (c *comparison) elsewhere(l *ipam.LeaseInfo) bool {
	if !c.rec.cluster || l.Space == ipam.LocalSpace || l.Host == c.view.Host {
		return false
	}
	at, known := c.rec.attachments[l.Pool]
	return known && !at.Swarm
}

// visible returns the view without the Docker networks that may be the cluster's, if the cluster's records could not be
// read. Those are the networks whose subnets this host's own records do not have.
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
