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

// ToProbe tells which addresses of each probed network are given next to whom nothing in it belongs, of those that
// nobody ever had: at most so many of each family. One that was given back has no stranger's answer to fear that its
// holder had not met.
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
				if !sx.Record().FromDHCP() { // the server looks for itself who is there (RFC 2131, 3.1)
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

// unused are the addresses that targets give next and that nobody ever had.
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
