package allocator

import (
	"context"
	"net/netip"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// RequestAddress leases an address and returns it with its subnet's prefix length (LN-3). The lease is on disk by then.
// An address of one endpoint is never given to a second, whatever MAC or name that sends. An endpoint that lost its
// address gets it again at its next start (Target.Repeats). A preferred address is given or refused with the reason
// (LN-9).
func (s Allocator) RequestAddress(ctx context.Context, req ipam.AddressRequest) (netip.Prefix, error) {
	given, _, err := RequestAddress(ctx, s.homes.Own, req)
	if err != nil {
		LeaveBehind(ctx, s.homes.Own, req)
	}
	return given, err
}

// RequestAddress is Allocator.RequestAddress on one ledger. It also returns the lease that was made, even with
// store.ErrUnknown; nil if there was none.
func RequestAddress(ctx context.Context, s *ledger.Ledger, req ipam.AddressRequest) (given netip.Prefix,
	made *ipam.Lease, err error) {
	if fromDHCP(s, &req) {
		return requestDHCP(ctx, s, req)
	}
	Ask(ctx, s, &req)
	err = Update(ctx, s, func(c *ledger.Change) error {
		made = nil
		if err := c.MayTake(); err != nil {
			return err
		}
		t, err := OpenTarget(c, req.Pool)
		if err != nil {
			return err
		}
		if err := t.Revive(); err != nil {
			return err
		}
		var addr netip.Addr
		switch {
		case req.Gateway:
			addr, err = t.TakeGateway(req)
		case req.Preferred.IsValid():
			addr, err = t.TakePreferred(req)
		default:
			addr, err = t.TakeAny(req)
		}
		given, made = netip.PrefixFrom(addr, t.Sub.CIDR.Bits()), t.Made
		return err
	})
	if err != nil {
		given = netip.Prefix{}
	} else if made != nil && made.Guessed {
		s.CountGuesses(1, 0)
	}
	return given, made, err
}

// ReleaseAddress releases an address (LN-4). It acts only on a lease taken through this attachment. It ignores a free
// address, another attachment's, the subnet's gateway, and a removed pool, because the engine could not handle an
// error. The address is remembered for its last holder.
func (s Allocator) ReleaseAddress(ctx context.Context, pool ipam.ID, addr netip.Addr) error {
	_, err := ReleaseAddress(ctx, s.homes.Own, pool, addr)
	return err
}

// ReleaseAddress is Allocator.ReleaseAddress on one ledger. It also returns the id of the lease that it ended, even
// with store.ErrUnknown; 0 if there was none.
func ReleaseAddress(ctx context.Context, s *ledger.Ledger, pool ipam.ID, addr netip.Addr) (ended uint64, err error) {
	err = s.Update(ctx, func(c *ledger.Change) (err error) {
		ended, err = GiveFree(c, pool, addr, 0)
		return err
	})
	return ended, err
}
