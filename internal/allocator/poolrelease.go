package allocator

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// ReleasePool is Allocator.ReleasePool (waiting.go) on one ledger. It never waits.
func ReleasePool(ctx context.Context, s *ledger.Ledger, pool ipam.ID) error {
	return end(ctx, s, pool, func(*ledger.Change, *ipam.Attachment) (bool, error) { return true, nil })
}

// endUnnetworked ends this host's attachments to the requested subnet whose Docker network was removed unseen, before
// another Docker network attaches to it.
func (s Allocator) endUnnetworked(ctx context.Context, req *ipam.PoolRequest) error {
	home := s.homes.Own
	if home.Known().Unnetworked == nil || req.Swarm {
		return nil
	}
	gone := func(ix *ledger.Index, at *ipam.Attachment) bool {
		sx := ix.Subnet(at.Subnet)
		if at.Ended || at.Swarm || at.Host != home.Host() || sx == nil {
			return false
		}
		n := ix.Network(sx.Record().Network)
		wanted := at.Space == req.Space && at.CIDR == req.CIDR ||
			req.Network != "" && n != nil && (n.Name == req.Network || n.ID.String() == req.Network ||
				ix.Asked(req.Network) == n.ID)
		return wanted && home.Known().Unnetworked(at.Space, at.CIDR, at.Created)
	}
	all := ledger.Ask(home, func(ix *ledger.Index) (all []ipam.ID) {
		for id, at := range ix.Attachments() {
			if gone(ix, at) {
				all = append(all, id)
			}
		}
		return all
	})
	for _, id := range all {
		err := end(ctx, home, id, func(c *ledger.Change, at *ipam.Attachment) (bool, error) {
			return gone(c.Index(), at), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// end ends an attachment if a condition holds in the same transaction. If a failure interrupts it after that, a
// repeated call, Run or the next Open completes it.
func end(ctx context.Context, s *ledger.Ledger, pool ipam.ID,
	condition func(*ledger.Change, *ipam.Attachment) (bool, error)) error {
	var gone *ipam.Subnet
	var older []ipam.ID
	var ended, last bool
	err := s.Update(ctx, func(c *ledger.Change) error {
		at, err := c.Attachment(pool)
		if err != nil {
			return err
		}
		gone, older, ended, last = &ipam.Subnet{ID: at.Subnet, Space: at.Space, CIDR: at.CIDR}, nil, at.Ended, false
		for id, other := range c.Index().Attachments() {
			if other.Successor == pool {
				older = append(older, id)
			}
		}
		if ended {
			return nil
		}
		if ended, err = condition(c, at); err != nil || !ended {
			return err
		}
		found, err := c.SubnetOf(at)
		if err != nil {
			return err
		}
		last, err = Detach(c, at, found)
		return err
	})
	switch {
	case errors.Is(err, ipam.ErrNotFound) || err == nil && !ended:
		return nil
	case err != nil:
		return err
	case last:
		return Sweep(ctx, s, gone)
	}
	if err := releaseLeases(ctx, s, pool, gone.ID); err != nil {
		return err
	}
	return ReleasePredecessors(ctx, s, pool, older)
}

// Detach removes the attachment from its subnet, and with the last attachment the subnet. Leases remain for now. Those
// of a removed subnet have no meaning; those of an Ended attachment are released in pages.
func Detach(c *ledger.Change, at *ipam.Attachment, found *ipam.Subnet) (last bool, err error) {
	edited := *found
	edited.Attachments = ipam.Without(found.Attachments, at.ID)
	if _, err := c.Event(&ipam.Event{Verb: ipam.PoolReleased, Space: at.Space, Subnet: at.CIDR,
		Attachment: at.ID}); err != nil {
		return false, err
	}
	n := c.Index().Network(found.Network)
	planned := n != nil && n.Planned
	switch {
	case planned: // the pools of a planned subnet do not belong to attachments
	case len(edited.Attachments) == 0:
		return true, endSubnet(c, at, found)
	default:
		if edited.Pools, err = poolsLeft(c, &edited, at); err != nil {
			return false, err
		}
		if err := dropGatewayOf(c, at, &edited, n); err != nil {
			return false, err
		}
	}
	ended := *at
	ended.Ended = true
	if err := c.SetAttachment(at.ID, &ended); err != nil {
		return false, err
	}
	return false, c.SetSubnet(&edited)
}

// poolsLeft returns the subnet's pools without that of at, unless another attachment has the same.
func poolsLeft(c *ledger.Change, sub *ipam.Subnet, at *ipam.Attachment) ([]ipam.Pool, error) {
	gone := at.Pool
	if gone.IsZero() {
		gone = WholeRange(sub.CIDR)
	}
	for _, id := range sub.Attachments {
		other, err := c.Attachment(id)
		if err != nil {
			return nil, err
		}
		if other.Pool == at.Pool {
			return sub.Pools, nil
		}
	}
	return slices.DeleteFunc(slices.Clone(sub.Pools), func(p ipam.Pool) bool { return p.Range == gone }), nil
}

// endSubnet removes the subnet and its network together with the last attachment.
func endSubnet(c *ledger.Change, at *ipam.Attachment, sub *ipam.Subnet) error {
	if err := c.SetAttachment(at.ID, nil); err != nil {
		return err
	}
	if _, err := c.Event(&ipam.Event{Verb: ipam.SubnetRemoved, Space: sub.Space, Subnet: sub.CIDR,
		Name: c.NetworkName(sub.Network)}); err != nil {
		return err
	}
	if err := ReturnGone(c, sub); err != nil {
		return err
	}
	if err := c.RemoveSubnet(sub); err != nil {
		return err
	}
	return c.SetNetwork(sub.Network, nil)
}

// releaseLeases turns all leases of an Ended attachment into memories, and then removes the attachment.
func releaseLeases(ctx context.Context, s *ledger.Ledger, pool, subnet ipam.ID) error {
	err := eachPage(ctx, s, subnet, func(c *ledger.Change, leases []*ipam.Lease) (more bool, err error) {
		at, err := c.Attachment(pool)
		if errors.Is(err, ipam.ErrNotFound) || err == nil && idle(c, at) {
			return false, nil // nothing is left of it, or its subnet ended and took the leases with it
		}
		var sub *ipam.Subnet
		if err == nil {
			sub, err = c.SubnetOf(at)
		}
		for _, held := range leases {
			switch {
			case err != nil:
				return false, err
			case !held.Held() || held.Attachment != pool:
			case held.Kind == ipam.Gateway:
				err = c.SetLease(sub.ID, held.Address, held, held.Unheld())
			default:
				err = Release(c, sub, held)
			}
		}
		return true, err
	})
	if err != nil {
		return err
	}
	return s.Update(ctx, func(c *ledger.Change) error { return c.SetAttachment(pool, nil) })
}

// SubnetGone is the reason recorded when Sweep ends a reservation.
const SubnetGone = "its subnet is gone"

// Sweep ends the leases and reservations of a removed subnet. After a crash the next Open completes it.
func Sweep(ctx context.Context, s *ledger.Ledger, gone *ipam.Subnet) error {
	return eachPage(ctx, s, gone.ID, func(c *ledger.Change, leases []*ipam.Lease) (more bool, err error) {
		for _, l := range leases {
			if l.Reservation != nil {
				err = ledger.EndReservation(c, ledger.Picked{Sub: gone, Addr: l.Address, Record: l}, SubnetGone)
				l = l.WithReservation(l.Address, nil)
			}
			switch {
			case err != nil:
				return false, err
			case l.Held() && l.Kind != ipam.Gateway:
				err = Release(c, gone, l)
			case l != nil:
				err = c.SetLease(gone.ID, l.Address, l, nil)
			}
		}
		return true, err
	})
}

// eachPage runs fn for each page of a subnet's leases, in a transaction of its own, until fn reports that no more pages
// matter.
func eachPage(ctx context.Context, s *ledger.Ledger, subnet ipam.ID,
	fn func(*ledger.Change, []*ipam.Lease) (more bool, err error)) error {
	page := ledger.LeasesOf(subnet)
	page.Limit = s.Page()
	for page.From != nil {
		var next []byte
		err := s.Update(ctx, func(c *ledger.Change) error {
			leases, after, err := ledger.ReadPage(c.Tx(), page)
			if err != nil {
				return err
			}
			more, err := fn(c, leases)
			if next = nil; more {
				next = after
			}
			return err
		})
		if err != nil {
			return err
		}
		page.From = next
	}
	return nil
}

// ReleasePredecessors ends the idle attachments whose successor has ended, and removes the successor of those in use.
func ReleasePredecessors(ctx context.Context, s *ledger.Ledger, ended ipam.ID, attachments []ipam.ID) error {
	for _, id := range attachments {
		err := end(ctx, s, id, func(c *ledger.Change, at *ipam.Attachment) (bool, error) {
			if at.Successor != ended {
				return false, nil
			}
			if at.TookOver || idle(c, at) {
				return true, nil
			}
			return false, setSuccession(c, id, ipam.Succession{})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// dropGatewayOf removes the gateway of a subnet when the only attachment that requested it ends and others remain. For
// example, a Docker network whose creation failed must not leave a gateway that others are refused.
func dropGatewayOf(c *ledger.Change, at *ipam.Attachment, sub *ipam.Subnet, n *ipam.Network) error {
	if sub.GatewayBy != at.ID || !sub.Gateway.IsValid() {
		return nil
	}
	p := &ledger.NetworkPlan{Change: c, N: n}
	e := &ipam.Event{Verb: ipam.SubnetModified, Subnet: sub.CIDR, Attachment: at.ID,
		Detail: "the Docker network that asked for the gateway is gone"}
	was, is := ipam.SubnetFacts{Gateway: sub.Gateway.String()}, ipam.SubnetFacts{Gateway: "none"}
	if _, err := p.Tell(e, was, is); err != nil {
		return err
	}
	if err := p.DropGateway(sub); err != nil {
		return err
	}
	sub.Gateway, sub.GatewayBy = netip.Addr{}, ipam.ID{}
	return nil
}

// idle reports whether at has no live lease.
func idle(c *ledger.Change, at *ipam.Attachment) bool {
	sx := c.Index().Subnet(at.Subnet)
	return sx == nil || sx.Live(at.ID) == 0
}
