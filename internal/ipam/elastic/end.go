package elastic

import (
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// keptWith are those of them that a person has associated: system addresses end with their container, and by
// nobody else (Keep).
func keptWith(ix *ledger.Index, is func(*ipam.Association) bool) []*ipam.Elastic {
	return slices.DeleteFunc(associatedWith(ix, is), func(one *ipam.Elastic) bool { return one.System })
}

// ofOwners tells whether an association is of one of some owners, also where it names the container of one.
func ofOwners(ix *ledger.Index, has func(owner string) bool) func(*ipam.Association) bool {
	return func(a *ipam.Association) bool {
		if has(a.Instance) {
			return true
		}
		n := ix.Network(a.Network)
		return n != nil && slices.ContainsFunc(slices.Collect(n.Owners(a.Instance)), has)
	}
}

// HasOwners tells whether an elastic address is associated with one of some owners.
func HasOwners(ix *ledger.Index, has func(owner string) bool) bool {
	return len(keptWith(ix, ofOwners(ix, has))) > 0
}

// endAll ends associations whose guests are no more. An address stays with its account, unless it is to be
// released with its container.
func endAll(c *ledger.Change, all []*ipam.Elastic, why string) error {
	for _, one := range all {
		end := endAssociation
		if one.ReleaseOn != ipam.ReleaseNever {
			end = endAndGive
		}
		if err := end(c, one, why); err != nil {
			return err
		}
	}
	return nil
}

// EndOwners ends the associations of owners who have ended.
func EndOwners(c *ledger.Change, has func(owner string) bool) error {
	return endAll(c, keptWith(c.Index(), ofOwners(c.Index(), has)), "its owner has ended")
}

// EndOwner ends the associations of an owner whose time is over on a network, unless something else is
// reserved for it there. It runs before each change while one is due, and so looks only at what is the
// owner's.
func EndOwner(c *ledger.Change, n *ipam.Network, owner string) error {
	all := associatedAs(c.Index(), n, owner)
	all = slices.DeleteFunc(all, func(one *ipam.Elastic) bool { return one.System })
	if len(all) == 0 {
		return nil
	}
	if reserved, err := hasReserved(c, n, owner); err != nil || reserved {
		return err
	}
	return endAll(c, all, "its owner has ended")
}

// EndNetwork ends the associations with guests on a network that is removed, a page of them, or, unless that
// is forced, refuses it; left tells that there are more.
func EndNetwork(c *ledger.Change, n *ipam.Network, force bool) (left bool, err error) {
	all := keptWith(c.Index(), func(a *ipam.Association) bool { return a.Network == n.ID })
	if len(all) > 0 && !force {
		return false, ipam.RefuseAs(ipam.AddressAssociated, ipam.ErrInUse,
			"network %s is in use: the elastic address %s of account %s is associated with %s", n.Name, all[0].Address,
			all[0].Account, where(c, all[0].Association)).Advise(ipam.DoDisassociate, all[0].Address)
	}
	return len(all) > c.Page(), endAll(c, all[:min(len(all), c.Page())], "its network is removed")
}

// SetMode turns elastic addresses of a network on or off; off is refused while one is associated there.
// System addresses come and go after that, by themselves (Keep).
func SetMode(c *ledger.Change, n *ipam.Network, mode ipam.ElasticMode) error {
	if n.Elastic == mode {
		return nil
	}
	if c.NoElastic() && mode != ipam.ElasticOff {
		return turnedOff()
	}
	if mode == ipam.ElasticOff {
		if _, err := EndNetwork(c, n, false); err != nil {
			return err
		}
	}
	n.Elastic = mode
	if mode.Maps() {
		return suits(c, n, nil)
	}
	return nil
}
