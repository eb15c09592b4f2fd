package leave

import (
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/docker/pin"
	"berth/internal/ipam"
)

// Keepers returns who keeps the plans of the networks in Berth after they have left, by the plan's id: devices, and
// other Docker networks on it.
func Keepers(notes []*Note, rec *pin.Records) map[string][]string {
	keepers := map[string][]string{}
	for i := range rec.Subnets {
		sub := &rec.Subnets[i]
		id := sub.NetworkID.String()
		if !slices.ContainsFunc(notes, func(n *Note) bool { return slices.Contains(n.Planned, id) }) {
			continue
		}
		for j := range rec.Leases {
			l := &rec.Leases[j]
			if l.Space == sub.Space && l.Subnet == sub.CIDR && l.State == "held" && l.Kind == ipam.External {
				keepers[id] = append(keepers[id], fmt.Sprintf("%s is taken for %s", l.Address, l.Name))
			}
		}
		left := 0
		for _, n := range notes {
			if slices.Contains(n.Planned, id) && n.has(sub.CIDR) {
				left++
			}
		}
		switch more := len(sub.Attachments) - left; {
		case more == 1:
			keepers[id] = append(keepers[id], fmt.Sprintf("another Docker network is on %s", sub.CIDR))
		case more > 1:
			keepers[id] = append(keepers[id], fmt.Sprintf("%d other Docker networks are on %s", more, sub.CIDR))
		}
	}
	return keepers
}

func (n *Note) has(cidr netip.Prefix) bool {
	for i := range n.New.IPAM.Config {
		if n.New.IPAM.Config[i].Subnet.Masked() == cidr {
			return true
		}
	}
	return false
}

// EndPlan adds to the first note on a plan what ends with the plan and is on no Docker network: subnets, with what they
// keep, and reservations without an address.
func EndPlan(notes []*Note, id, host string, rec *pin.Records) {
	var on []*Note
	for _, n := range notes {
		if slices.Contains(n.Planned, id) {
			on = append(on, n)
		}
	}
	if len(on) == 0 {
		return
	}
	for i := range rec.Subnets {
		sub := &rec.Subnets[i]
		if sub.NetworkID.String() != id ||
			slices.ContainsFunc(on, func(n *Note) bool { return n.has(sub.CIDR) }) {
			continue
		}
		on[0].loses("the subnet %s ends with the plan, because it is not a subnet of the Docker network", sub.CIDR)
		for k := range keptBy(rec, sub, host) {
			on[0].loses("Berth forgets %s, together with the subnet %s", k.what, sub.CIDR)
		}
	}
	for i := range rec.Reservations {
		if r := &rec.Reservations[i]; r.NetworkID.String() == id && !r.Address.IsValid() {
			on[0].loses("the reservation of %s ends with the plan, because it has no address", r.Owner)
		}
	}
}
