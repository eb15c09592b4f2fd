package elastic

import (
	"fmt"
	"net/netip"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// associationFacts is the part of an association that its events record.
type associationFacts struct {
	Host       string     `json:"host,omitempty"` // where the guest runs
	Instance   string     `json:"instance"`
	Network    string     `json:"network"`
	Guest      netip.Addr `json:"guest"`
	EgressOnly bool       `json:"egress_only,omitempty"`
}

// factsOf returns the facts of an association. If its guest runs nowhere, the host is the one that still has the
// address in its kernel.
func factsOf(c *ledger.Change, addr netip.Addr, a *ipam.Association) (any, error) {
	if a == nil {
		return nil, nil
	}
	host, err := hostOf(c, a)
	for _, at := range inForce(c.Index(), c.Host(), addr) {
		if host == "" && at.Association == a.ID {
			host = at.Host
		}
	}
	return associationFacts{host, a.Instance, c.NetworkName(a.Network), a.Guest, a.EgressOnly}, err
}

// hostOf returns the host on which the guest of an association runs. With a store of one host, it is that host.
func hostOf(c *ledger.Change, a *ipam.Association) (string, error) {
	if c.Member() == nil {
		return c.Host(), nil
	}
	g, _, err := mapped(c, a)
	return g.host, err
}

// where names the guest of an association in a refusal.
func where(c *ledger.Change, a *ipam.Association) string {
	text := fmt.Sprintf("%s (%s on network %s", a.Instance, a.Guest, c.NetworkName(a.Network))
	if host, err := hostOf(c, a); err == nil && host != "" {
		text += ", host " + host
	}
	return text + ")"
}

func associate(e *ipam.AssociateElastic, c *ledger.Change, seen uint64) (ipam.Result, error) {
	if err := ipam.CheckOwner(e.Instance); err != nil {
		return ipam.Result{}, err
	}
	known, err := toChange(c, e.Address, seen)
	if err != nil {
		return ipam.Result{}, err
	}
	if known == nil || known.State != ipam.ElasticAllocated {
		return ipam.Result{}, ipam.RefuseAs(ipam.AddressNotAllocated, ipam.ErrNotFound,
			"%s is allocated to no account", e.Address).Advise(ipam.DoAllocate, e.Address)
	}
	if known.System {
		return ipam.Result{}, isSystem(c, known)
	}
	owner := ipam.CanonicalOwner(e.Instance)
	if result, again, err := asBefore(c, e, known.Association, owner); again {
		return result, err
	}
	g, err := find(c, e, owner)
	if err != nil {
		return ipam.Result{}, err
	}
	replaced, err := mayMap(c, known, &g, owner)
	if err != nil {
		return ipam.Result{}, err
	}
	result := ipam.Result{Network: g.n.ID, Subnet: g.sub.ID, CIDR: g.sub.CIDR, Addresses: []netip.Addr{e.Address}}
	want := &ipam.Association{Instance: owner, Network: g.n.ID, Guest: g.addr, Chosen: e.Guest.IsValid(),
		EgressOnly: e.EgressOnly}
	here := false // it is mapped to this guest already
	if was := known.Association; was != nil {
		if was.Same(want) {
			return result, nil
		}
		if here, err = leadsTo(c, was, want); err != nil {
			return ipam.Result{}, err
		}
		if !here && !e.Move {
			return ipam.Result{}, ipam.Help(ipam.RefuseAs(ipam.AddressAssociated, ipam.ErrInUse,
				"%s of account %s is associated with %s", e.Address, known.Account, where(c, was)),
				ipam.Advise(ipam.DoMoveElastic), ipam.OrAdvise(ipam.DoDisassociate, e.Address))
		}
	}
	if g.n.Elastic == ipam.ElasticAuto && replaced == nil && !here {
		return ipam.Result{}, noSystem(known, &g, owner)
	}
	if err := takeBack(c, replaced, "another elastic address is mapped in its place"); err != nil {
		return ipam.Result{}, err
	}
	return result, setAssociation(c, known, want, "")
}

// asBefore answers the same association once more, whatever has happened to its guest since. again is false if it is
// another one.
func asBefore(c *ledger.Change, e *ipam.AssociateElastic, was *ipam.Association, owner string) (result ipam.Result,
	again bool, err error) {
	if was == nil || was.Instance != owner || was.EgressOnly != e.EgressOnly || was.Chosen != e.Guest.IsValid() ||
		was.Chosen && was.Guest != e.Guest {
		return result, false, nil
	}
	if e.Network != "" {
		n, err := namedNetwork(c, e)
		if err != nil {
			return result, true, err
		}
		if n.ID != was.Network {
			return result, false, nil
		}
	}
	result = ipam.Result{Network: was.Network, Addresses: []netip.Addr{e.Address}}
	at := was.Guest
	if g, there, err := mapped(c, was); err != nil {
		return result, true, err
	} else if there {
		at = g.addr
	}
	if sub := subnetAt(c.Index(), was.Network, at); sub != nil {
		result.Subnet, result.CIDR = sub.ID, sub.CIDR
	}
	return result, true, nil
}

// leadsTo reports whether two associations have the same guest, so that nothing moves.
func leadsTo(c *ledger.Change, was, want *ipam.Association) (bool, error) {
	if was.Network != want.Network {
		return false, nil
	}
	if was.Instance == want.Instance && (!was.Chosen || was.Guest == want.Guest) {
		return true, nil
	}
	now, there, err := mapped(c, was)
	return there && now.addr == want.Guest, err
}

// mayMap refuses a guest to which an address cannot be mapped. It returns the guest's system address, which will be
// replaced, or nil.
func mayMap(c *ledger.Change, known *ipam.Elastic, g *guest, owner string) (replaced *ipam.Elastic, err error) {
	if err := fits(c, known, g, owner); err != nil {
		return nil, err
	}
	other, err := mappedTo(c, g, known.Address)
	if err != nil || other == nil || other.System {
		return other, err
	}
	if notIts(c, other) {
		return nil, ipam.RefuseAs(ipam.GuestAssociated, ipam.ErrInUse,
			"%s already has another elastic address; a guest address has only one", owner)
	}
	return nil, ipam.RefuseAs(ipam.GuestAssociated, ipam.ErrInUse,
		"%s already has the elastic address %s of account %s, which is mapped to %s on network %s; a guest address "+
			"has only one", other.Association.Instance, other.Address, other.Account, g.addr,
		c.NetworkName(other.Association.Network)).Advise(ipam.DoDisassociate, other.Address)
}

// fits refuses a guest because of its own properties or the address's, whatever else is mapped.
func fits(c *ledger.Change, known *ipam.Elastic, g *guest, owner string) error {
	if err := suits(c, g.n, g); err != nil {
		return err
	}
	r, err := knownRange(c.Index(), known.Address)
	if err != nil {
		return err
	}
	if r.Host != "" && g.host != "" && c.Member() != nil && r.Host != g.host {
		return ipam.Refuse(ipam.ErrInvalid, "%s belongs to the elastic range %s of host %s, but %s runs on host "+
			"%s; use an address of the cluster", known.Address, r.Range, r.Host, owner, g.host).
			Advise(ipam.DoListElasticRanges)
	}
	if g.sub.CIDR.Contains(known.Address) {
		return ipam.RefuseAs(ipam.NetworkUnsuited, ipam.ErrOverlap,
			"%s lies in %s, the container's own subnet on network %s, so nobody could reach the container at that "+
				"address; choose an elastic address outside that subnet", known.Address, g.sub.CIDR, g.n.Name)
	}
	if account := claimsOf(c.Index()).of(g.namesOf(owner)); account != known.Account {
		return ipam.RefuseAs(ipam.OtherAccount, ipam.ErrInUse,
			"%s belongs to account %s, and the container %s to account %s; an address is mapped only to a container "+
				"of its own account", known.Address, known.Account, owner, account).Advise(ipam.DoListAccounts)
	}
	return publishesNothing(c, g, owner)
}

// publishesNothing refuses a container that publishes ports of the host.
func publishesNothing(c *ledger.Change, g *guest, owner string) error {
	known := c.Known().Publishes
	if known == nil {
		return nil
	}
	name, ports := known(func(name string) bool { return name == g.name || g.n.Means(name, owner) })
	if len(ports) == 0 {
		return nil
	}
	return ipam.RefuseAs(ipam.PublishesPorts, ipam.ErrInUse,
		"the container %s publishes %s on its host, so it cannot have an elastic address too; run it without "+
			"published ports", name, strings.Join(ports, ", "))
}

// setAssociation sets or, with nil, ends the association of an address.
func setAssociation(c *ledger.Change, known *ipam.Elastic, want *ipam.Association, detail string) error {
	verb, of := ipam.ElasticAssociated, want
	if want == nil {
		verb, of = ipam.ElasticDisassociated, known.Association
	}
	before, err := factsOf(c, known.Address, known.Association)
	if err != nil {
		return err
	}
	after, err := factsOf(c, known.Address, want)
	if err != nil {
		return err
	}
	event := &ipam.Event{Verb: verb, Address: known.Address, Name: of.Instance, Network: c.NetworkName(of.Network),
		NetworkID: of.Network, Detail: detail}
	if n := c.Index().Network(of.Network); n != nil {
		event.Space = n.Space
	}
	id, err := tell(c, event, before, after)
	if err != nil {
		return err
	}
	changed := *known
	changed.ID, changed.Association = id, want
	if want != nil {
		want.ID = id
	}
	return c.SetElastic(known.Address, &changed)
}

func disassociate(e *ipam.DisassociateElastic, c *ledger.Change, seen uint64) (ipam.Result, error) {
	known, err := toChange(c, e.Address, seen)
	if err != nil {
		return ipam.Result{}, err
	}
	result := ipam.Result{Addresses: []netip.Addr{e.Address}}
	if known == nil {
		return result, nil
	}
	if known.System && known.Association != nil {
		return ipam.Result{}, isSystem(c, known)
	}
	return result, endAssociation(c, known, "")
}

// endAndGive ends the association of an address and takes the address from its account. detail is the reason.
func endAndGive(c *ledger.Change, known *ipam.Elastic, detail string) error {
	if err := endAssociation(c, known, detail); err != nil {
		return err
	}
	return give(c, c.Index().Elastic(known.Address))
}

// endAssociation ends the association of an address, if it has one. detail is the reason, unless somebody asked for it.
func endAssociation(c *ledger.Change, known *ipam.Elastic, detail string) error {
	if known.Association == nil {
		return nil
	}
	return setAssociation(c, known, nil, detail)
}
