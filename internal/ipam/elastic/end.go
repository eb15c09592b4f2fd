package elastic

import (
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// keptWith lists the matching addresses that a person has associated. System addresses end only with their container
// (KeepSystem).
func keptWith(ix *ledger.Index, is func(*ipam.Association) bool) []*ipam.Elastic {
	return slices.DeleteFunc(associatedWith(ix, is), func(one *ipam.Elastic) bool { return one.System })
}

// ofOwners returns a function that reports whether an association is of one of some owners, also if it names the
// owner's container.
func ofOwners(ix *ledger.Index, has func(owner string) bool) func(*ipam.Association) bool {
	return func(a *ipam.Association) bool {
		if has(a.Instance) {
			return true
		}
		n := ix.Network(a.Network)
		return n != nil && slices.ContainsFunc(slices.Collect(n.Owners(a.Instance)), has)
	}
}

// HasOwners reports whether an elastic address is associated with one of some owners.
func HasOwners(ix *ledger.Index, has func(owner string) bool) bool {
	return len(keptWith(ix, ofOwners(ix, has))) > 0
}

// endAll ends associations whose guests are gone. An address stays with its account, unless it is to be released with
// its container.
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

// EndOwners ends the associations of owners that have ended.
func EndOwners(c *ledger.Change, has func(owner string) bool) error {
	return endAll(c, keptWith(c.Index(), ofOwners(c.Index(), has)), "its owner has ended")
}

// EndOwner ends the associations of an owner whose time on a network is over, unless it has another reservation there.
// It runs before each change while an end is due, so it looks only at that owner.
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

// EndNetwork ends the associations with guests on a network that is removed, a page of them, or refuses the removal
// unless it is forced. left reports that there are more.
func EndNetwork(c *ledger.Change, n *ipam.Network, force bool) (left bool, err error) {
	all := keptWith(c.Index(), func(a *ipam.Association) bool { return a.Network == n.ID })
	if len(all) > 0 && !force {
		return false, ipam.RefuseAs(ipam.AddressAssociated, ipam.ErrInUse,
			"network %s is in use: the elastic address %s of account %s is associated with %s", n.Name, all[0].Address,
			all[0].Account, where(c, all[0].Association)).Advise(ipam.DoDisassociate, all[0].Address)
	}
	return len(all) > c.Page(), endAll(c, all[:min(len(all), c.Page())], "its network is removed")
}

// SetMode turns elastic addresses of a network on or off. It refuses to turn them off while one is associated there.
// System addresses then come and go by themselves (KeepSystem).
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
