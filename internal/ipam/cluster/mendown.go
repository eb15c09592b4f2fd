package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
)

// putOwn restores what this host had: its attachments, its stand-ins, and then its leases.
func (m *mender) putOwn(ctx context.Context) error {
	if err := m.putHoldsWhere(ctx, func(*ipam.Attachment) bool { return true }); err != nil {
		return err
	}
	if err := m.do(ctx, func(c *ledger.Change, _ *ipam.MendReport) error {
		return allocator.PutStandIns(c, m.mem.standIns)
	}); err != nil {
		return err
	}
	for _, subnet := range sortedIDs(m.mem.leases) {
		own := map[netip.Addr]*ipam.Lease{}
		for addr, l := range m.mem.leases[subnet] {
			if l.Held() && l.Host == m.s.Ledger.Host() && l.Attachment != (ipam.ID{}) {
				own[addr] = l
			}
		}
		for page := range allocator.Pages(own, allocator.ClaimPage) {
			if err := m.do(ctx, func(c *ledger.Change, r *ipam.MendReport) error {
				return m.putLeases(c, r, subnet, page)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// putHolds restores the attachments of existing Docker networks, so that running containers can hold addresses through
// them.
func (m *mender) putHolds(ctx context.Context) error {
	if m.view == nil {
		return nil
	}
	there := map[netip.Prefix]bool{}
	for _, n := range m.view.Networks {
		for _, sub := range n.Subnets {
			there[sub.CIDR] = true
		}
	}
	return m.putHoldsWhere(ctx, func(at *ipam.Attachment) bool { return there[at.CIDR] })
}

func (m *mender) putHoldsWhere(ctx context.Context, wanted func(*ipam.Attachment) bool) error {
	ids := slices.SortedFunc(maps.Keys(m.mem.attachments), func(a, b ipam.ID) int {
		return cmp.Or(m.mem.attachments[a].Created.Compare(m.mem.attachments[b].Created), slices.Compare(a[:], b[:]))
	})
	for _, id := range ids {
		at := m.mem.attachments[id]
		if at.Ended || !wanted(at) {
			continue
		}
		if err := m.do(ctx, func(c *ledger.Change, r *ipam.MendReport) error {
			return m.putHoldBack(c, r, at)
		}); err != nil {
			return err
		}
	}
	return nil
}

// putHoldBack restores one attachment, with its subnet if that is gone.
func (m *mender) putHoldBack(c *ledger.Change, r *ipam.MendReport, remembered *ipam.Attachment) error {
	at := *remembered
	if c.Index().Attachment(at.ID) == nil {
		r.Pools++
	} else if known, err := c.Attachment(at.ID); err != nil {
		return err
	} else if !known.Ended && c.Index().Subnet(at.Subnet) != nil {
		return nil
	}
	sub, why, err := m.subnetBack(c, at.Subnet)
	if err != nil {
		return err
	}
	if sub == nil {
		r.Pools, r.Problems = 0,
			append(r.Problems, fmt.Sprintf("the Docker network on %s (pool %s) cannot be restored: %s; its "+
				"containers use addresses that Berth does not track: remove and recreate that network", at.CIDR, at.ID,
				why))
		return nil
	}
	at.CIDR = sub.CIDR
	if err := c.SetAttachment(at.ID, &at); err != nil {
		return err
	}
	edited := *sub
	if !slices.Contains(sub.Attachments, at.ID) {
		edited.Attachments = append(slices.Clip(slices.Clone(sub.Attachments)), at.ID)
	}
	edited.Pools = m.poolsBack(c, &edited)
	if _, err := c.Event(&ipam.Event{Verb: ipam.PoolAttached, Space: sub.Space, Subnet: sub.CIDR, Attachment: at.ID,
		Detail: "put back"}); err != nil {
		return err
	}
	return c.SetSubnet(&edited)
}

// poolsBack returns the pools of a subnet, with those that Docker networks added.
func (m *mender) poolsBack(c *ledger.Change, sub *ipam.Subnet) []ipam.Pool {
	n := c.Index().Network(sub.Network)
	known := m.mem.subnets[sub.ID]
	if known == nil || n != nil && n.Planned {
		return sub.Pools
	}
	all := slices.Clone(sub.Pools)
	for _, p := range known.Pools {
		if !slices.ContainsFunc(all, func(other ipam.Pool) bool { return other.Range.Overlaps(p.Range.IPRange) }) {
			all = append(all, p)
		}
	}
	return all
}

// subnetBack returns a subnet of the store. If it is gone, subnetBack restores it as remembered, with its network. If
// something else is in its place, sub is nil and why gives the reason.
func (m *mender) subnetBack(c *ledger.Change, id ipam.ID) (sub *ipam.Subnet, why string, err error) {
	if sx := c.Index().Subnet(id); sx != nil {
		return sx.Record(), "", nil
	}
	known := m.mem.subnets[id]
	if known == nil {
		return nil, "its subnet is not known", nil
	}
	other, err := c.Overlapping(known.Space, known.CIDR, ipam.ID{})
	if err != nil {
		return nil, "", err
	}
	if other != nil {
		return nil, fmt.Sprintf("the subnet %s of network %s was created in its place", other.CIDR,
			c.NetworkName(other.Network)), nil
	}
	if c.Index().Network(known.Network) == nil {
		n := m.mem.networks[known.Network]
		if n == nil {
			return nil, "its network is not known", nil
		}
		if err := m.networkBack(c, n); err != nil {
			return nil, "", err
		}
	}
	again := *known
	again.Attachments = []ipam.ID{}
	if err := c.EnsureSpace(again.Space); err != nil {
		return nil, "", err
	}
	return &again, "", c.SetSubnet(&again)
}

// networkBack restores a network. It gets another name if another network has its name by now.
func (m *mender) networkBack(c *ledger.Change, n *ipam.Network) error {
	again := *n
	if other := c.Index().NetworkNamed(n.Name); other != (ipam.ID{}) && other != n.ID {
		again.Name = n.Name + "-" + n.ID.Short()
	}
	return c.SetNetwork(n.ID, &again)
}

// putLeases restores leases of one subnet.
func (m *mender) putLeases(c *ledger.Change, r *ipam.MendReport, subnet ipam.ID,
	page map[netip.Addr]*ipam.Lease) error {
	sx := c.Index().Subnet(subnet)
	if sx == nil {
		return nil // reported with its attachment
	}
	sub := sx.Record()
	for _, addr := range allocator.SortedAddrs(page) {
		l := page[addr]
		if c.Index().Attachment(l.Attachment) == nil || !sx.Usable().Contains(addr) {
			continue
		}
		held, err := c.Lease(sub.ID, addr)
		if err == nil {
			err = m.putLease(c, r, sub, l, held)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *mender) putLease(c *ledger.Change, r *ipam.MendReport, sub *ipam.Subnet, l, held *ipam.Lease) error {
	again := *l
	again.Reservation = held.Reserved()
	switch {
	case held.Held() && held.ID == l.ID:
		if held.Kind == again.Kind && held.MAC == again.MAC && held.Name == again.Name &&
			held.Attachment == again.Attachment && held.Guessed == again.Guessed {
			return nil
		}
		return c.SetLease(sub.ID, l.Address, held, &again)
	case held.Held() && held.Host == c.Host() && held.Attachment != (ipam.ID{}) && held.ID > l.ID:
		return nil // it was taken after the remembered one
	case held.Held() && (held.Host != c.Host() || held.Attachment == (ipam.ID{})):
		return m.collide(c, r, sub, l, held)
	}
	verb := ipam.LeaseTaken
	if l.Kind == ipam.Headroom {
		verb = ipam.HeadroomClaimed
		r.Headroom++
	} else {
		r.Leases++
	}
	if _, err := c.Event(l.Event(verb, sub, "put back")); err != nil {
		return err
	}
	return c.SetLease(sub.ID, l.Address, held, &again)
}

// endOwn ends what the store still has of this host although it had ended: records that are older than what is
// remembered, and not remembered. It keeps what the engine shows running.
func (m *mender) endOwn(ctx context.Context) error {
	for _, id := range m.holdsEnded() {
		if err := m.s.ReleasePool(ctx, id); err != nil {
			return err
		}
		m.report.Ended++
	}
	ended, err := m.leasesEnded(ctx)
	if err != nil {
		return err
	}
	for _, subnet := range sortedIDs(ended) {
		for page := range allocator.Pages(ended[subnet], allocator.ClaimPage) {
			if err := m.do(ctx, func(c *ledger.Change, r *ipam.MendReport) error {
				return m.endLeases(c, r, subnet, page)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// holdsEnded lists the attachments of this host that had ended.
func (m *mender) holdsEnded() []ipam.ID {
	return ledger.Ask(m.s.Ledger, func(ix *ledger.Index) (all []ipam.ID) {
		for _, id := range edit.HeldBy(ix, m.s.Ledger.Host()) {
			known := m.mem.attachments[id]
			if known == nil && ix.Attachment(id).Created.After(ipam.EventTime(m.mem.head.Plan)) || known != nil &&
				!known.Ended {
				continue
			}
			sx := ix.Subnet(ix.Attachment(id).Subnet)
			if sx == nil || !m.anyRuns(sx.Record()) {
				all = append(all, id)
			}
		}
		return all
	})
}

// anyRuns reports whether a container runs on a subnet here.
func (m *mender) anyRuns(sub *ipam.Subnet) bool {
	for addr, seen := range m.running {
		if m.runs(sub, addr) && slices.ContainsFunc(seen, func(s sighting) bool { return !s.gateway }) {
			return true
		}
	}
	return false
}

// leasesEnded lists the leases of this host that had ended, by subnet.
func (m *mender) leasesEnded(ctx context.Context) (map[ipam.ID]map[netip.Addr]uint64, error) {
	all := map[ipam.ID]map[netip.Addr]uint64{}
	err := m.s.Ledger.Look(ctx, func(c *ledger.Change) error {
		for id, sx := range c.Index().Subnets() {
			err := ledger.EachLease(c.Tx(), id, func(l *ipam.Lease) error {
				if !l.Held() || l.Host != m.s.Ledger.Host() || l.Attachment == (ipam.ID{}) || l.ID > m.mem.head.Last {
					return nil
				}
				if known := m.mem.leases[id][l.Address]; known.Held() && known.ID == l.ID ||
					m.runs(sx.Record(), l.Address) {
					return nil
				}
				if all[id] == nil {
					all[id] = map[netip.Addr]uint64{}
				}
				all[id][l.Address] = l.ID
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

func (m *mender) endLeases(c *ledger.Change, r *ipam.MendReport, subnet ipam.ID, page map[netip.Addr]uint64) error {
	sx := c.Index().Subnet(subnet)
	if sx == nil {
		return nil
	}
	sub := sx.Record()
	for _, addr := range allocator.SortedAddrs(page) {
		held, err := c.Lease(subnet, addr)
		if err != nil {
			return err
		}
		if !held.Held() || held.ID != page[addr] || held.Host != c.Host() {
			continue
		}
		r.Ended++
		if held.Kind == ipam.Gateway {
			err = c.SetLease(subnet, addr, held, held.Unheld())
		} else {
			err = allocator.Release(c, sub, held)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func sortedIDs[V any](of map[ipam.ID]V) []ipam.ID {
	return slices.SortedFunc(maps.Keys(of), func(a, b ipam.ID) int { return slices.Compare(a[:], b[:]) })
}
