package deploy

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"
)

// Missing returns a line for each network with options but without a subnet in the files. Compose up to 5.5 drops the
// options without a config, so only the override connects the network with the plan.
func (p *Plan) Missing() (lines []string) {
	for _, key := range slices.Sorted(maps.Keys(p.networks)) {
		n := p.networks[key]
		if bool(n.compose.External) || len(n.compose.Ipam.Options) == 0 || len(n.compose.Ipam.Config) > 0 {
			continue
		}
		config := make([]string, len(n.subnets))
		for i, subnet := range n.subnets {
			config[i] = fmt.Sprintf("{subnet: %q}", subnet)
		}
		lines = append(lines, fmt.Sprintf("networks.%s has ipam.options, but no ipam.config; without the override, "+
			"Compose up to 5.5 drops the options, and the network is not on %s: write config: [%s] beside "+
			"them", key, n.planned.Name,
			strings.Join(config, ", ")))
	}
	return lines
}

// heldOn is an owner on a planned network, by name.
type heldOn struct{ owner, network string }

// Kept returns a line for each address that the project's owners keep until they run with the new one. reserved
// are all reservations.
func (p *Plan) Kept(reserved []ipam.ReservationInfo) (lines []string) {
	has := map[string][]netip.Addr{}
	for _, c := range p.claims {
		has[c.owner] = append(has[c.owner], c.has...)
	}
	kept := group(reserved, func(r *ipam.ReservationInfo) bool { return r.Replaced && has[r.Owner] != nil })
	for _, at := range kept.order {
		lines = append(lines, fmt.Sprintf("%s keeps %s on %s until it runs with %s", at.owner, Listed(kept.addrs[at], ", "),
			at.network, Listed(has[at.owner], ", ")))
	}
	return lines
}

// Unclaimed returns a line for each reservation of an owner of the project that is no longer in the files, including
// containers of an earlier override (Earlier). A deploy or a person ends them. reserved are all reservations.
func (p *Plan) Unclaimed(reserved []ipam.ReservationInfo, earlier map[string]string) (lines []string) {
	named := map[string]bool{}
	for _, c := range p.claims {
		named[c.owner] = true
	}
	left := group(reserved, func(r *ipam.ReservationInfo) bool {
		return !named[r.Owner] && r.Address.IsValid() && p.gone(r.Owner, earlier) != ""
	})
	for _, at := range left.order {
		lines = append(lines, fmt.Sprintf("%s has %s reserved on %s, but %s; `berth reservation rm %s --owner %s` "+
			"ends the reservation",
			at.owner, Listed(left.addrs[at], ", "), at.network, p.gone(at.owner, earlier), at.network, at.owner))
	}
	return lines
}

// gone returns why an owner has no claim. It is empty if the owner belongs to another project, or if that is not known.
func (p *Plan) gone(owner string, earlier map[string]string) string {
	path, ours := strings.CutPrefix(owner, p.project.Name()+"/")
	name, _, replica := strings.Cut(path, "/")
	named := earlier[owner] != ""
	if named {
		name = earlier[owner]
	}
	if !named && (!ours || !replica) {
		return ""
	}
	service, there := p.project.compose.Services[name]
	_, disabled := p.project.compose.DisabledServices[name]
	switch {
	case disabled || there && p.unsure(name):
		return ""
	case !there:
		return fmt.Sprintf("the Compose files no longer have a service %s", name)
	case service.ContainerName != "" && service.ContainerName != owner:
		return fmt.Sprintf("the container of %s is called %s now", name, service.ContainerName)
	case len(p.claimsOf(name)) == 0 && service.GetScale() > 0:
		return fmt.Sprintf("%s is no longer on a planned network", name)
	case named:
		return fmt.Sprintf("%s no longer has a container_name", name)
	}
	return fmt.Sprintf("the Compose files give %s %d replicas", name, service.GetScale())
}

func (p *Plan) claimsOf(service string) (all []*claim) {
	for _, c := range p.claims {
		if c.service == service {
			all = append(all, c)
		}
	}
	return all
}

// grouped are addresses by owner and network, in the order of the reservations.
type grouped struct {
	order []heldOn
	addrs map[heldOn][]netip.Addr
}

func group(reserved []ipam.ReservationInfo, chosen func(*ipam.ReservationInfo) bool) grouped {
	g := grouped{addrs: map[heldOn][]netip.Addr{}}
	for i := range reserved {
		r := &reserved[i]
		if !chosen(r) {
			continue
		}
		at := heldOn{r.Owner, r.Network}
		if g.addrs[at] == nil {
			g.order = append(g.order, at)
		}
		g.addrs[at] = append(g.addrs[at], r.Address)
	}
	return g
}
