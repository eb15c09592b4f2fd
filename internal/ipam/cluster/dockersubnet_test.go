package cluster_test

import (
	"net/netip"
	"testing"

	"berth/internal/ipam"
)

// What may be a network of Berth's own is refused to nobody where this host is on that subnet, whichever store it is
// in; what another host holds is nothing here, and what is surely Docker's is refused in any case.
func TestDockerSubnetOfOwn(t *testing.T) {
	p := newParish(t)
	a, b := p.host("a"), p.host("b")
	a.must(planned("lan", ipam.GlobalSpace, "10.77.0.0/24"))
	cidr := netip.MustParsePrefix("10.77.0.0/24")
	ask := func(h *manor, space string, d ipam.DockerSubnet) error {
		t.Helper()
		d.CIDR = cidr
		grant, err := h.RequestPool(t.Context(),
			ipam.PoolRequest{Space: space, CIDR: cidr, Docker: []ipam.DockerSubnet{d}})
		if err == nil {
			fine(t, h.ReleasePool(t.Context(), grant.ID))
		}
		return err
	}
	seen := ipam.DockerSubnet{Link: "br-0123456789ab", Unsure: true}
	sure := ipam.DockerSubnet{Network: "bridge", Link: "docker0"}
	refusedBy(t, "before a has it, in its own store", ask(a, "local", seen), ipam.ErrOverlap)
	refusedBy(t, "before a has it, in the cluster's", ask(a, "global", seen), ipam.ErrOverlap)
	_, err := a.RequestPool(t.Context(), ipam.PoolRequest{Network: "lan", CIDR: cidr})
	fine(t, err)
	for _, space := range []string{"local", "global"} {
		fine(t, ask(a, space, seen))
		refusedBy(t, "what is Docker's, in "+space, ask(a, space, sure), ipam.ErrOverlap)
		refusedBy(t, "of another host, in "+space, ask(b, space, seen), ipam.ErrOverlap)
	}
}
