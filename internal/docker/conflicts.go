package docker

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"
)

// judgeConflicts finds containers that are on several Docker networks with one subnet, such as two macvlan networks of
// one planned network. The engine adds an address to a container only if no route there overlaps its subnet, so it
// refuses to start such a container. Stopped containers count: each network that they are connected to is joined at the
// start.
func (c *comparison) judgeConflicts() {
	for i := range c.view.Containers {
		if by := &c.view.Containers[i]; by.ID != "" && len(by.Endpoints) > 1 {
			c.judgeConflict(by)
		}
	}
}

// side is a subnet of a Docker network that a container is connected to.
type side struct {
	network *ipam.EngineNetwork
	cidr    netip.Prefix
}

// judgeConflict reports the networks of a container whose subnets overlap. Networks that conflict in both families are
// reported once.
func (c *comparison) judgeConflict(by *ipam.EngineContainer) {
	sides := c.sidesOf(by)
	grouped, told := map[side]bool{}, map[string]bool{}
	for i, one := range sides {
		if grouped[one] {
			continue
		}
		group := []side{one}
		for _, other := range sides[i+1:] {
			if other.network != one.network && other.cidr.Overlaps(one.cidr) {
				group = append(group, other)
				grouped[other] = true
			}
		}
		if ids := networkIDs(group); len(group) > 1 && !told[ids] {
			told[ids] = true
			c.addConflict(by, group, ids)
		}
	}
}

func (c *comparison) addConflict(by *ipam.EngineContainer, group []side, ids string) {
	var on, remedies []string
	for _, s := range group {
		on = append(on, fmt.Sprintf("%s (%s)", s.network.Name, s.cidr))
		remedies = append(remedies, fmt.Sprintf("`docker network disconnect %s %s`", s.network.Name, by.Name))
	}
	one := group[0]
	seg := segment{c.rec.spacesOf(one.network, one.cidr)[0], one.cidr}
	f := ofSubnet(ipam.ConflictingNetworks, seg, one.network.Name)
	if attached := c.rec.all[seg]; len(attached) > 0 {
		f.Network = attached[0].Network
	}
	f.thing, f.Owner = by.ID+" "+ids, by.Owner()
	c.add(f, "the container %s is on the Docker networks %s, which are on Berth's network %s: their routes conflict, "+
		"so the "+
		"engine cannot start the container again; disconnect the container from one of them with %s", by.Name,
		strings.Join(on, " and "), f.Network,
		strings.Join(remedies, " or "))
}

// sidesOf returns the subnets of the networks that a container is connected to, the widest first, so that a subnet is
// compared with all those in it.
func (c *comparison) sidesOf(by *ipam.EngineContainer) (all []side) {
	for i := range by.Endpoints {
		n := c.seen.byID[by.Endpoints[i].Network]
		if n == nil {
			continue
		}
		for _, sub := range n.Subnets {
			all = append(all, side{n, sub.CIDR})
		}
	}
	slices.SortStableFunc(all, func(a, b side) int {
		if d := a.cidr.Bits() - b.cidr.Bits(); d != 0 {
			return d
		}
		return strings.Compare(a.network.Name, b.network.Name)
	})
	return all
}

// networkIDs lists the ids of a group's networks in a fixed order.
func networkIDs(group []side) string {
	var ids []string
	for _, s := range group {
		ids = append(ids, s.network.ID)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}
