package elastic

import (
	"net/netip"
	"strings"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// A system address is an address of a host's own range that a container has while it runs on a network in the mode
// auto. Nobody asks for it: the assigner (keep.go) applies the rules below to each guest address.

// portsPatience is how long a guest is left alone while it is unknown whether it publishes ports.
const portsPatience = 2 * time.Second

// isSystem refuses manual changes of a system address.
func isSystem(c *ledger.Change, known *ipam.Elastic) error {
	whose := "a container"
	if known.Association != nil {
		whose = where(c, known.Association)
	}
	return ipam.RefuseAs(ipam.IsSystemAddress, ipam.ErrInUse, "%s is the system address of %s. Berth assigns and "+
		"removes it together with that container; an elastic address that you associate replaces it", known.Address,
		whose).
		Advise(ipam.DoAllocateElastic)
}

// noSystem refuses a guest on a network in the mode auto that has no system address.
func noSystem(known *ipam.Elastic, g *guest, owner string) error {
	why := "the container is not running"
	if g.host != "" {
		why = "none was free, or the container has only just started"
	}
	return ipam.RefuseAs(ipam.LacksSystemAddress, ipam.ErrInvalid, "%s cannot be mapped to %s: on network %s "+
		"(elastic auto) a container needs a system address first, and this one has none (%s)",
		known.Address, owner, g.n.Name, why).Advise(ipam.DoTurnElasticOn, g.n.Name)
}

// guestPlace locates a guest address.
type guestPlace struct {
	subnet ipam.ID
	addr   netip.Addr
}

// standing is the state of a guest's system address.
type standing struct {
	has     *ipam.Elastic // the present one; nil: none
	lease   *ipam.Lease   // of the container that has the guest address; nil: none runs here
	want    *ipam.Association
	account string // the account to which it will belong, if one is wanted
	// why none is wanted, or there is none
	why       string
	published []string // ports that it publishes, which is the reason
	noneFree  bool     // which is the reason
	unnamed   bool     // whose the guest address is, or whether it still exists, is not known yet
	pending   bool     // nothing may change before more is known
}

// settled reports whether a guest has what it should have.
func (s *standing) settled() bool {
	switch {
	case s.pending || s.noneFree:
		return true
	case s.has == nil || s.want == nil:
		return s.has == nil && s.want == nil
	}
	return s.has.Association.Instance == s.want.Instance && s.has.Account == s.account
}

// stand returns the state of a guest address of this host. began is since when the witness could report.
func stand(c *ledger.Change, at guestPlace, began time.Time) (s standing, err error) {
	sx := c.Index().Subnet(at.subnet)
	if sx == nil || sx.Record() == nil {
		return s, nil
	}
	sub := sx.Record()
	n := c.Index().Network(sub.Network)
	if n == nil {
		return s, nil
	}
	s.has = systemOf(c, n, at.addr)
	if n.Stage != "" || n.Elastic != ipam.ElasticAuto {
		s.why = "its network gives no system addresses now"
		return s, nil
	}
	l, err := c.Lease(at.subnet, at.addr)
	if err != nil || !runsOn(c.Host(), c.Member(), l) {
		s.why = "its container has stopped"
		return s, err
	}
	s.lease = l
	s.judge(c, sub, began)
	if s.want == nil || s.pending {
		return s, nil
	}
	return s, s.fit(c, n, sub)
}

// runsOn reports whether a lease belongs to a container on a host. member is nil if the store is that host's.
func runsOn(host string, member *ipam.Member, l *ipam.Lease) bool {
	return l.Held() && (l.Kind == ipam.Automatic || l.Kind == ipam.Static) && l.Attachment != (ipam.ID{}) &&
		(member == nil || l.Host == host)
}

// judge applies what the engine shows of the container with the lease.
func (s *standing) judge(c *ledger.Change, sub *ipam.Subnet, began time.Time) {
	l := s.lease
	var holder ipam.Holder
	known := c.Known().Holder
	if known != nil {
		holder = known(ipam.LeaseRef{Space: sub.Space, Address: l.Address, ID: l.ID}, l.Name, l.Since)
	}
	since := l.Since
	if began.After(since) {
		since = began
	}
	waiting := known != nil && !holder.PortsKnown && c.Now().Sub(since) < portsPatience
	switch {
	case holder.Ended:
		s.why = "its container has stopped"
	case len(holder.Published) > 0:
		s.why, s.published = "its container publishes "+strings.Join(holder.Published, ", "), holder.Published
	case l.Name == "" || l.Guessed, holder.Unsure && s.has != nil:
		s.unnamed, s.pending = true, true
	case s.has == nil && waiting:
		s.pending = true
	default:
		s.want = &ipam.Association{Instance: l.Name, Network: sub.Network, Guest: l.Address, Chosen: true}
	}
}

// fit excludes a guest on which nothing can be mapped, or to which another address is mapped already, and finds the
// account of the system address.
func (s *standing) fit(c *ledger.Change, n *ipam.Network, sub *ipam.Subnet) error {
	g := &guest{n: n, sub: sub, addr: s.want.Guest, name: s.want.Instance, host: c.Host()}
	if err := suits(c, n, g); err != nil {
		s.want, s.why = nil, err.Error()
		return nil
	}
	but := netip.Addr{}
	if s.has != nil {
		but = s.has.Address
	}
	other, err := mappedTo(c, g, but)
	if err != nil {
		return err
	}
	if other != nil && !other.System {
		s.want, s.why = nil, other.Address.String()+" is mapped in its place"
		return nil
	}
	s.account = claimsOf(c.Index()).of(g.namesOf(g.name))
	if s.has == nil && !lowestFree(c, sub.CIDR, s.account).IsValid() {
		s.noneFree, s.why = true, "no range of host "+c.Host()+" has a free address"
	}
	return nil
}

// systemOf returns the system address of this host's ranges that is mapped to a guest, or nil.
func systemOf(c *ledger.Change, n *ipam.Network, addr netip.Addr) (found *ipam.Elastic) {
	for one := range c.Index().AssociatedAt(addr) {
		e := c.Index().Elastic(one)
		if e == nil || !e.System || e.Association == nil || e.Association.Network != n.ID || !isOurs(c, one) {
			continue
		}
		if found == nil || one.Less(found.Address) {
			found = e
		}
	}
	return found
}

// isOurs reports whether an address is of a range of this host.
func isOurs(c *ledger.Change, addr netip.Addr) bool {
	r := rangeOf(c.Index(), addr)
	return r != nil && r.Host == c.Host()
}

// lowestFree returns the lowest free address of this host's ranges for a guest of an account in a subnet, or the zero
// address. A system address of the account that the edge has not let go of yet is free, too: the same edge maps it, and
// so a restart keeps its address.
func lowestFree(c *ledger.Change, guests netip.Prefix, account string) netip.Addr {
	for _, r := range rangesOf(c.Index(), c.Host()) {
		if r.Range.From().Is6() != guests.Addr().Is6() {
			continue
		}
		addr := lowest(c.Index(), r, guests, func(known *ipam.Elastic) bool {
			return returning(known, account) || leftOver(c.Index(), c.Host(), known.Address)
		})
		if addr.IsValid() {
			return addr
		}
	}
	return netip.Addr{}
}

// returning reports whether an address is a system address of an account that was taken back and is still mapped.
func returning(known *ipam.Elastic, account string) bool {
	return known.System && known.State == ipam.ElasticReleasing && known.Account == account
}

// settle gives a guest its system address, or takes it back.
func settle(c *ledger.Change, at guestPlace, began time.Time) error {
	s, err := stand(c, at, began)
	if err != nil || s.settled() {
		return err
	}
	if err := takeBack(c, s.has, s.why); err != nil || s.want == nil {
		return err
	}
	return giveSystem(c, &s, at)
}

// giveSystem gives a guest the system address that it should have.
func giveSystem(c *ledger.Change, s *standing, at guestPlace) error {
	addr := lowestFree(c, c.Index().Subnet(at.subnet).Record().CIDR, s.account)
	if !addr.IsValid() {
		return nil
	}
	e := &ipam.Elastic{Address: addr, State: ipam.ElasticAllocated, Account: s.account, Allocated: c.Now(), System: true}
	event := &ipam.Event{Verb: ipam.ElasticTaken, Address: addr, Name: s.account, Detail: systemDetail}
	id, err := tell(c, event, nil, factsOfAddress(c, e))
	if err != nil {
		return err
	}
	e.ID = id
	return setAssociation(c, e, s.want, systemDetail)
}

// systemDetail is the detail in events of a given system address.
const systemDetail = "system address"

// takeBack takes a system address from its guest. nil means none.
func takeBack(c *ledger.Change, known *ipam.Elastic, why string) error {
	if known == nil {
		return nil
	}
	return endAndGive(c, known, systemDetail+": "+why)
}
