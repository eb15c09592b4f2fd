package pin

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"
)

// timeForm is the format of times in refusals.
const timeForm = "2006-01-02 15:04:05 MST"

// pinning holds what Find looks up.
type pinning struct {
	view     *ipam.EngineView
	rec      *Records
	networks map[string]*ipam.EngineNetwork // by id
	users    map[used]int                   // how many endpoints have an address
	plans    map[string]*ipam.Network       // names and owner rules of Berth's networks, by id
	types    map[string]*ipam.NetworkInfo
	wished   map[string][]ipam.Wish // addresses to reserve, by network and owner
}

// used is an address on a Docker network.
type used struct {
	network string // by id
	addr    netip.Addr
}

func newPinning(view *ipam.EngineView, rec *Records) *pinning {
	f := &pinning{view: view, rec: rec, networks: map[string]*ipam.EngineNetwork{}, users: map[used]int{},
		plans: map[string]*ipam.Network{}, types: map[string]*ipam.NetworkInfo{}, wished: map[string][]ipam.Wish{}}
	for i := range view.Networks {
		f.networks[view.Networks[i].ID] = &view.Networks[i]
	}
	for i := range rec.Networks {
		n := &rec.Networks[i]
		f.plans[n.ID.String()], f.types[n.ID.String()] = &ipam.Network{ID: n.ID, Name: n.Name, Rules: n.OwnerRules}, n
	}
	for i := range view.Containers {
		for _, ep := range view.Containers[i].Endpoints {
			for _, addr := range ep.Addresses {
				f.users[used{ep.Network, addr}]++
			}
		}
	}
	return f
}

// judged is one endpoint and the verdict on it.
type judged struct {
	*pinning
	c   *ipam.EngineContainer
	ep  *ipam.EngineEndpoint
	n   *ipam.EngineNetwork
	pin Pin

	fresh []netip.Addr // addresses to reserve
	brief string       // a short form of the refusal, if that is long
}

func (f *pinning) judge(c *ipam.EngineContainer, ep *ipam.EngineEndpoint, n *ipam.EngineNetwork) Pin {
	s := &judged{pinning: f, c: c, ep: ep, n: n, pin: Pin{Container: c.Name, ID: c.ID, Project: c.Project,
		State: c.State, Network: n.Name, NetworkID: n.ID,
		Addresses: []netip.Addr{}, Asked: append([]netip.Addr{}, ep.Wanted...), Reservation: []Kept{}}}
	for _, own := range n.Subnets {
		if sub := s.subnet(own.CIDR); sub != nil && s.pin.Planned == "" {
			s.pin.Planned, s.pin.PlannedID = sub.Network, sub.NetworkID.String()
		}
	}
	s.pin.Owner = s.owner()
	if n := s.types[s.pin.PlannedID]; n != nil && n.MACPrefix != "" {
		s.pin.MAC = ipam.OwnerMAC(n.ID, n.MACPrefix, s.pin.Owner, 0)
	}
	if why := s.plan(); why != "" {
		s.pin.Refusal, s.pin.Reserve, s.pin.Connect = why, nil, false
		s.pin.Missing, s.pin.Addresses = cmp.Or(s.brief, why), append([]netip.Addr{}, s.ep.Addresses...)
		return s.pin
	}
	s.pin.Connect = !sameAddrs(s.ep.Wanted, s.pin.Addresses)
	s.pin.Pinned = !s.pin.Connect && len(s.pin.Reserve) == 0
	s.pin.Missing = s.missing()
	return s.pin
}

// missing describes what is left to do.
func (s *judged) missing() string {
	var parts []string
	if len(s.pin.Reserve) > 0 {
		what := "not reserved"
		if len(s.fresh) != len(s.pin.Addresses) { // otherwise it is all of them, which the list shows
			what += ": " + listed(s.fresh)
		}
		parts = append(parts, what)
	}
	switch {
	case s.pin.Connect && len(s.ep.Wanted) == 0:
		parts = append(parts, "not requested")
	case s.pin.Connect:
		parts = append(parts, "requests "+listed(s.ep.Wanted))
	}
	return strings.Join(parts, "; ")
}

// plan finds the addresses to keep and the edits that are missing. It returns a refusal if there can be no plan.
func (s *judged) plan() (refusal string) {
	if refusal = s.pin.Unsettled(); refusal != "" {
		return refusal
	}
	if s.pin.Runs() && len(s.ep.Addresses) == 0 {
		return fmt.Sprintf("%s runs, but the engine shows no address of it on the Docker network %s; try again",
			s.c.Name, s.n.Name)
	}
	for i := range s.n.Subnets {
		cidr := s.n.Subnets[i].CIDR
		sub := s.subnet(cidr)
		if sub == nil {
			return fmt.Sprintf("Berth does not know the subnet %s of the Docker network %s; `berth check` shows more",
				cidr, s.n.Name)
		}
		if !s.rec.TakesAny && s.chosen(sub, &s.n.Subnets[i]) {
			s.brief = "its network was created without --subnet"
			return s.chosenRefusal()
		}
		addr, refusal := s.address(sub)
		if refusal == "" && addr.IsValid() {
			s.pin.Addresses = append(s.pin.Addresses, addr)
			refusal = s.reserve(sub, addr)
		}
		if refusal != "" {
			return refusal
		}
	}
	if len(s.pin.Addresses) == 0 {
		return fmt.Sprintf("%s has no address on the Docker network %s", s.c.Name, s.n.Name)
	}
	return ""
}

// subnet returns Berth's subnet with a CIDR of the Docker network. It must be in the planned network or the space that
// the Docker network's options name, or else in the space local.
func (s *judged) subnet(cidr netip.Prefix) *ipam.SubnetInfo {
	named, space := s.n.Options["network"], s.n.Options["space"]
	var found []*ipam.SubnetInfo
	for i := range s.rec.Subnets {
		sub := &s.rec.Subnets[i]
		if sub.CIDR != cidr || len(sub.Attachments) == 0 {
			continue
		}
		if named != "" && (sub.Network == named || sub.NetworkID.String() == named) {
			return sub
		}
		if named == "" && sub.Space == cmp.Or(space, ipam.LocalSpace) {
			return sub
		}
		found = append(found, sub)
	}
	if len(found) == 1 && named != "" {
		return found[0] // the planned network was renamed later
	}
	return nil
}

// chosen reports whether Berth chose the subnet for this Docker network, which named none. If several Docker networks
// are on the subnet, the leases of its containers show which attachment it has. If there are no leases, the engine will
// refuse the address.
func (s *judged) chosen(sub *ipam.SubnetInfo, docker *ipam.EngineSubnet) bool {
	if len(sub.Chosen) == 0 || docker.Range.IsValid() && docker.Range != docker.CIDR {
		return false
	}
	if len(sub.Chosen) == len(sub.Attachments) {
		return true
	}
	for i := range s.view.Containers {
		for _, ep := range s.view.Containers[i].Endpoints {
			if ep.Network != s.n.ID {
				continue
			}
			for _, addr := range ep.Addresses {
				if l := s.holder(sub, addr); l != nil && slices.Contains(sub.Chosen, l.Pool) {
					return true
				}
			}
		}
	}
	return false
}

func (s *judged) chosenRefusal() string {
	var flags string
	for _, sub := range s.n.Subnets {
		if sub.CIDR.Addr().Is6() {
			flags += " --ipv6"
		}
		flags += " --subnet " + sub.CIDR.String()
	}
	for _, key := range sortedKeys(s.n.Options) {
		flags += " --ipam-opt " + quoted(key+"="+s.n.Options[key])
	}
	return fmt.Sprintf("the Docker network %s was created without --subnet, and this engine, before 29.0.4, accepts "+
		"no fixed addresses there: disconnect its containers, remove it, and create it again with `docker network "+
		"create --ipam-driver %s%s %s`",
		s.n.Name, s.n.Driver, flags, s.n.Name)
}

// address returns the address that the container is to keep in a subnet, or why there is none.
func (s *judged) address(sub *ipam.SubnetInfo) (addr netip.Addr, refusal string) {
	if s.pin.Runs() {
		for _, addr := range s.ep.Addresses {
			if sub.CIDR.Contains(addr) {
				return addr, s.has(sub, addr)
			}
		}
		return netip.Addr{}, "" // a container without IPv6 on a network with IPv6
	}
	for _, addr := range s.ep.Wanted {
		if sub.CIDR.Contains(addr) {
			return addr, s.mayHave(sub, addr)
		}
	}
	if r := s.reservation(sub); r != nil {
		return r.Address, s.mayHave(sub, r.Address)
	}
	if l := s.memory(sub); l != nil {
		return l.Address, ""
	}
	return netip.Addr{}, fmt.Sprintf("%s is not running, and has no reserved or remembered address in %s: start it "+
		"and then pin it, or give its address with "+
		"`berth reservation add %s --owner %s --ip ADDRESS`", s.c.Name, sub.CIDR, sub.Network, s.pin.Owner)
}

// has returns a refusal if a running container shows an address that is somebody else's.
func (s *judged) has(sub *ipam.SubnetInfo, addr netip.Addr) string {
	l := s.holder(sub, addr)
	switch {
	case s.users[used{s.n.ID, addr}] > 1:
		return fmt.Sprintf("%s is also the address of another container on the Docker network %s: stop one of them",
			addr, s.n.Name)
	case l == nil:
		return fmt.Sprintf("%s has %s, but Berth has no record of that address: repair this with `berth check "+
			"--repair`",
			s.c.Name, addr)
	case l.Kind == ipam.Gateway, l.Kind == ipam.External, l.Kind == ipam.Headroom:
		return s.heldBy(l)
	case l.Host != s.view.Host, !s.ours(l):
		return s.heldBy(l)
	}
	return ""
}

// ours reports whether a lease can be the endpoint's. A different name alone proves nothing, because a container can be
// renamed.
func (s *judged) ours(l *ipam.LeaseInfo) bool {
	none := ipam.MAC{}
	return l.MAC == none || s.ep.MAC == none || l.MAC == s.ep.MAC || l.Name == s.c.Name
}

// mayHave returns a refusal if somebody else holds an address of a stopped container.
func (s *judged) mayHave(sub *ipam.SubnetInfo, addr netip.Addr) string {
	if l := s.holder(sub, addr); l != nil {
		return s.heldBy(l)
	}
	return ""
}

func (s *judged) heldBy(l *ipam.LeaseInfo) string {
	holder := l.Name
	switch {
	case l.Kind == ipam.Gateway:
		holder = "the gateway of " + l.Subnet.String()
	case l.SeenBy != nil:
		holder = l.SeenBy.Container
	case holder == "" && l.MAC != (ipam.MAC{}):
		holder = "MAC " + l.MAC.String()
	case holder == "":
		holder = "somebody"
	}
	return fmt.Sprintf("%s, which is the address of %s, is held by %s on host %s since %s; `berth check` shows "+
		"whether that holder runs",
		l.Address, s.c.Name, holder, l.Host, l.Since.Local().Format(timeForm))
}
