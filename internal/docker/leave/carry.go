package leave

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"

	"berth/internal/docker/pin"
	"berth/internal/ipam"

	"github.com/moby/moby/api/types/network"
	"go4.org/netipx"
)

// maxAux is how many auxiliary addresses a network gets. They are in its description, which people read.
const maxAux = 64

// Carry gives the new network what the engine's own IPAM can keep of the plan. Pools become its --ip-range, one aligned
// block. Addresses that nobody may get by chance become its --aux-address: those of devices and other hosts,
// those reserved for nobody on the network, and exclusions. Lost gets a sentence for each thing that does not fit. Call
// it after Planned and Endpoints are known. host is the name of this host.
func (n *Note) Carry(rec *pin.Records, host string) {
	left := maxAux
	for i := range n.New.IPAM.Config {
		config := &n.New.IPAM.Config[i]
		for j := range rec.Subnets {
			sub := &rec.Subnets[j]
			if sub.CIDR == config.Subnet.Masked() && slices.Contains(n.Planned, sub.NetworkID.String()) {
				n.carryPools(config, sub)
				left = n.carryKept(config, sub, keptBy(rec, sub, host), left)
			}
		}
	}
}

// carryPools sets the --ip-range, unless the Docker network has one: the largest aligned block of the pools.
func (n *Note) carryPools(config *network.IPAMConfig, sub *ipam.SubnetInfo) {
	if config.IPRange.IsValid() {
		return
	}
	var pools []netipx.IPRange
	of := n.Old.IPAM.Options["pool"] // the Docker network uses only this one
	for _, p := range sub.Pools {
		if of == "" || p.Name == of {
			pools = append(pools, p.Range.IPRange)
		}
	}
	blocks := setOf(pools...).Prefixes()
	if len(blocks) == 0 {
		n.loses("%s has no pool, so Berth chose no address of it; Docker will", sub.CIDR)
		return
	}
	largest := slices.MinFunc(blocks, func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
	if largest != sub.CIDR {
		config.IPRange = largest
	}
	if len(blocks) > 1 {
		n.loses("the pools of %s are not one aligned block, and Docker takes no other; new containers get addresses of %s",
			sub.CIDR, largest)
	}
}

// kept is a range that the plan keeps from being chosen.
type kept struct {
	what, name string // for a person; of the --aux-address
	ips        netipx.IPRange
}

// carryKept adds the --aux-address, and returns how many more fit. The engine gives such an address to nobody, so those
// of the network's containers and its gateway are left out, and those that it does not choose.
func (n *Note) carryKept(config *network.IPAMConfig, sub *ipam.SubnetInfo, all iter.Seq[kept], left int) int {
	chosen := config.Subnet.Masked()
	if config.IPRange.IsValid() {
		chosen = config.IPRange.Masked()
	}
	skip := slices.Concat([]netip.Addr{config.Gateway}, slices.Collect(maps.Values(config.AuxAddress)))
	for i := range n.Endpoints {
		skip = append(skip, n.Endpoints[i].Addresses...)
	}
	if ends := netipx.RangeOfPrefix(sub.CIDR); ends.From().Is4() && sub.CIDR.Bits() < 31 {
		skip = append(skip, ends.From(), ends.To())
	}
	for k := range all {
		addrs := inBoth(chosen, k.ips, skip, left+1)
		if len(addrs) > left {
			n.loses("%s: Docker keeps no more than %d addresses for Berth", k.what, maxAux)
			continue
		}
		for _, addr := range addrs {
			name := k.name
			if _, used := config.AuxAddress[name]; name == "" || used {
				name = fmt.Sprint(cmp.Or(k.name, "kept"), "-", addr)
			}
			if config.AuxAddress == nil {
				config.AuxAddress = map[string]netip.Addr{}
			}
			config.AuxAddress[name] = addr
		}
		skip, left = append(skip, addrs...), left-len(addrs)
	}
	return left
}

// keptBy yields what a plan keeps in a subnet, single addresses first.
func keptBy(rec *pin.Records, sub *ipam.SubnetInfo, host string) iter.Seq[kept] {
	single := func(a netip.Addr) netipx.IPRange { return netipx.IPRangeFrom(a, a) }
	return func(yield func(kept) bool) {
		for i := range rec.Leases {
			l := &rec.Leases[i]
			if l.Space != sub.Space || l.Subnet != sub.CIDR || l.State != "held" {
				continue
			}
			who := ""
			switch {
			case l.Kind == ipam.External:
				who = "taken for " + l.Name
			case l.Host != host:
				who = "held on host " + l.Host
			}
			if who != "" && !yield(kept{fmt.Sprintf("%s, %s", l.Address, who), cmp.Or(l.Name, l.Host), single(l.Address)}) {
				return
			}
		}
		for i := range rec.Reservations {
			r := &rec.Reservations[i]
			if r.Space == sub.Space && r.Subnet == sub.CIDR && r.Address.IsValid() &&
				!yield(kept{fmt.Sprintf("%s, reserved for %s", r.Address, r.Owner), r.Owner, single(r.Address)}) {
				return
			}
		}
		for _, x := range sub.Exclusions {
			if !yield(kept{"the exclusion " + x.String(), "", x.Range.IPRange}) {
				return
			}
		}
		for _, r := range sub.Static {
			if !yield(kept{"the static band " + r.String(), "", r.IPRange}) {
				return
			}
		}
	}
}

// setOf returns the addresses of valid ranges.
func setOf(ranges ...netipx.IPRange) *netipx.IPSet {
	var b netipx.IPSetBuilder
	for _, r := range ranges {
		b.AddRange(r)
	}
	set, err := b.IPSet()
	if err != nil {
		return &netipx.IPSet{}
	}
	return set
}

// inBoth returns the first addresses that a prefix and a range have in common, without some.
func inBoth(prefix netip.Prefix, r netipx.IPRange, without []netip.Addr, most int) (all []netip.Addr) {
	var b netipx.IPSetBuilder
	b.AddPrefix(prefix)
	b.Intersect(setOf(r))
	for _, addr := range without {
		if addr.IsValid() {
			b.Remove(addr)
		}
	}
	set, err := b.IPSet()
	if err != nil {
		return nil
	}
	for _, r := range set.Ranges() {
		for a := r.From(); len(all) < most && a.IsValid() && a.Compare(r.To()) <= 0; a = a.Next() {
			all = append(all, a)
		}
	}
	return all
}

func (n *Note) loses(format string, args ...any) {
	n.Lost = append(n.Lost, fmt.Sprintf(format, args...))
}
