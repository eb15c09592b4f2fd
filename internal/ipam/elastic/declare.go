package elastic

import (
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// A Compose project declares the elastic addresses of its services. Free ones are allocated, and those that it no
// longer declares are disassociated. Associations that a person made stay as they are.

// declare maps an address to an owner for a project: the named one, which the owner's account gets if it is free, or
// else the one that the owner has, or a new one. It may be repeated without effect.
func declare(e *ipam.DeclareElastic, c *ledger.Change) (ipam.Result, error) {
	if err := ipam.CheckOwner(e.Instance); err != nil {
		return ipam.Result{}, err
	}
	if err := ipam.CheckName("project", e.Project); err != nil {
		return ipam.Result{}, err
	}
	owner := ipam.CanonicalOwner(e.Instance)
	wish := ipam.AssociateElastic{Address: e.Address, Instance: owner, Network: e.Network, EgressOnly: e.EgressOnly}
	g, err := find(c, &wish, owner)
	if err != nil {
		return ipam.Result{}, err
	}
	if !wish.Address.IsValid() {
		wish.Address = already(c, &g, owner)
	}
	known := c.Index().Elastic(wish.Address)
	if !wish.Address.IsValid() || known == nil || known.State != ipam.ElasticAllocated {
		result, err := allocate(&ipam.AllocateElastic{Account: claimsOf(c.Index()).of(g.namesOf(owner)),
			Address: wish.Address}, c, 0)
		if err != nil {
			return ipam.Result{}, err
		}
		wish.Address = result.Addresses[0]
	}
	before := c.Index().Elastic(wish.Address).Association
	result, err := associate(&wish, c, 0)
	if err != nil {
		return ipam.Result{}, err
	}
	after := *c.Index().Elastic(wish.Address)
	if before != nil && before.Declared == "" && before.ID == after.Association.ID {
		return result, nil // a person has associated it so
	}
	if after.Association.Declared == e.Project {
		return result, nil
	}
	a := *after.Association
	a.Declared, after.Association = e.Project, &a
	return result, c.SetElastic(wish.Address, &after)
}

// already returns the address that is mapped to an owner's guest, or the zero address. A system address does not count.
func already(c *ledger.Change, g *guest, owner string) netip.Addr {
	for _, one := range associatedAs(c.Index(), g.n, owner) {
		if !one.System && one.Address.Is6() == g.addr.Is6() {
			return one.Address
		}
	}
	return netip.Addr{}
}

// endDeclared ends what a project has declared, except some.
func endDeclared(e *ipam.EndDeclaredElastic, c *ledger.Change) (result ipam.Result, err error) {
	if err := ipam.CheckName("project", e.Project); err != nil {
		return ipam.Result{}, err
	}
	stays := func(a *ipam.Elastic) bool {
		return slices.ContainsFunc(e.But, func(d ipam.DeclaredElastic) bool {
			return ipam.CanonicalOwner(d.Instance) == a.Association.Instance &&
				(!d.Address.IsValid() || d.Address == a.Address)
		})
	}
	for _, one := range keptWith(c.Index(), func(a *ipam.Association) bool { return a.Declared == e.Project }) {
		if stays(one) {
			continue
		}
		if err := endAssociation(c, one, "its project no longer declares it"); err != nil {
			return ipam.Result{}, err
		}
		result.Addresses = append(result.Addresses, one.Address)
	}
	return result, nil
}
