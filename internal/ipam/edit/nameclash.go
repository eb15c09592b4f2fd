package edit

import (
	"berth/internal/ipam"
)

// newNames maps the DNS names that a request assigns to their owners.
type newNames struct{ owner map[string]string }

// nameClash refuses an owner whose DNS name on a network belongs to another owner, or to one in the same request. It
// applies only if Berth answers DNS. Existing names come from memory, which may lag. Two simultaneous requests may then
// both succeed, and DNS distinguishes their names.
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
