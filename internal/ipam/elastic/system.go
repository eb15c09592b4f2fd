package elastic

import (
	"net/netip"
	"strings"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// A system address (CS-7) is one of a host's own ranges that a container has as long as it runs on a network
// with the mode auto. Nobody asks for it: the keeper (keep.go) settles each guest address by the rules that
// stand here.

// portsPatience is for how long a guest is left alone of which nobody tells whether it publishes ports.
const portsPatience = 2 * time.Second

// isSystem refuses what is done by hand to a system address (CS-7).
func isSystem(c *ledger.Change, known *ipam.Elastic) error {
	whose := "a container"
	if known.Association != nil {
		whose = where(c, known.Association)
	}
	return ipam.RefuseAs(ipam.IsSystemAddress, ipam.ErrInUse, "%s is the system address of %s: it comes and "+
		"goes with that, and gives way to an address that is associated with it", known.Address, whose).
		Advise(ipam.DoAllocateElastic)
}

// noSystem refuses a guest on a network with the mode auto that has no system address (CS-15).
func noSystem(known *ipam.Elastic, g *guest, owner string) error {
	why := "it does not run"
	if g.host != "" {
		why = "none was free, or it has only just started"
	}
	return ipam.RefuseAs(ipam.LacksSystemAddress, ipam.ErrInvalid, "%s has no system address on network %s, "+
		"which is on auto (%s), and %s is mapped only to a container that has one", owner, g.n.Name, why,
		known.Address).Advise(ipam.DoTurnElasticOn, g.n.Name)
}

// guestPlace is where a guest address lies.
type guestPlace struct {
	subnet ipam.ID
	addr   netip.Addr
}

// standing is how it stands with the system address of a guest.
type standing struct {
	has     *ipam.Elastic // the one that it has; nil: none
	lease   *ipam.Lease   // by which a container has the guest address; nil: none that runs here
	want    *ipam.Association
	account string // whose it is to be, where one is wanted
	// why none is wanted, or there is none
	why       string
	published []string // it publishes these ports, which is why
	noneFree  bool     // which is why
	unnamed   bool     // it is not known yet whose the guest address is, or whether he is there still
	pending   bool     // nothing is to change before more is known
}

// settled tells whether a guest has what it is to have.
func (s *standing) settled() bool {
	switch {
	case s.pending || s.noneFree:
		return true
	case s.has == nil || s.want == nil:
		return s.has == nil && s.want == nil
	}
	return s.has.Association.Instance == s.want.Instance && s.has.Account == s.account
}

// stand works out how it stands with a guest address of this host. began is from when on the witness could
// tell.
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
		s.why = "its network is not on auto"
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

// runsOn tells whether a lease is one that a container of a host has; member is nil where the store is that
// host's.
func runsOn(host string, member *ipam.Member, l *ipam.Lease) bool {
	return l.Held() && (l.Kind == ipam.Automatic || l.Kind == ipam.Static) && l.Attachment != (ipam.ID{}) &&
		(member == nil || l.Host == host)
}

// judge goes by what the engine says of the container that has a lease.
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

// fit leaves out a guest on which nothing can be mapped, or to which another address is mapped already, and
// finds whose the system address is to be.
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

// systemOf is the system address out of this host's ranges that leads to a guest; nil where there is none.
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

// isOurs tells whether an address is of a range of this host.
func isOurs(c *ledger.Change, addr netip.Addr) bool {
	r := rangeOf(c.Index(), addr)
	return r != nil && r.Host == c.Host()
}

// lowestFree is the lowest free address of this host's ranges for a guest of an account in a subnet; the zero
// address where none is. A system address of the account that the edge has not let go of yet will do: it is
// the same edge that maps it, so that a restart keeps its address.
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

// returning tells whether an address is a system address of an account that was taken back, and is mapped
// still.
func returning(known *ipam.Elastic, account string) bool {
	return known.System && known.State == ipam.ElasticReleasing && known.Account == account
}

// settle gives the guest at a place its system address, or takes it back.
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

// giveSystem gives a guest the system address that it is to have.
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

// systemDetail is what events say of a system address that is given.
const systemDetail = "system address"

// takeBack takes a system address from its guest; nil is none.
func takeBack(c *ledger.Change, known *ipam.Elastic, why string) error {
	if known == nil {
		return nil
	}
	return endAndGive(c, known, systemDetail+": "+why)
}
