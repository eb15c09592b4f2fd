package view

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// ToProbe returns, for each probed network, the next addresses that an endpoint without an owner would get, if nobody
// has had them before. It returns at most most of each family. A released address needs no probe: a stranger that uses
// it would have disturbed its last holder already.
func (s Views) ToProbe(ctx context.Context, most int) ([]ipam.Unprobed, error) {
	byName := func(a, b ipam.Unprobed) int { return strings.Compare(a.Name, b.Name) }
	return ledger.Merged(s.homes, byName, func(l *ledger.Ledger) ([]ipam.Unprobed, error) {
		all, err := toProbe(ctx, l, most)
		slices.SortFunc(all, byName)
		return all, err
	})
}

func toProbe(ctx context.Context, s *ledger.Ledger, most int) ([]ipam.Unprobed, error) {
	return ledger.Look(ctx, s, func(c *ledger.Change) (all []ipam.Unprobed, err error) {
		for id, nx := range c.Index().Networks() {
			n := nx.Record()
			parent := ipam.LANTerms{DHCPParent: n.Probe}.ParentOn(c.Host())
			if parent == "" || n.Stage != "" || n.CheckAutomatic() != nil {
				continue
			}
			var subnets []*ledger.SubnetIndex
			for _, sub := range nx.Subnets() {
				sx := c.Index().Subnet(sub)
				// the server checks by itself whether the address is in use (RFC 2131, 3.1)
				if !sx.Record().FromDHCP() {
					subnets = append(subnets, sx)
				}
			}
			one := ipam.Unprobed{Network: id, Name: c.ShownName(n), Parent: parent}
			for _, six := range []bool{false, true} {
				one.Addresses = append(one.Addresses, unused(c, targets(c, subnets, "", six), most)...)
			}
			all = append(all, one)
		}
		return all, nil
	})
}

// unused returns the next addresses of the targets that nobody has had before.
func unused(c *ledger.Change, from []*allocator.Target, most int) (all []netip.Addr) {
	slot := 0
	if h := c.Index().Host(c.Host()); h != nil {
		slot = h.Slot
	}
	for _, t := range from {
		kept := t.Kept
		for _, p := range t.Pools() {
			for len(all) < most {
				addr, ok := t.Sx.NeverUsed(p, slot, kept)
				if !ok {
					break
				}
				all, kept = append(all, addr), kept.And(addr)
			}
		}
	}
	return all
}
