package view

import (
	"context"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Subnet returns a subnet, by id, and the revision of its network.
func (s Views) Subnet(ctx context.Context, id ipam.ID) (info ipam.SubnetInfo, revision uint64, err error) {
	info, err = inSubnet(ctx, s, id, func(l *ledger.Ledger, c *ledger.Change, sx *ledger.SubnetIndex,
		n *ipam.Network) (ipam.SubnetInfo, error) {
		revision = n.LastRevision()
		return describeUse(l, c.Index(), sx.Record(), sx), nil
	})
	return info, revision, err
}

// NetworkOf returns the network of a subnet, by id, which an edit of the subnet names. It reads only the index, because
// the edit reads the records.
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

// Revision returns the revision of a network, by name or id.
func (s Views) Revision(ctx context.Context, network string) (uint64, error) {
	return inNetwork(ctx, s, network, func(_ *ledger.Ledger, _ *ledger.Change, n *ipam.Network) (uint64, error) {
		return n.LastRevision(), nil
	})
}

func noSubnet(id ipam.ID) error {
	return ipam.Refuse(ipam.ErrNotFound, "there is no subnet %s", id).Advise(ipam.DoListSubnets)
}
