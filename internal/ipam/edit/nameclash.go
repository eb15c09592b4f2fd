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
		how, other = "would be the name of", before
	}
	if other == "" {
		if names.owner == nil {
			names.owner = map[string]string{}
		}
		names.owner[name] = owner
		return nil
	}
	return ipam.Refuse(ipam.ErrInUse, "%s %s %s on network %s, and %s would get the same name: DNS ignores case, and "+
		"uses a hyphen for anything but letters and digits; rename one of them", name, how, other, n.Name, owner)
}
