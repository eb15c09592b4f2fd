package view

import (
	"context"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Views reads the current state and the history in all homes of a host's records.
type Views struct{ homes ledger.Homes }

// Of returns the views of the homes of a host's records.
func Of(homes ledger.Homes) Views { return Views{homes} }

// inNetwork calls fn with a network, by name or id, in a transaction of its home.
func inNetwork[T any](ctx context.Context, s Views, ref string,
	fn func(*ledger.Ledger, *ledger.Change, *ipam.Network) (T, error)) (found T, err error) {
	l, err := s.homes.With(ref)
	if err != nil {
		return found, err
	}
	return ledger.Look(ctx, l, func(c *ledger.Change) (found T, err error) {
		n, err := c.Network(ref)
		if err != nil {
			return found, err
		}
		return fn(l, c, n)
	})
}

// inSubnet calls fn with a subnet, by id, and its network, in a transaction of its home. It refuses a network that is
// not complete.
func inSubnet[T any](ctx context.Context, s Views, id ipam.ID,
	fn func(*ledger.Ledger, *ledger.Change, *ledger.SubnetIndex, *ipam.Network) (T, error)) (found T, err error) {
	l, err := s.homes.Having(id)
	if err != nil {
		return found, err
	}
	return ledger.Look(ctx, l, func(c *ledger.Change) (found T, err error) {
		sx := c.Index().Subnet(id)
		if sx == nil {
			return found, noSubnet(id)
		}
		n, err := c.Network(sx.Record().Network.String())
		if err != nil {
			return found, err
		}
		return fn(l, c, sx, n)
	})
}
