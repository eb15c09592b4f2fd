package edit

import (
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// NewNames are the names in DNS that a request gives, with whose they are. The zero NewNames has none.
type NewNames struct{ owner map[string]string }

// Clash refuses an owner on a network whose name in DNS another one has already, or is given by the same request, where
// names are answered. What is there already is asked of memory, which may be a moment behind: of two requests that come
// at once each may be taken, and the names tell them apart then.
func (names *NewNames) Clash(known *ipam.Known, n *ipam.Network, owner string) error {
	if known.NameHolder == nil || n == nil {
		return nil
	}
	name, other := known.NameHolder(n.Space, n.Name, owner)
	if name == "" {
		return nil
	}
	how := "is the name of"
	if before := names.owner[name]; other == "" && before != "" && before != owner {
		how, other = "is to be the name of", before
	}
	if other == "" {
		if names.owner == nil {
			names.owner = map[string]string{}
		}
		names.owner[name] = owner
		return nil
	}
	return ipam.Refuse(ipam.ErrInUse,
		"%s %s %s on network %s, and that of %s would be the same: DNS knows no difference between capital "+
			"and small letters, and has a hyphen for all that is no letter and no digit; take another name for one of them",
		name, how, other, n.Name, owner)
}

// nameClash does the same for an edit of a change, which may have several.
func nameClash(c *ledger.Change, n *ipam.Network, owner string) error {
	return ledger.StateOf[NewNames](c).Clash(c.Known(), n, owner)
}
