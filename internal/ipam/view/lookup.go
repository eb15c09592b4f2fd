package view

import (
	"context"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Subnet returns one subnet, by id, and the revision of its network.
func (s Views) Subnet(ctx context.Context, id ipam.ID) (info ipam.SubnetInfo, revision uint64, err error) {
	l, err := s.homes.Having(id)
	if err != nil {
		return info, 0, err
	}
	err = l.Look(ctx, func(c *ledger.Change) error {
		sx, n, err := wholeSubnet(c, id)
		if err != nil {
			return err
		}
		info, revision = describeUse(l, c.Index(), sx.Record(), sx), n.LastRevision()
		return nil
	})
	return info, revision, err
}

// NetworkOf returns the network of a subnet, by id: what an edit of the subnet names. It asks the index only, because
// the edit looks at the records.
func (s Views) NetworkOf(subnet ipam.ID) (ipam.ID, error) {
	l, err := s.homes.Having(subnet)
	if err != nil {
		return ipam.ID{}, err
	}
	known := ledger.Ask(l, func(ix *ledger.Index) *ledger.SubnetIndex { return ix.Subnet(subnet) })
	if known == nil {
		return ipam.ID{}, noSubnet(subnet)
	}
	return known.Record().Network, nil
}

// Revision returns the revision of a network, by name or id, without all that is in it.
func (s Views) Revision(ctx context.Context, network string) (revision uint64, err error) {
	l, err := s.homes.With(network)
	if err != nil {
		return 0, err
	}
	err = l.Look(ctx, func(c *ledger.Change) error {
		n, err := c.Network(network)
		if err != nil {
			return err
		}
		revision = n.LastRevision()
		return nil
	})
	return revision, err
}

// wholeSubnet finds a subnet of a network that is there as a whole.
func wholeSubnet(c *ledger.Change, id ipam.ID) (*ledger.SubnetIndex, *ipam.Network, error) {
	sx := c.Index().Subnet(id)
	if sx == nil {
		return nil, nil, noSubnet(id)
	}
	n, err := c.Network(sx.Record().Network.String())
	return sx, n, err
}

func noSubnet(id ipam.ID) error {
	return ipam.Help(ipam.Refuse(ipam.ErrNotFound, "there is no subnet %s", id), ipam.Advise(ipam.DoListSubnets))
}
