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
// block. Addresses that nobody else may get become its --aux-address: those of devices and other hosts, those reserved
// for nobody on the network, and exclusions. The engine takes such an address anywhere in the subnet. Those of the
// --ip-range come first, because the engine would choose them; the others it gives to a container that asks. Lost gets a
// sentence for each thing that does not fit. Call it after Planned and Endpoints are known. host is the name of this
// host.
func (n *Note) Carry(rec *pin.Records, host string) {
	var all []*carrying
	for i := range n.New.IPAM.Config {
		config := &n.New.IPAM.Config[i]
		for j := range rec.Subnets {
			sub := &rec.Subnets[j]
			if sub.CIDR == config.Subnet.Masked() && slices.Contains(n.Planned, sub.NetworkID.String()) {
				n.carryPools(config, sub)
				all = append(all, n.carrying(config, sub, slices.Collect(keptBy(rec, sub, host))))
			}
		}
	}
	left := maxAux
	for _, c := range all {
		left = c.keep(c.chosen, left)
	}
	for _, c := range all {
		left = c.keep(c.asked, left)
	}
	for _, c := range all {
		for _, k := range c.kept {
			switch why := fmt.Sprintf("%s: Docker keeps no more than %d addresses for Berth", k.what, maxAux); {
			case k.lost == c.chosen:
				n.loses("%s, so any container may get it", why)
			case k.lost != nil:
				n.loses("%s, so a container that asks for it gets it", why)
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
		n.loses("%s has no pool, so Berth chose no addresses from it, but Docker will", sub.CIDR)
		return
	}
	largest := slices.MinFunc(blocks, func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
	if largest != sub.CIDR {
		config.IPRange = largest
	}
	if len(blocks) > 1 {
		n.loses("the pools of %s are not one aligned block, which Docker requires; new containers get addresses of %s",
			sub.CIDR, largest)
	}
}

// kept is a range that the plan keeps from being chosen.
type kept struct {
	what, name string // for a person; of the --aux-address
	ips        netipx.IPRange
	band       bool          // it is for containers that ask
	lost       *netipx.IPSet // the part of the subnet in which it is not kept; nil: none
}

// carrying adds what a plan keeps in a subnet to a Docker network.
type carrying struct {
	config        *network.IPAMConfig
	kept          []kept
	chosen, asked *netipx.IPSet // the addresses that the engine chooses, and those that it gives only on request
	skip          []netip.Addr  // that need no --aux-address, or may have none
}

// carrying prepares for what is kept in a subnet. The engine gives an --aux-address to nobody, so those of the network's
// containers and its gateway are skipped.
func (n *Note) carrying(config *network.IPAMConfig, sub *ipam.SubnetInfo, all []kept) *carrying {
	c := &carrying{config: config, kept: all,
		skip: slices.Concat([]netip.Addr{config.Gateway}, slices.Collect(maps.Values(config.AuxAddress)))}
	for i := range n.Endpoints {
		c.skip = append(c.skip, n.Endpoints[i].Addresses...)
	}
	whole := netipx.RangeOfPrefix(sub.CIDR)
	if whole.From().Is4() && sub.CIDR.Bits() < 31 {
		c.skip = append(c.skip, whole.From(), whole.To())
	}
	c.chosen, c.asked = setOf(whole), &netipx.IPSet{}
	if config.IPRange.IsValid() {
		c.chosen = setOf(netipx.RangeOfPrefix(config.IPRange.Masked()))
		c.asked = without(setOf(whole), c.chosen)
	}
	return c
}

// keep adds an --aux-address for each kept address in a part of the subnet, and returns how many more fit.
func (c *carrying) keep(part *netipx.IPSet, left int) int {
	for i := range c.kept {
		k := &c.kept[i]
		if k.band && part == c.asked {
			continue
		}
		addrs := inBoth(part, k.ips, c.skip, left+1)
		if len(addrs) > left {
			k.lost = cmp.Or(k.lost, part)
			continue
		}
		for _, addr := range addrs {
			name := k.name
			if _, used := c.config.AuxAddress[name]; name == "" || used {
				name = fmt.Sprint(cmp.Or(k.name, "kept"), "-", addr)
			}
			if c.config.AuxAddress == nil {
				c.config.AuxAddress = map[string]netip.Addr{}
			}
			c.config.AuxAddress[name] = addr
		}
		c.skip, left = append(c.skip, addrs...), left-len(addrs)
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
			if who != "" && !yield(kept{what: fmt.Sprintf("%s, %s", l.Address, who), name: cmp.Or(l.Name, l.Host),
				ips: single(l.Address)}) {
				return
			}
		}
		for i := range rec.Reservations {
			r := &rec.Reservations[i]
			if r.Space == sub.Space && r.Subnet == sub.CIDR && r.Address.IsValid() &&
				!yield(kept{what: fmt.Sprintf("%s, reserved for %s", r.Address, r.Owner), name: r.Owner,
					ips: single(r.Address)}) {
				return
			}
		}
		for _, x := range sub.Exclusions {
			if !yield(kept{what: "the exclusion " + x.String(), ips: x.Range.IPRange}) {
				return
			}
		}
		for _, r := range sub.Static {
			if !yield(kept{what: "the static band " + r.String(), ips: r.IPRange, band: true}) {
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

// without returns the addresses of one set that are not in another.
func without(all, some *netipx.IPSet) *netipx.IPSet {
	var b netipx.IPSetBuilder
	b.AddSet(all)
	b.RemoveSet(some)
	set, err := b.IPSet()
	if err != nil {
		return &netipx.IPSet{}
	}
	return set
}

// inBoth returns the first addresses that a set and a range have in common, without some.
func inBoth(part *netipx.IPSet, r netipx.IPRange, skip []netip.Addr, most int) (all []netip.Addr) {
	var b netipx.IPSetBuilder
	b.AddSet(part)
	b.Intersect(setOf(r))
	for _, addr := range skip {
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
