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

// dealt are the addresses of a service's replicas on a network, by family and replica number.
type dealt map[int][]netip.Addr

// deal sorts the addresses in a service's x-berth by network, and refuses those that do not fit. On a network either
// each replica has an address of a family, or none has.
func (p *Plan) deal(service *types.ServiceConfig, found *problems) map[string]dealt {
	t := p.terms[service.Name]
	all := map[string]dealt{}
	for i, addr := range t.addresses {
		on := p.networkOf(service, addr)
		if on == nil && addr.IsValid() {
			at := t.lines[keyAddresses].with(strconv.Itoa(i))
			if !p.unsure(service.Name) {
				found.add(p.project.problem(at, "%s is %s, which is in no subnet of the networks of services.%s; "+
					"they have %s",
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

// checkDealt refuses a wrong number of addresses, and addresses of a family for which the service has one already.
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

// checkTwice refuses an address that the files give to two owners. It drops the second claim, so that the daemon does
// not refuse it as well.
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
			if other.service != c.service { // within one x-berth, the reader reports it
				found.add(p.project.problem(p.asks(c), "the files give %s to services.%s, and to services.%s%s; "+
					"only one can have it", w.Address, c.service, other.service, p.project.placeAt(p.asks(other))))
			}
		}
		return twice
	})
}

// networkOf returns the network of a service that contains an address, or nil.
func (p *Plan) networkOf(service *types.ServiceConfig, addr netip.Addr) *network {
	for _, key := range slices.Sorted(maps.Keys(service.Networks)) {
		if n := p.networks[key]; n != nil &&
			slices.ContainsFunc(n.subnets, func(s netip.Prefix) bool { return s.Contains(addr) }) {
			return n
		}
	}
	return nil
}

// subnetsOf returns the subnets for a service's addresses, for an error.
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
		return "no Berth network"
	}
	return strings.Join(all, ", ")
}
