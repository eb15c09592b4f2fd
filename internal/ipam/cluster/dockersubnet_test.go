package cluster_test

import (
	"net/netip"
	"testing"

	"berth/internal/ipam"
)

// A request for a subnet that may be one of Berth's own networks succeeds if this host holds that subnet in
// either store. A subnet that only another host holds does not count, and a subnet that is surely Docker's is
// always refused.
func TestDockerSubnetOfOwn(t *testing.T) {
	p := newJoinedHosts(t)
	p.plays("network lan space=global subnet=10.77.0.0/24,pool")
	cidr := netip.MustParsePrefix("10.77.0.0/24")
	ask := func(host, space string, d ipam.DockerSubnet) error {
		t.Helper()
		d.CIDR = cidr
		h := p.host(host)
		grant, err := h.RequestPool(t.Context(),
			ipam.PoolRequest{Space: space, CIDR: cidr, Docker: []ipam.DockerSubnet{d}})
		if err == nil {
			fine(t, h.ReleasePool(t.Context(), grant.ID))
		}
		return err
	}
	seen := ipam.DockerSubnet{Link: "br-0123456789ab", Unsure: true}
	sure := ipam.DockerSubnet{Network: "bridge", Link: "docker0"}
	for _, held := range []bool{false, true} {
		for _, space := range []string{"local", "global"} {
			refusedBy(t, "what is Docker's, in "+space, ask("a", space, sure), ipam.ErrOverlap)
			refusedBy(t, "of another host, in "+space, ask("b", space, seen), ipam.ErrOverlap)
			if err := ask("a", space, seen); held {
				fine(t, err)
			} else {
				refusedBy(t, "before a has it, in "+space, err, ipam.ErrOverlap)
			}
		}
		if !held {
			p.plays("attach lan net=lan space=-")
		}
	}
}
