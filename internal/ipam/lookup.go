package ipam

import (
	"context"
	"fmt"
)

// Subnet returns one subnet, by id, and the revision of its network.
func (s *Service) Subnet(ctx context.Context, id ID) (info SubnetInfo, revision uint64, err error) {
	err = s.look(ctx, func(c *change) error {
		sx, n, err := c.wholeSubnet(id)
		if err != nil {
			return err
		}
		info, revision = s.describe(sx.record.value, sx), n.revision()
		return nil
	})
	return info, revision, err
}

// NetworkOf returns the network of a subnet, by id: what an edit of the subnet names. It asks the index only, because the
// edit looks at the records.
func (s *Service) NetworkOf(subnet ID) (ID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sx := s.ix.subnets[subnet]
	if sx == nil {
		return ID{}, noSubnet(subnet)
	}
	return sx.record.value.Network, nil
}

// Revision returns the revision of a network, by name or id, without all that is in it.
func (s *Service) Revision(ctx context.Context, network string) (revision uint64, err error) {
	err = s.look(ctx, func(c *change) error {
		n, err := c.network(network)
		if err != nil {
			return err
		}
		revision = n.revision()
		return nil
	})
	return revision, err
}

// wholeSubnet finds a subnet of a network that is there as a whole.
func (c *change) wholeSubnet(id ID) (*subnetIndex, *Network, error) {
	sx := c.ix.subnets[id]
	if sx == nil {
		return nil, nil, noSubnet(id)
	}
	n, err := c.network(sx.record.value.Network.String())
	return sx, n, err
}

func noSubnet(id ID) error {
	return &refusal{ErrNotFound, fmt.Sprintf("there is no subnet %s; `berth subnet ls` lists those that are there", id)}
}

// revision is never 0: of a network that nobody has edited it is the time at which it was made.
func (n *Network) revision() uint64 {
	if n.Revision == 0 {
		return uint64(max(n.Created.UnixMicro(), 1))
	}
	return n.Revision
}
