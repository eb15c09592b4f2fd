package deploy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"berth/internal/ipam"

	"github.com/compose-spec/compose-go/v2/types"
)

// dealt are the addresses of a service's replicas on a network, by family and in the order of their numbers.
type dealt map[int][]netip.Addr

// deal sorts the addresses that x-berth gives the replicas of a service by the networks that they are on, and refuses
// what does not fit: each replica has one of a family on a network, or none has.
func (p *Plan) deal(service *types.ServiceConfig, found *problems) map[string]dealt {
	t := p.terms[service.Name]
	all := map[string]dealt{}
	for i, addr := range t.addresses {
		on := p.networkOf(service, addr)
		if on == nil && addr.IsValid() {
			at := t.lines[keyAddresses].with(strconv.Itoa(i))
			if !p.unsure(service.Name) {
				found.add(p.project.problem(at, "%s is %s, which is of no network that services.%s is on; they have %s",
					at, addr, service.Name, p.subnetsOf(service)))
			}
		}
		if on == nil {
			continue
		}
		if all[on.key] == nil {
			all[on.key] = dealt{}
		}
		family := familyOf(addr)
		all[on.key][family] = append(all[on.key][family], addr)
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		for _, family := range slices.Sorted(maps.Keys(all[key])) {
			found.add(p.checkDealt(service, key, family, len(all[key][family])))
		}
	}
	return all
}

// checkDealt refuses too many or too few addresses, and those of a family of which the service has one already.
func (p *Plan) checkDealt(service *types.ServiceConfig, key string, family, count int) error {
	at := p.terms[service.Name].lines[keyAddresses]
	if replicas := service.GetScale(); count != replicas {
		return p.project.problem(at, "%s gives %d IPv%d addresses on networks.%s, and services.%s has %d replicas; write "+
			"one for each", at, count, family, key, service.Name, replicas)
	}
	says := service.Networks[key]
	if says != nil && (family == 4 && says.Ipv4Address != "" || family == 6 && says.Ipv6Address != "") {
		return p.project.problem(at, "%s gives an IPv%d address on networks.%s, and %s gives another; leave one out", at,
			family, key, addressPath(service.Name, key, family))
	}
	return nil
}

// checkTwice refuses an address that the files give to two, and leaves the second out, so that nobody is told that the
// first one holds it already.
func (p *Plan) checkTwice(found *problems) {
	type place struct {
		network ipam.ID
		addr    netip.Addr
	}
	first := map[place]*claim{}
	p.claims = slices.DeleteFunc(p.claims, func(c *claim) (twice bool) {
		for _, w := range c.wishes {
			at := place{c.on.planned.ID, w.Address}
			other := first[at]
			if other == nil && w.Address.IsValid() {
				first[at] = c
			}
			if other == nil || other == c {
				continue
			}
			twice = true
			if other.service != c.service { // in one x-berth it is told where that is read
				file, line := p.project.place(p.asks(other))
				found.add(p.project.problem(p.asks(c),
					"the files give %s to services.%s, and to services.%s at %s:%d; one of "+
						"them can have it", w.Address, c.service, other.service, file, line))
			}
		}
		return twice
	})
}

// networkOf is the network of a service that an address is of; nil: none.
func (p *Plan) networkOf(service *types.ServiceConfig, addr netip.Addr) *network {
	for _, key := range slices.Sorted(maps.Keys(service.Networks)) {
		if n := p.networks[key]; n != nil &&
			slices.ContainsFunc(n.subnets, func(s netip.Prefix) bool { return s.Contains(addr) }) {
			return n
		}
	}
	return nil
}

// subnetsOf are the subnets that a service can have addresses of, as a person reads them.
func (p *Plan) subnetsOf(service *types.ServiceConfig) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(service.Networks)) {
		if n := p.networks[key]; n != nil {
			for _, subnet := range n.subnets {
				all = append(all, fmt.Sprintf("%s (%s)", subnet, key))
			}
		}
	}
	if len(all) == 0 {
		return "none of Berth's"
	}
	return strings.Join(all, ", ")
}
