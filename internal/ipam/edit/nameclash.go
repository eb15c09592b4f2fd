package edit

import (
	"berth/internal/ipam"
)

// newNames are the names in DNS that a request gives, with whose they are. The zero newNames has none.
type newNames struct{ owner map[string]string }

// nameClash refuses an owner on a network whose name in DNS another one has already, or is given by the same request, where
// names are answered. What is there already is asked of memory, which may be a moment behind: of two requests that come
// at once each may be taken, and the names tell them apart then.
func (c *run) nameClash(n *ipam.Network, owner string) error {
	known, names := c.Known(), &c.names
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
