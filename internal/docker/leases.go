package docker

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"
)

const timeForm = "2006-01-02 15:04:05 MST"

// judgeSights finds the lease of each endpoint's address, and the differences.
func (c *comparison) judgeSights() {
	for _, s := range c.seen.all {
		c.judgeTwo(s)
		if other := c.cover(s); other != nil {
			c.addLeasedToOther(s, other)
		}
	}
}

// judgeTwo finds a second endpoint with the same address.
func (c *comparison) judgeTwo(s *sight) {
	var ids, names []string
	for _, other := range c.seen.at[s.home()] {
		if other.home() == s.home() && !slices.Contains(ids, other.endpoint.ID) {
			ids, names = append(ids, other.endpoint.ID),
				append(names, fmt.Sprintf("%s (MAC %s, network %s)", other.who(), other.endpoint.MAC,
					other.network.Name))
		}
	}
	if len(ids) < 2 || c.doubled[s.home()] {
		return
	}
	c.doubled[s.home()] = true
	slices.Sort(ids)
	f := c.ofSight(ipam.DoubledAddress, s)
	f.thing = strings.Join(ids, " ")
	c.add(f, "%s have the same address %s; stop all but one", strings.Join(names, " and "), s.addr)
}

// cover matches an endpoint's address with its leases. An address of a swarm has one of its manager and one of its
// node. It returns a lease that belongs to another holder, or nil.
func (c *comparison) cover(s *sight) (other *ipam.LeaseInfo) {
	covered := false
	for _, space := range s.spaces {
		l := c.held[place{space, s.addr}]
		switch {
		case l == nil:
		case c.fits(l, s) && !c.elsewhere(l):
			covered = true
			c.matches = append(c.matches, match{l, s})
		default:
			return l
		}
	}
	// while several endpoints have the address, its holder is unknown
	if !covered && !c.doubled[s.home()] && (c.rec.justLeft == nil || !c.rec.justLeft(s.network.ID, s.addr, c.view.Taken)) {
		c.addUncovered(s)
	}
	return nil
}

// fits reports whether a lease may be the endpoint's. If one of them has no MAC, only the address and the container
// count: a swarm's manager sends no MAC, and ipvlan has none. Headroom fits any endpoint, because the store learns its
// holder later.
func (c *comparison) fits(l *ipam.LeaseInfo, s *sight) bool {
	switch l.Kind {
	case ipam.Headroom:
		return true
	case ipam.Automatic, ipam.Static:
		sameMAC := l.MAC == (ipam.MAC{}) || s.endpoint.MAC == (ipam.MAC{}) || l.MAC == s.endpoint.MAC
		return sameMAC && c.mayBeOf(l, s.container)
	case ipam.Auxiliary:
		return s.subnet == nil || !slices.Contains(slices.Collect(maps.Values(s.subnet.Aux)), s.addr)
	}
	return false
}

// mayBeOf reports whether a lease may be a container's. The id decides. Without it, the lease is another's if the
// container of its name is there; otherwise that may have been renamed. A guessed name proves nothing, nor does a lease
// that is younger than the view, because the address may have changed its holder since.
func (c *comparison) mayBeOf(l *ipam.LeaseInfo, by *ipam.EngineContainer) bool {
	switch {
	case l.Guessed || by.ID == "" || !l.Since.Before(c.view.Taken):
		return true
	case l.Container != "":
		return l.Container == ipam.ShortContainer(by.ID)
	}
	return ipam.RememberedName(l.Name) == ipam.RememberedName(by.Name) || !c.seen.names[l.Name]
}

// keeps reports whether a Docker network keeps an address for itself (`--aux-address`).
func keeps(n *ipam.EngineNetwork, addr netip.Addr) bool {
	return slices.ContainsFunc(n.Subnets, func(sub ipam.EngineSubnet) bool {
		return slices.Contains(slices.Collect(maps.Values(sub.Aux)), addr)
	})
}

func (c *comparison) addLeasedToOther(s *sight, l *ipam.LeaseInfo) {
	if c.doubled[s.home()] {
		return // judgeTwo has reported the endpoints
	}
	c.doubled[s.home()] = true
	if at := c.outdated(s, l); at != nil {
		c.addOutdated(s, l, at)
		return
	}
	f := c.ofSight(ipam.DoubledAddress, s)
	f.Space, f.Network, f.Lease = l.Space, l.Network, l.ID
	c.add(f, "%s (MAC %s) has %s, which is leased to %s; stop one of the two", s.who(),
		s.endpoint.MAC, s.addr, holder(l))
}

// settled is the age from which a lease must show its endpoint. By then the previous endpoint is gone, too.
const settled = time.Minute

// outdated handles an address of one endpoint whose lease names another container. That happens after an older state
// was restored. It returns the attachment for the endpoint's lease. It returns nil if the lease's holder may still have
// the address. That one may be on another host, be no container, or be starting.
func (c *comparison) outdated(s *sight, l *ipam.LeaseInfo) *ipam.AttachmentInfo {
	switch {
	case l.Host != c.view.Host || l.Space != s.spaces[0] || c.view.Taken.Sub(l.Since) < settled:
		return nil
	case l.Kind != ipam.Automatic && l.Kind != ipam.Static || !c.endpointsOwn(l) || l.Pool == (ipam.ID{}):
		return nil
	case s.container.ID == "" || len(s.spaces) > 1: // a swarm's manager and nodes have separate leases
		return nil
	}
	at, _ := c.attachmentFor(s)
	return at
}

func (c *comparison) addOutdated(s *sight, l *ipam.LeaseInfo, at *ipam.AttachmentInfo) {
	f := c.ofSight(ipam.OutdatedLease, s)
	f.sure, f.Network, f.Lease, f.Pool, f.Subnet = true, l.Network, l.ID, at.ID, at.CIDR
	c.add(f, "%s (MAC %s) has %s, which is leased to %s; that holder has no endpoint, so Berth leases the address to "+
		"the container that has it", s.who(), s.endpoint.MAC, s.addr, holder(l))
}

// holder describes the holder of a lease.
func holder(l *ipam.LeaseInfo) string {
	text := "the endpoint"
	switch {
	case l.Kind == ipam.Gateway:
		text = "the network as its gateway"
	case l.Kind == ipam.Headroom:
		text = "nobody yet, as headroom"
	case l.Kind == ipam.Auxiliary:
		text = "the network as an auxiliary address"
	case l.Name != "":
		text = l.Name
	}
	if l.MAC != (ipam.MAC{}) {
		text += fmt.Sprintf(" with MAC %s", l.MAC)
	}
	return fmt.Sprintf("%s on host %s since %s", text, l.Host, l.Since.Format(timeForm))
}

// networkOf returns the name of Berth's network of an address, or else of Docker's network.
func (c *comparison) networkOf(s *sight) string {
	if s.subnet != nil {
		for _, space := range s.spaces {
			for _, at := range c.rec.all[segment{space, s.subnet.CIDR}] {
				return at.Network
			}
		}
	}
	return s.network.Name
}

func (c *comparison) addUncovered(s *sight) {
	f := c.ofSight(ipam.UncoveredAddress, s)
	at, why := c.attachmentFor(s)
	if at != nil {
		f.sure, f.Pool, f.Subnet = true, at.ID, at.CIDR
		why = "Berth leases it to that container"
	}
	c.add(f, "%s has %s, but there is no lease of it, so others could get it; %s", s.who(), s.addr, why)
}

// attachmentFor returns the attachment through which the engine will release the address, or the reason why it is
// unknown. It must be certain. A lease through another attachment would outlive its container and keep that attachment
// in use.
func (c *comparison) attachmentFor(s *sight) (*ipam.AttachmentInfo, string) {
	if s.subnet == nil {
		return nil, fmt.Sprintf("it is in no subnet of the Docker network %s, which has to be recreated",
			s.network.Name)
	}
	if s.endpoint.MAC == (ipam.MAC{}) && s.container.ID == "" {
		return nil, "it belongs to no container, and has no MAC to lease it to"
	}
	all := slices.DeleteFunc(c.attachmentsHere(segment{s.spaces[0], s.subnet.CIDR}),
		func(at ipam.AttachmentInfo) bool { return younger(s.network, at.Created) })
	if len(all) == 0 {
		return nil, fmt.Sprintf("Berth does not know the pool of the Docker network %s: remove and create the network",
			s.network.Name)
	}
	if len(all) > 1 {
		all = slices.DeleteFunc(all,
			func(at ipam.AttachmentInfo) bool { return !at.Range.IsZero() && !at.Range.Contains(s.addr) })
	}
	if len(all) != 1 {
		return nil,
			"several Docker networks are on its subnet, and the engine does not show which one has it: start the " +
				"container again"
	}
	return &all[0], ""
}

// attachmentsHere returns this host's attachments to a subnet without those of a swarm's manager, because no container
// uses them.
func (c *comparison) attachmentsHere(seg segment) (all []ipam.AttachmentInfo) {
	for _, at := range c.rec.here[seg] {
		if !at.Swarm {
			all = append(all, at)
		}
	}
	return all
}

// judgeLease finds leases without an endpoint and stale memories. Leases of a swarm's manager are ignored, because any
// node may use them.
func (c *comparison) judgeLease(l *ipam.LeaseInfo) {
	if l.State != "held" {
		if l.DHCP == nil { // a lease from DHCP ends by its own time, and an owner may keep it
			c.judgeMemory(l)
		}
		return
	}
	c.judgeDHCP(l)
	if len(c.seen.at[place{l.Space, l.Address}]) > 0 {
		c.busy[l.Pool] = true
		return
	}
	at, known := c.rec.attachments[l.Pool]
	switch {
	case l.Host != c.view.Host || !c.endpointsOwn(l):
		return
	case !known || at.Swarm || l.Since.After(c.view.Taken):
		return
	}
	f := ofLease(ipam.UnusedLease, l)
	f.slow = true
	f.leased = l.Since
	why := c.mayBeInUse(l, &at)
	if f.sure = why == ""; !f.sure {
		why = "; " + why
	}
	c.add(f, "%s is leased to %s, but no endpoint of the engine has it%s", l.Address, holder(l), why)
}

// mayBeInUse returns why a lease may be in use although the engine shows no endpoint of it. It is empty if the engine's
// word is certain.
func (c *comparison) mayBeInUse(l *ipam.LeaseInfo, at *ipam.AttachmentInfo) string {
	for i := range c.view.Containers {
		by := &c.view.Containers[i]
		if by.State == stateRestarting && c.mayBeOf(l, by) && (l.Name != "" || l.Container != "") {
			return "its container is restarting"
		}
	}
	mayBe := func(n *ipam.EngineNetwork) bool { return !younger(n, at.Created) }
	if !slices.ContainsFunc(c.seen.networks[segment{at.Space, at.CIDR}], mayBe) {
		return "the engine has no Docker network for it either, so the lease ends only with its pool"
	}
	return ""
}

// endpointsOwn reports whether a lease was taken for an endpoint. A lease of an engine without MACs and names may be of
// the network itself. The Docker networks of the subnet decide that.
func (c *comparison) endpointsOwn(l *ipam.LeaseInfo) bool {
	networks := c.seen.networks[segment{l.Space, l.Subnet}]
	auxiliary := slices.ContainsFunc(networks, func(n *ipam.EngineNetwork) bool { return keeps(n, l.Address) })
	switch l.Kind {
	case ipam.Automatic:
		return true
	case ipam.Static:
		return !auxiliary
	case ipam.Auxiliary:
		return len(networks) > 0 && !auxiliary && l.MAC == (ipam.MAC{}) && l.Name == ""
	}
	return false
}

// judgeMemory finds the memory of a container that was released long ago and no longer exists, not even stopped. The
// MAC of a stopped container is unknown, so a memory without a name may be its.
func (c *comparison) judgeMemory(l *ipam.LeaseInfo) {
	switch {
	case l.State != "remembered" || l.Host != c.view.Host || c.now.Sub(l.Released) <= longGone ||
		ipam.Quarantined(l.QuarantineUntil, c.now):
		return
	case l.Name != "" && c.seen.names[l.Name], l.Container != "" && c.seen.ids[l.Container],
		l.MAC != (ipam.MAC{}) && c.seen.macs[l.MAC]:
		return
	case l.Name == "" && c.seen.stopped[segment{l.Space, l.Subnet}]:
		return
	}
	f := ofLease(ipam.StaleMemory, l)
	f.sure, f.Owner, f.Pool = true, l.Name, ipam.ID{}
	c.add(f, "%s is remembered for %s, which released it at %s and no longer exists", l.Address,
		cmp.Or(l.Name, l.MAC.String(), "nobody"), l.Released.Format(timeForm))
}

// dhcpFindings are the findings for a DHCP lease that is not bound, and their remedies. A running container cannot get
// another address.
var dhcpFindings = map[ipam.LANState]struct {
	kind ipam.FindingKind
	todo string
}{
	ipam.LANLost: {ipam.LostLease, "restart the container to get another one; to keep this one, reserve it at the " +
		"DHCP server"},
	ipam.LANConflict: {ipam.ConflictingLease, "restart the container to get another one; see why the DHCP server " +
		"gave it twice"},
	ipam.LANUnconfirmed: {ipam.UnconfirmedLease, "check that the DHCP server and berth edge run"},
}

// judgeDHCP finds held addresses that the DHCP server no longer grants, or may not grant.
func (c *comparison) judgeDHCP(l *ipam.LeaseInfo) {
	if l.DHCP == nil || l.Host != c.view.Host {
		return
	}
	is, wrong := dhcpFindings[l.DHCP.State]
	if !wrong {
		return
	}
	c.add(ofLease(is.kind, l), "%s of %s is %s (%s): %s", l.Address, holder(l), l.DHCP.State, l.DHCP.Why, is.todo)
}
