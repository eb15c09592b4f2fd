package docker

import (
	"fmt"

	"berth/internal/ipam"
)

// nftables is the backend of an engine's firewall in whose rules nobody else has a say: what its chain drops, an accept
// in another table does not let in.
const nftables = "nftables"

// judgeFirewall finds Docker networks of this host into which the engine's firewall lets nothing that comes to an
// elastic address of theirs.
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
			c.add(finding{thing: n.ID,
				Finding: ipam.Finding{Kind: ipam.FirewallInWay, Space: seg.space, Network: n.Name, Subnet: seg.cidr,
					Detail: fmt.Sprintf("the engine filters with nftables, and drops what comes to elastic addresses of the "+
						"Docker network %s (%s): make it anew with `--opt "+
						"com.docker.network.bridge.gateway_mode_%s=nat-unprotected`; what its containers send is mapped "+
						"all the same", n.Name, seg.cidr, family)}})
		}
	}
}
