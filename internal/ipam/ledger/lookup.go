package ledger

import (
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"berth/internal/ipam"
	"berth/store"
)

// findNetwork reads the network of a name, an id or an id's first eight digits. It returns nil if there is none. If
// Docker uses a name for several, meant selects one by its subnets (ipam.Meant).
func (c *Change) findNetwork(ref string, meant []func(*ipam.Subnet) bool) (*ipam.Network, error) {
	id, err := c.networkID(ref, meant)
	if err != nil || id == (ipam.ID{}) {
		return nil, err
	}
	return c.ReadNetwork(id)
}

// ReadNetwork reads the network of an id. It returns nil if there is none.
func (c *Change) ReadNetwork(id ipam.ID) (*ipam.Network, error) {
	c.key = NetworkKey(c.key[:0], id)
	return ReadKnown(c.tx, c.key, c.index.networks[id].Cached(), "network", id)
}

// ReadSubnet reads the record of a subnet that is in the index.
func (c *Change) ReadSubnet(known *ipam.Subnet) (*ipam.Subnet, error) {
	c.key = SubnetKey(c.key[:0], known.Space, known.CIDR)
	sub, err := ReadKnown(c.tx, c.key, c.index.subnets[known.ID].record, "subnet", known.CIDR)
	if err == nil && sub == nil {
		err = ipam.DecodeJSON("subnet "+known.CIDR.String(), nil, sub) // which refuses no bytes
	}
	return sub, err
}

func (c *Change) networkID(ref string, meant []func(*ipam.Subnet) bool) (ipam.ID, error) {
	if id, err := ipam.ParseID(ref); err == nil {
		return id, nil // no name has the form of an id
	}
	raw, err := c.tx.Get(NameKey(nil, ref))
	if err != nil {
		return ipam.ID{}, err
	}
	if len(raw) == len(ipam.ID{}) {
		return ipam.ID(raw), nil
	}
	if id := c.index.shortNetwork(ref); id != (ipam.ID{}) {
		return id, nil
	}
	all := c.index.dockerNetworks(&c.known, ref)
	if fit := c.index.having(all, meant); len(fit) == 1 {
		return fit[0], nil
	}
	return ipam.ID{}, c.index.several(ref, all)
}

// shortNetwork returns the network whose id begins with these eight digits. It returns the zero ID if none or several
// do.
func (ix *Index) shortNetwork(ref string) (found ipam.ID) {
	if len(ref) != 8 || strings.Trim(ref, "0123456789abcdef") != "" {
		return ipam.ID{}
	}
	for id := range ix.networks {
		if id.Short() == ref && found != (ipam.ID{}) {
			return ipam.ID{}
		}
		if id.Short() == ref {
			found = id
		}
	}
	return found
}

// Network reads the network that ref names. It is refused if it is missing, or being removed, imported or copied.
func (c *Change) Network(ref string) (*ipam.Network, error) { return c.NetworkOf(ref, nil) }

// NetworkOf is Network for an edit. If ref names several networks, the subnets that the edit names select one. e may be
// nil.
func (c *Change) NetworkOf(ref string, e ipam.Edit) (*ipam.Network, error) {
	n, err := c.findNetwork(ref, ipam.Meant(e))
	switch {
	case err != nil:
		return nil, err
	case n == nil || n.Stage == ipam.Leaving:
		if now := c.index.Network(c.index.FormerlyNamed(ref)); now != nil {
			return nil, ipam.Refuse(ipam.ErrNotFound, "there is no network %q: it was renamed to %s", ref, now.Name)
		}
		return nil, ipam.Refuse(ipam.ErrNotFound, "there is no network %q", ref).Advise(ipam.DoListNetworks)
	case n.Stage == ipam.Arriving:
		return nil, ipam.Refuse(ipam.ErrInUse, "network %s is being imported; try again after the import", n.Name)
	case n.Stage == ipam.Moving:
		return nil, BeingCopied(n)
	}
	return n, nil
}

// NetworkAsked is Network for a request of Docker, which may also use a former name that no other network has.
func (c *Change) NetworkAsked(ref string) (*ipam.Network, error) {
	id := c.index.FormerlyNamed(ref)
	if id == (ipam.ID{}) {
		return c.Network(ref)
	}
	taken, err := c.tx.Get(NameKey(nil, ref))
	if err != nil {
		return nil, err
	}
	n, err := c.ReadNetwork(id)
	if err != nil {
		return nil, err
	}
	if taken == nil && n != nil && slices.Contains(n.FormerNames, ref) {
		ref = id.String()
	}
	return c.Network(ref)
}

// FindSubnet returns the subnet of exactly this CIDR, or nil if the CIDR is free. If it overlaps another subnet, the
// error is ipam.ErrOverlap.
func (c *Change) FindSubnet(space string, cidr netip.Prefix) (*ipam.Subnet, error) {
	sub, err := c.Overlapping(space, cidr, ipam.ID{})
	switch {
	case err != nil:
		return nil, err
	case sub == nil:
		return nil, c.NoElasticIn(cidr)
	case sub.CIDR == cidr:
		return sub, nil
	}
	return nil, c.OverlapError(cidr, sub, "choose another subnet, or another space by --ipam-opt space=NAME")
}

// NoElasticIn refuses a new subnet that overlaps a range of elastic addresses. Its guests would take elastic addresses
// for neighbours on the link.
func (c *Change) NoElasticIn(cidr netip.Prefix) error {
	for _, r := range c.index.AllElasticRanges() {
		if r.Range.Overlaps(netipx.RangeOfPrefix(cidr)) {
			return ipam.RefuseAs(ipam.ElasticRangeOverlaps, ipam.ErrOverlap,
				"the subnet %s overlaps the elastic range %s; choose another subnet", cidr, r.Range).
				Advise(ipam.DoListElasticRanges)
		}
	}
	return nil
}

// OverlapError is the refusal of a subnet that overlaps another. todo tells the reader what to do.
func (c *Change) OverlapError(cidr netip.Prefix, other *ipam.Subnet, todo string) error {
	return ipam.Refuse(ipam.ErrOverlap, "the subnet %s overlaps %s, which space %s has already (network %s); %s",
		cidr, other.CIDR, other.Space, c.NetworkName(other.Network), todo)
}

// NetworkName is the shown name of a network, or the beginning of its id if it is unknown.
func (c *Change) NetworkName(id ipam.ID) string {
	if n := c.index.Network(id); n != nil {
		return c.ShownName(n)
	}
	return id.Short()
}

// NameSpace creates a space on its first use, for a person who named it.
func (c *Change) NameSpace(name string) error {
	raw, err := c.tx.Get(spaceKey(nil, name))
	if err != nil || raw != nil {
		return err
	}
	if err := ipam.CheckNewName("space", name); err != nil {
		return err
	}
	return c.EnsureSpace(name)
}

// EnsureSpace creates a space on its first use. The name may be older than today's rule for names.
func (c *Change) EnsureSpace(name string) error {
	raw, err := c.tx.Get(spaceKey(nil, name))
	if err != nil || raw != nil {
		return err
	}
	if _, err := c.PutJSON(spaceKey(nil, name), &ipam.Space{Name: name, Created: c.now}); err != nil {
		return err
	}
	c.index.space(name)
	_, err = c.Event(&ipam.Event{Verb: ipam.SpaceCreated, Space: name})
	return err
}

// Overlapping reads the subnet of a space that overlaps cidr and is not self, or nil. Subnets of a space are disjoint.
// So only the last one that begins before the end of cidr can overlap, or the one before it if the last is self.
func (c *Change) Overlapping(space string, cidr netip.Prefix, self ipam.ID) (found *ipam.Subnet, err error) {
	family := subnetFamily(nil, space, cidr.Addr().Is6())
	last := ipam.AppendAddr(slices.Clone(family), ipam.LastAddr(cidr))
	near := store.Range{From: family, To: append(last, 0), Reverse: true, Limit: 2}
	for one, err := range EachJSON[ipam.Subnet](c.tx, near, "a subnet of space "+space) {
		if err != nil {
			return nil, err
		}
		if sub := one.Value; sub.ID != self {
			if sub.CIDR.Overlaps(cidr) {
				found = sub
			}
			break
		}
	}
	return found, nil
}

// ReadIndex builds the index of a subnet from its records. outside lists the memories that lie outside of the subnet.
func (c *Change) ReadIndex(sub *ipam.Subnet) (sx *SubnetIndex, outside []netip.Addr, err error) {
	sx = newSubnetIndex(sub.CIDR, &c.index.ends)
	var leases []*ipam.Lease
	err = EachLease(c.tx, sub.ID, func(l *ipam.Lease) error {
		if sx.usable.Contains(l.Address) {
			leases = append(leases, l)
		} else {
			outside = append(outside, l.Address)
		}
		return nil
	})
	sx.load(leases)
	return sx, outside, err
}

// Stray is the memory of an address that is outside of its subnet since the subnet was made smaller. It has no effect.
type Stray struct {
	Subnet ipam.ID
	Addr   netip.Addr
}
