package elastic

import (
	"net/netip"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// A token of one account sees and changes only what the account owns. A refusal does not tell whose another thing is,
// or whether it exists.

// MayAsk refuses an edit from one account's token, unless it is about something of that account.
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
	return ipam.Refuse(ipam.ErrForbidden, "%s is not allowed for account %s: it may only allocate, associate, "+
		"disassociate and release its own elastic addresses; ask an admin", e.Op(), account)
}

// mayAllocate refuses an address for another account, and one that another account has.
func mayAllocate(c *ledger.Change, e *ipam.AllocateElastic) error {
	account := c.Account()
	if e.Account != "" && e.Account != account {
		return ipam.Refuse(ipam.ErrForbidden, "requests for account %s cannot allocate addresses to another account; "+
			"ask an "+
			"admin",
			account)
	}
	if known := c.Index().Elastic(e.Address); known != nil && known.Account != account && !isFree(c, e.Address) {
		return ipam.RefuseAs(ipam.AddressAllocated, ipam.ErrInUse, "%s is not free; allocate another, or leave the "+
			"choice to Berth", e.Address)
	}
	return nil
}

// itsOwn refuses an address of another account than the token's.
func itsOwn(c *ledger.Change, addr netip.Addr) error {
	account := c.Account()
	known := c.Index().Elastic(addr)
	if account == "" || known != nil && known.Account == account {
		return nil
	}
	return ipam.Refuse(ipam.ErrNotFound, "account %s has no elastic address %s", account, addr).
		Advise(ipam.DoListElastic)
}

// notIts reports whether an address must be hidden from the token.
func notIts(c *ledger.Change, one *ipam.Elastic) bool {
	account := c.Account()
	return account != "" && one.Account != account
}

// mayTarget refuses a container that is not of the token's account, whether it exists or not. It goes by the account
// that would claim the container where it has an address.
func mayTarget(c *ledger.Change, e *ipam.AssociateElastic) error {
	if err := ipam.CheckOwner(e.Instance); err != nil {
		return err
	}
	owner := ipam.CanonicalOwner(e.Instance)
	all, err := findAll(c, &ipam.AssociateElastic{Address: e.Address}, owner)
	if err != nil {
		return err
	}
	refused := ipam.RefuseAs(ipam.OtherAccount, ipam.ErrInUse, "the container %s does not belong to account %s; an "+
		"address is mapped only to a container of its own account", owner, c.Account())
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

// couldBeIts reports whether the token's account would claim an owner without addresses on some network.
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

// askedFor returns the account to list: for a token of one account, always that one.
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
