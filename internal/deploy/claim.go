package deploy

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"

	"github.com/compose-spec/compose-go/v2/types"
)

// Plan has the wishes of a project's services. After Grant it also has their addresses.
type Plan struct {
	project  *Project
	networks map[string]*network
	claims   []*claim
	terms    map[string]*terms // by service
	workers  int               // that run at the same time
	elastic  []elasticClaim    // elastic.go
	left     map[string]string // the networks that stay as they are, by key, with the reason
	moves    bool              // Mapping.Moves
}

// claim has the wishes of one owner on one network. It is one reservation of one or two addresses.
type claim struct {
	service string
	owner   string
	on      *network
	wishes  []ipam.Wish
	shared  bool // the owner is one of several replicas, which share the service's entry in the files
	number  int  // of the replica, from 0
	dealt   bool // it has an address from the list in x-berth (static.go)
	has     []netip.Addr
}

// Plan finds out what the services want on the planned networks. Its error joins all problems, each a Problem with its
// place. With an error, the returned plan has only the valid parts, for a dry run. Never make its edits.
func (p *Project) Plan(m Mapping, planned []ipam.NetworkInfo) (*Plan, error) {
	var found problems
	plan := &Plan{project: p, moves: m.Moves}
	plan.terms, plan.workers = p.terms(&found)
	plan.networks, plan.left = p.networks(m, planned, &found)
	for _, name := range p.services() {
		service := p.compose.Services[name]
		dealt := plan.deal(&service, &found)
		if plan.onBerth(&service) {
			p.checkMACs(&service, &found)
		}
		for _, key := range slices.Sorted(maps.Keys(service.Networks)) {
			if on := plan.networks[key]; on != nil {
				plan.claim(&service, on, dealt[key], &found)
			}
		}
		found.add(plan.claimElastic(&service))
	}
	plan.checkOwners(&found)
	plan.checkTwice(&found)
	if len(plan.claims) == 0 && len(found.all) == 0 {
		found.add(plan.nothing())
	}
	// Addresses from the files come first, so that no other owner gets them.
	slices.SortStableFunc(plan.claims, func(a, b *claim) int { return cmp.Compare(b.given(), a.given()) })
	return plan, found.err()
}

// onBerth reports whether a service is on a network with addresses from Berth.
func (p *Plan) onBerth(service *types.ServiceConfig) bool {
	for key := range service.Networks {
		if p.networks[key] != nil {
			return true
		}
	}
	return false
}

// checkOwners refuses two claims on one reservation: of two services with the same container_name, and of a service on
// two Docker networks of one planned network.
func (p *Plan) checkOwners(found *problems) {
	type place struct {
		owner   string
		network ipam.ID
	}
	there := map[place]*claim{}
	for _, c := range p.claims {
		at := place{c.owner, c.on.planned.ID}
		switch other := there[at]; {
		case other == nil:
			there[at] = c
		case other.service != c.service:
			found.add(p.project.problem(path{"services", c.service, "container_name"},
				"the services %s and %s have the same container_name, %s", other.service, c.service, c.owner))
		default:
			found.add(p.project.problem(path{"services", c.service, "networks", c.on.key},
				"services.%s is on the networks %s and %s, which are both on the planned network %s; an owner has "+
					"only one reservation in a network, so plan a network for each of them",
				c.service, other.on.key, c.on.key, c.on.planned.Name))
		}
	}
}

// nothing returns the refusal for a project without any address from Berth.
func (p *Plan) nothing() error {
	why := "no network of a running service has Berth as its IPAM driver; write ipam: {driver: berth, " +
		"options: {network: NAME}, config: [{subnet: CIDR}]}, or give --ipam-driver or --network"
	if len(p.left) > 0 {
		why = strings.TrimSuffix(strings.Join(p.notes(), " "), ".")
	} else if len(p.networks) > 0 {
		why = "its services have no replicas"
	}
	return fmt.Errorf("there is nothing to reserve for the project %s: %s", p.project.Name(), why)
}

// notes returns the reasons for the networks that stay as they are.
func (p *Plan) notes() (all []string) {
	for _, key := range slices.Sorted(maps.Keys(p.left)) {
		all = append(all, p.left[key])
	}
	return all
}

// claim adds the wishes of each replica of a service on a network. dealt are the addresses from x-berth.
func (p *Plan) claim(service *types.ServiceConfig, on *network, dealt dealt, found *problems) {
	replicas, at := service.GetScale(), path{"services", service.Name}
	if replicas > maxReplicas {
		found.add(p.project.problem(at, "services.%s has %d replicas; at most %d are possible", service.Name, replicas,
			maxReplicas))
		return
	}
	given := p.given(service, on, found)
	if len(given) > 0 && replicas > 1 {
		found.add(p.project.problem(at.with("networks", on.key), "services.%s has %d replicas, but only one address "+
			"on the network %s; leave the address out, or give each replica its own with %s: {%s: [IP, ...]}",
			service.Name, replicas, on.key, extension, keyAddresses))
		return
	}
	for number := range replicas {
		owner := p.project.owner(service, number+1)
		if err := ipam.CheckOwner(owner); err != nil {
			found.add(p.project.problem(at, "services.%s: %w", service.Name, err))
			return
		}
		p.claims = append(p.claims, &claim{service: service.Name, owner: owner, on: on, shared: replicas > 1,
			number: number, wishes: on.wishes(given, dealt, number), dealt: len(dealt) > 0})
	}
}

// given returns the addresses that the files give a service on a network, by family.
func (p *Plan) given(service *types.ServiceConfig, on *network, found *problems) map[int]netip.Addr {
	given := map[int]netip.Addr{}
	says := service.Networks[on.key]
	if says == nil {
		return given
	}
	for _, own := range []struct {
		family int
		text   string
	}{{4, says.Ipv4Address}, {6, says.Ipv6Address}} {
		if own.text == "" {
			continue
		}
		at := addressPath(service.Name, on.key, own.family)
		addr, err := on.own(own.family, own.text)
		if err != nil {
			found.add(p.project.problem(at, "%s is %q: %w", at, own.text, err))
			continue
		}
		given[own.family] = addr
	}
	return given
}

// addressPath returns the path of a service's address of a family in the files.
func addressPath(service, network string, family int) path {
	return path{"services", service, "networks", network, fmt.Sprintf("ipv%d_address", family)}
}

// wishes returns a wish for each subnet of the Docker network: the address from the files, or any.
func (n *network) wishes(given map[int]netip.Addr, dealt dealt, number int) (all []ipam.Wish) {
	for _, subnet := range n.subnets {
		family := familyOf(subnet.Addr())
		w := ipam.Wish{Slot: len(all), Address: given[family]}
		if addrs := dealt[family]; number < len(addrs) {
			w.Address = addrs[number]
		}
		if !w.Address.IsValid() {
			w.Subnet, w.Pool = subnet.String(), n.pool
		}
		all = append(all, w)
	}
	return all
}

// own reads an address that the files give a service. The daemon checks whether the planned network has it.
func (n *network) own(family int, text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" || a.Is4In6() || familyOf(a) != family {
		return a, fmt.Errorf("this is not an IPv%d address", family)
	}
	i := slices.IndexFunc(n.subnets, func(p netip.Prefix) bool { return familyOf(p.Addr()) == family })
	if i < 0 {
		hint := map[int]string{6: "; to make networks." + n.key + " an IPv6 network, write enable_ipv6: true in " +
			"the file"}[family]
		return a, fmt.Errorf("networks.%s is not an IPv%d network; the planned network %s has %s%s", n.key, family,
			n.planned.Name, listOf(n.planned.Subnets), hint)
	}
	for _, s := range n.planned.Subnets {
		if s.CIDR.Contains(a) && s.CIDR != n.subnets[i] {
			return a, fmt.Errorf("this address is in %s, but the network uses the subnet %s of the planned network "+
				"%s; write {subnet: %s} in its ipam.config, or another address",
				s.CIDR, n.subnets[i], n.planned.Name, s.CIDR)
		}
	}
	return a, nil
}

// given returns the number of addresses that the files name.
func (c *claim) given() (count int) {
	for _, w := range c.wishes {
		if w.Address.IsValid() {
			count++
		}
	}
	return count
}

// Edits returns the reservations for the daemon. They may be repeated without effect. A new address in the
// files, or one on another network, replaces the old one. The owner keeps the old one until it runs with the new one.
func (p *Plan) Edits() []ipam.Edit {
	edits := make([]ipam.Edit, len(p.claims))
	only := p.only()
	for i, c := range p.claims {
		edits[i] = &ipam.AddReservation{Network: c.on.planned.ID.String(), Owner: c.owner, Wishes: c.wishes,
			Replace: true, Only: only[c.owner], Moves: p.moves}
	}
	return edits
}

// only returns the planned networks on which each owner may have addresses. It is nil for an owner of a service on a
// network that stays as it is, because then these networks are not known.
func (p *Plan) only() map[string][]string {
	all := map[string][]string{}
	for _, c := range p.claims {
		if !p.unsure(c.service) {
			all[c.owner] = append(all[c.owner], c.on.planned.ID.String())
		}
	}
	return all
}

// unsure reports whether a service is on a network that stays as it is.
func (p *Plan) unsure(service string) bool {
	for key := range p.project.compose.Services[service].Networks {
		if p.left[key] != "" {
			return true
		}
	}
	return false
}

// Where returns the part of the files that an edit comes from, with its place.
func (p *Plan) Where(edit int) string {
	at, text := p.edited(edit)
	if at == nil {
		return ""
	}
	if file, line := p.project.place(at); file != "" {
		return fmt.Sprintf("%s:%d: %s", file, line, text)
	}
	return text
}

// Problem returns the refusal of an edit as a problem of the files, with its place.
func (p *Plan) Problem(edit int, err error) error {
	at, text := p.edited(edit)
	if at == nil {
		return err
	}
	if edit < len(p.claims) {
		text = fmt.Sprintf("%s on networks.%s", p.claims[edit].owner, p.claims[edit].on.key)
	}
	return p.project.problem(at, "%s: %w", text, err)
}

// edited returns the origin of an edit: its path in the files and its name for people. An edit for the whole project
// has no path.
func (p *Plan) edited(edit int) (at path, text string) {
	if own := edit - len(p.claims); own >= 0 {
		if own == 0 || own > len(p.elastic) {
			return nil, ""
		}
		at = p.terms[p.elastic[own-1].service].lines[keyElastic]
		return at, at.String()
	}
	c := p.claims[edit]
	return p.asks(c), fmt.Sprintf("service %s, network %s", c.service, c.on.key)
}

// asks returns the path of a claim in the files: of the address that it names, or else of the service.
func (p *Plan) asks(c *claim) path {
	if c.given() == 0 {
		return path{"services", c.service}
	}
	i := slices.IndexFunc(c.wishes, func(w ipam.Wish) bool { return w.Address.IsValid() })
	addr := c.wishes[i].Address
	if c.dealt {
		t := p.terms[c.service]
		return t.lines[keyAddresses].with(fmt.Sprint(slices.Index(t.addresses, addr)))
	}
	return addressPath(c.service, c.on.key, familyOf(addr))
}

// Grant stores the addresses in the results of the edits.
func (p *Plan) Grant(results []ipam.Result) error {
	if len(results) != len(p.claims) {
		return fmt.Errorf("Berth requested %d reservations, but the daemon returned %d", len(p.claims), len(results))
	}
	for i, c := range p.claims {
		if len(results[i].Addresses) != len(c.wishes) {
			return fmt.Errorf("%s should have %d addresses on the network %s, but got %d", c.owner, len(c.wishes),
				c.on.planned.Name, len(results[i].Addresses))
		}
		c.has = results[i].Addresses
	}
	return nil
}

// Release returns the edits that end all reservations of the project's owners: of those under its name, and of the
// containers with their own names.
func (p *Project) Release() []ipam.Edit {
	edits := []ipam.Edit{&ipam.ReleaseOwner{Owner: p.Name(), Under: true}}
	for _, name := range p.services() {
		if container := p.compose.Services[name].ContainerName; container != "" {
			edits = append(edits, &ipam.ReleaseOwner{Owner: container})
		}
	}
	return edits
}
