package leave

import (
	"net/netip"
	"reflect"
	"testing"

	"berth/internal/docker/pin"
	"berth/internal/ipam"

	"github.com/moby/moby/api/types/network"
)

// TestEnds: devices and other Docker networks keep a plan. What is on no Docker network ends with it, and is named.
func TestEnds(t *testing.T) {
	id, cidr, other := ipam.ID{1}, netip.MustParsePrefix("10.9.0.0/24"), netip.MustParsePrefix("fd00:9::/64")
	sub := func(cidr netip.Prefix, docker int) (s ipam.SubnetInfo) {
		s.NetworkID, s.Space, s.CIDR, s.Attachments = id, "local", cidr, make([]ipam.ID, docker)
		return s
	}
	note := &Note{Network: "lan", Planned: []string{id.String()}}
	note.New.IPAM = &network.IPAM{Config: []network.IPAMConfig{{Subnet: cidr}}}
	lease := func(kind ipam.Kind, addr, name string) ipam.LeaseInfo {
		return ipam.LeaseInfo{Address: netip.MustParseAddr(addr), Subnet: cidr, Space: "local", Kind: kind, State: "held",
			Name: name}
	}
	rec := &pin.Records{Subnets: []ipam.SubnetInfo{sub(cidr, 1), sub(other, 0)},
		Leases: []ipam.LeaseInfo{lease(ipam.Gateway, "10.9.0.1", ""), lease(ipam.Automatic, "10.9.0.2", "web")},
		Reservations: []ipam.ReservationInfo{
			{Owner: "db", Address: netip.MustParseAddr("fd00:9::5"), Space: "local", Subnet: other, NetworkID: id},
			{Owner: "phone", Space: "local", NetworkID: id}}}
	if got := Keepers([]*Note{note}, rec); len(got) > 0 {
		t.Errorf("the plan is kept by %v", got)
	}
	EndPlan([]*Note{note}, id.String(), "a", rec)
	if want := []string{"the subnet fd00:9::/64 ends with the plan, because it is not a subnet of the Docker network",
		"Berth forgets fd00:9::5, reserved for db, together with the subnet fd00:9::/64",
		"the reservation of phone ends with the plan, because it has no address"}; !reflect.DeepEqual(note.Lost, want) {
		t.Errorf("lost is %q", note.Lost)
	}
	rec.Subnets[0], rec.Subnets[1] = sub(cidr, 2), sub(other, 2)
	rec.Leases = append(rec.Leases, lease(ipam.External, "10.9.0.20", "nas"))
	if got, want := Keepers([]*Note{note}, rec)[id.String()], []string{"10.9.0.20 is taken for nas",
		"another Docker network is on 10.9.0.0/24", "2 other Docker networks are on fd00:9::/64"}; !reflect.DeepEqual(got, want) {
		t.Errorf("the plan is kept by %q, not %q", got, want)
	}
}
