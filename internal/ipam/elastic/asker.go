package elastic

import (
	"net/netip"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Who asks for one account alone (CS-14) sees and touches what is that account's. Of anything else no refusal says
// whose it is, nor whether it is there.

// MayAsk refuses an edit to one who asks for one account, unless it is of what is that account's.
func MayAsk(c *ledger.Change, e ipam.Edit) error {
	account := c.Account()
	if account == "" {
		return nil
	}
	switch e := e.(type) {
	case *ipam.AllocateElastic:
		return mayAllocate(c, e)
	case *ipam.AssociateElastic:
		if err := itsOwn(c, e.Address); err != nil {
			return err
		}
		return mayTarget(c, e)
	case *ipam.DisassociateElastic:
		return itsOwn(c, e.Address)
	case *ipam.ReleaseElastic:
		if _, err := knownRange(c.Index(), e.Address); err == nil && isFree(c, e.Address) {
			return nil // it may have been released before
		}
		return itsOwn(c, e.Address)
	}
	return ipam.Refuse(ipam.ErrForbidden, "%s is not for one who asks for account %s: that may allocate, associate, "+
		"disassociate and release its own elastic addresses; ask an admin", e.Op(), account)
}

// mayAllocate refuses an address for another account, and one that another account has.
func mayAllocate(c *ledger.Change, e *ipam.AllocateElastic) error {
	account := c.Account()
	if e.Account != "" && e.Account != account {
		return ipam.Refuse(ipam.ErrForbidden, "who asks for account %s allocates addresses to no other; ask an admin",
			account)
	}
	if known := c.Index().Elastic(e.Address); known != nil && known.Account != account && !isFree(c, e.Address) {
		return ipam.RefuseAs(ipam.AddressAllocated, ipam.ErrInUse, "%s is not free; allocate another, or leave the "+
			"choice to Berth", e.Address)
	}
	return nil
}

// itsOwn refuses an address that is not of the account for which is asked.
func itsOwn(c *ledger.Change, addr netip.Addr) error {
	account := c.Account()
	known := c.Index().Elastic(addr)
	if account == "" || known != nil && known.Account == account {
		return nil
	}
	return ipam.Refuse(ipam.ErrNotFound, "account %s has no elastic address %s", account, addr).
		Advise(ipam.DoListElastic)
}

// notIts tells whether an address is to be kept from who asks.
func notIts(c *ledger.Change, one *ipam.Elastic) bool {
	account := c.Account()
	return account != "" && one.Account != account
}

// mayTarget refuses a container that is not of the account for which is asked, be it there or not: by what it would be
// claimed by wherever it has an address.
func mayTarget(c *ledger.Change, e *ipam.AssociateElastic) error {
	if err := ipam.CheckOwner(e.Instance); err != nil {
		return err
	}
	owner := ipam.CanonicalOwner(e.Instance)
	all, err := findAll(c, &ipam.AssociateElastic{Address: e.Address}, owner)
	if err != nil {
		return err
	}
	refused := ipam.RefuseAs(ipam.OtherAccount, ipam.ErrInUse, "the container %s is not account %s's; an address is "+
		"mapped to a container of its own account", owner, c.Account())
	accounts := claimsOf(c.Index())
	for _, g := range all {
		meant := e.Network == "" || e.Network == g.n.Name || e.Network == g.n.ID.String()
		if meant && accounts.of(g.namesOf(owner)) != c.Account() {
			return refused
		}
	}
	if len(all) == 0 && !couldBeIts(c, owner) {
		return refused
	}
	return nil
}

// couldBeIts tells whether an owner who has no address would be of the account for which is asked on some network.
func couldBeIts(c *ledger.Change, owner string) bool {
	accounts := claimsOf(c.Index())
	if accounts.of([]string{owner}) == c.Account() {
		return true
	}
	for _, nx := range c.Index().Networks() {
		if n := nx.Record(); n != nil && accounts.of((&guest{n: n}).namesOf(owner)) == c.Account() {
			return true
		}
	}
	return false
}

// askedFor is the account of which a list is: that for which is asked, where it is one alone.
func askedFor(c *ledger.Change, account string) (string, error) {
	own := c.Account()
	if own != "" && account != "" && account != own {
		return "", noAccount(account)
	}
	if own != "" {
		return own, nil
	}
	return account, nil
}
