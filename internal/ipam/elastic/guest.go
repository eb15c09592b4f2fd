package elastic

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// guest is an address of an owner on a network, to which an elastic address can be mapped.
type guest struct {
	n        *ipam.Network
	sub      *ipam.Subnet
	addr     netip.Addr
	name     string // of the container that has it; empty: unknown
	host     string // where that container runs; empty: nobody has the address now
	lease    uint64 // its lease; 0: nobody has the address now
	reserved bool   // it is reserved for the owner, whether the container runs or not
	slot     ipam.Slot
}

// isOf reports whether a lease belongs to a container of the owner.
func isOf(n *ipam.Network, l *ipam.Lease, owner string) bool {
	return l.Name != "" && !l.Guessed && n.Means(l.Name, owner) || l.MAC != (ipam.MAC{}) && l.MAC.String() == owner
}

// guestsOn lists an owner's addresses of a family on a network: those reserved for it and those that its container
// holds, but none that somebody else holds.
func guestsOn(c *ledger.Change, n *ipam.Network, owner string, is6 bool) (all []guest, err error) {
	nx := c.Index().NetworkIndex(n.ID)
	if nx == nil {
		return nil, nil
	}
	for _, id := range nx.Subnets() {
		sx := c.Index().Subnet(id)
		if sx == nil || sx.Record().CIDR.Addr().Is6() != is6 {
			continue
		}
		places := candidates(sx, n, owner)
		for _, addr := range places {
			g, ok, err := guestAt(c, n, sx.Record(), addr, owner)
			if err != nil {
				return nil, err
			}
			if ok {
				all = append(all, g)
			}
		}
	}
	return all, nil
}

// candidates lists the addresses of a subnet that the index connects with an owner.
func candidates(sx *ledger.SubnetIndex, n *ipam.Network, owner string) (all []netip.Addr) {
	for name := range n.Owners(owner) {
		all = slices.AppendSeq(all, sx.ByOwner().Of(name))
	}
	for _, name := range n.NamesOf(owner) {
		all = append(all, sx.SawName(ipam.RememberedName(name))...)
	}
	if len(owner) == len("02:42:0a:00:00:02") { // anything else is no MAC; parsing it would take longer
		if mac, err := ipam.ParseMAC(owner); err == nil {
			all = append(all, sx.SawMAC(mac)...)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// guestAt reads one of these addresses.
func guestAt(c *ledger.Change, n *ipam.Network, sub *ipam.Subnet, addr netip.Addr, owner string) (guest, bool, error) {
	l, err := c.Lease(sub.ID, addr)
	if err != nil {
		return guest{}, false, err
	}
	g := guest{n: n, sub: sub, addr: addr}
	if r := l.Reserved(); r != nil && (r.Owner == owner || n.Means(owner, r.Owner)) {
		g.reserved, g.slot = !r.Replaced, r.Slot
	}
	if !l.Held() {
		return g, g.reserved, nil
	}
	nameless := l.Name == "" || l.Guessed
	ofContainer := (l.Kind == ipam.Automatic || l.Kind == ipam.Static) && l.Attachment != (ipam.ID{})
	if !ofContainer || !isOf(n, l, owner) && !(g.reserved && nameless) {
		return guest{}, false, nil
	}
	g.lease = l.ID
	if g.host = l.Host; c.Member() == nil {
		g.host = c.Host() // a store of one host has no other, even under another name
	}
	if !l.Guessed {
		g.name = l.Name
	}
	return g, true, nil
}

// mapped returns the present guest of an association, or false if there is none.
func mapped(c *ledger.Change, a *ipam.Association) (guest, bool, error) {
	n := c.Index().Network(a.Network)
	if n == nil || n.Stage != "" || !n.Elastic.Maps() {
		return guest{}, false, nil
	}
	all, err := guestsOn(c, n, a.Instance, a.Guest.Is6())
	if err != nil {
		return guest{}, false, err
	}
	for _, g := range all {
		if g.addr == a.Guest {
			return g, true, nil
		}
	}
	if a.Chosen || len(all) == 0 {
		return guest{}, false, nil
	}
	return all[0], true, nil
}

// namesOf lists all names of a guest, for the patterns of accounts.
func (g *guest) namesOf(owner string) (names []string) {
	names = append(slices.Collect(g.n.Owners(owner)), g.n.NamesOf(owner)...)
	if g.name != "" {
		names = slices.AppendSeq(names, g.n.Owners(g.name))
	}
	return names
}

// named is the name of the container that has it, or else the one in the association.
func (g *guest) named(a *ipam.Association) string { return cmp.Or(g.name, a.Instance) }

// find returns the guest that an association means. It refuses if there is none or more than one.
func find(c *ledger.Change, e *ipam.AssociateElastic, owner string) (guest, error) {
	all, err := findAll(c, e, owner)
	if err != nil {
		return guest{}, err
	}
	var off []string
	all = slices.DeleteFunc(all, func(g guest) bool {
		if !g.n.Elastic.Maps() {
			off = append(off, g.n.Name)
		}
		return !g.n.Elastic.Maps()
	})
	switch {
	case len(all) == 0 && len(off) > 0:
		return guest{}, isOff(off[0])
	case len(all) == 0:
		return guest{}, noGuest(e, owner)
	}
	if e.Guest.IsValid() {
		at := slices.IndexFunc(all, func(g guest) bool { return g.addr == e.Guest })
		if at < 0 {
			return guest{}, ipam.RefuseAs(ipam.GuestUnclear, ipam.ErrNotFound, "%s has no address %s; it has %s", owner,
				e.Guest, list(all))
		}
		return all[at], nil
	}
	if len(all) > 1 {
		return guest{}, ipam.RefuseAs(ipam.GuestUnclear, ipam.ErrInvalid,
			"%s has several addresses, %s; name the network or the guest address", owner, list(all))
	}
	return all[0], nil
}

// findAll lists all guests that an association can mean, on the network that it names or on all.
func findAll(c *ledger.Change, e *ipam.AssociateElastic, owner string) (all []guest, err error) {
	if e.Network != "" {
		n, err := namedNetwork(c, e)
		if err != nil {
			return nil, err
		}
		if !n.Elastic.Maps() {
			return nil, isOff(n.Name)
		}
		if err := suits(c, n, nil); err != nil {
			return nil, err
		}
		return guestsOn(c, n, owner, e.Address.Is6())
	}
	for _, nx := range c.Index().Networks() {
		n := nx.Record()
		if n == nil || n.Stage != "" {
			continue
		}
		found, err := guestsOn(c, n, owner, e.Address.Is6())
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b guest) int {
		if by := strings.Compare(a.n.Name, b.n.Name); by != 0 {
			return by
		}
		return a.addr.Compare(b.addr)
	})
	return all, nil
}

// namedNetwork returns the network that an association names. If Docker has several of that name, it is the one of the
// address's family.
func namedNetwork(c *ledger.Change, e *ipam.AssociateElastic) (*ipam.Network, error) {
	ref := e.Network
	n, err := c.NetworkOf(ref, e)
	if err != nil && c.Member() != nil && c.Index().NetworkNamed(ref) == (ipam.ID{}) {
		return nil, ipam.Refuse(ipam.ErrNotFound, "there is no network %q in the cluster's spaces; a cluster maps "+
			"elastic addresses only on its own networks", ref).Advise(ipam.DoListNetworks)
	}
	return n, err
}

func isOff(network string) error {
	return ipam.RefuseAs(ipam.NetworkNotElastic, ipam.ErrInvalid,
		"elastic addresses are off on network %s", network).Advise(ipam.DoTurnElasticOn, network)
}

func noGuest(e *ipam.AssociateElastic, owner string) error {
	family, on := "IPv4", "any network"
	if e.Address.Is6() {
		family = "IPv6"
	}
	if e.Network != "" {
		on = "network " + e.Network
	}
	return ipam.RefuseAs(ipam.GuestUnclear, ipam.ErrNotFound,
		"%s has no %s address on %s: it has no reservation there and is not running, or runs on the host's own "+
			"network; start it, or reserve an address for it", owner, family, on).
		Advise(ipam.DoListReservations)
}

func list(all []guest) string {
	var names []string
	for _, g := range all {
		names = append(names, g.addr.String()+" on "+g.n.Name)
	}
	return strings.Join(names, ", ")
}

// suits refuses a network or, if the guest is known, a Docker network on which nothing can be mapped.
func suits(c *ledger.Change, n *ipam.Network, g *guest) error {
	what := ""
	if n.Type == ipam.VIP {
		what = "has the type vip, whose addresses belong to no containers"
	}
	for _, link := range n.Links {
		if link.Host == c.Host() && goesPast(link) {
			what = linkedPast(link)
		}
	}
	if known := c.Known().NetworkDriver; g != nil && known != nil {
		if driver := known(g.sub.Space, g.sub.CIDR); driver != "" && driver != "bridge" {
			what = "is a Docker network of the driver " + driver + ", which bypasses the host's own network"
		}
	}
	if what == "" {
		return nil
	}
	return ipam.RefuseAs(ipam.NetworkUnsuited, ipam.ErrInvalid,
		"network %s %s: elastic addresses work only on bridges", n.Name, what)
}

// goesPast reports whether a link bypasses its host's own network, so that nothing can be translated there.
func goesPast(link ipam.Link) bool { return link.Mode != "bridged" && link.Mode != "routed" }

func linkedPast(link ipam.Link) string {
	return "is linked by " + link.Mode + " on host " + link.Host + ", which bypasses the host's own network"
}

// MayLink refuses links of a network with elastic addresses if nothing could be mapped there any more.
func MayLink(n *ipam.Network, links []ipam.Link) error {
	if !n.Elastic.Maps() {
		return nil
	}
	for _, link := range links {
		if link.Mode != "" && goesPast(link) {
			return ipam.RefuseAs(ipam.NetworkUnsuited, ipam.ErrInvalid, "with this change, network %s %s: elastic "+
				"addresses work only on bridges; turn them off first (--elastic off)", n.Name, linkedPast(link))
		}
	}
	return nil
}
