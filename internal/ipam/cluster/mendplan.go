package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
)

// errOutplanned stops a host's restore of the plan because another host that remembers more has begun one.
var errOutplanned = errors.New("another host remembers more of the plan")

// putPlan restores the plan as this host remembers it, unless another host remembers more. The plan has networks with
// subnets, reservations, external addresses and hosts. Later changes stay.
func (m *mender) putPlan(ctx context.Context) error {
	var steps []func(*ledger.Change, *ipam.MendReport) error
	add := func(step func(*ledger.Change, *ipam.MendReport) error) { steps = append(steps, step) }
	for _, space := range m.mem.spaces {
		add(func(c *ledger.Change, _ *ipam.MendReport) error { return c.EnsureSpace(space) })
	}
	add(m.putSettings)
	for _, name := range sortedNames(m.mem.hosts) {
		add(func(c *ledger.Change, _ *ipam.MendReport) error { return m.putOther(c, m.mem.hosts[name]) })
	}
	m.s.Ledger.Read(func(ix *ledger.Index) {
		for id, nx := range ix.Networks() {
			if n := nx.Record(); n != nil && n.Planned && m.mem.networks[id] == nil &&
				n.LastRevision() <= m.mem.head.Plan {
				add(func(c *ledger.Change, r *ipam.MendReport) error { return m.dropNetwork(c, r, id) })
			}
		}
	})
	for _, id := range sortedIDs(m.mem.networks) {
		if n := m.mem.networks[id]; n.Planned && n.Stage == "" {
			add(func(c *ledger.Change, r *ipam.MendReport) error { return m.putNetwork(c, r, n) })
		}
	}
	for _, step := range steps {
		if err := m.doPlan(ctx, step); errors.Is(err, errOutplanned) {
			return nil
		} else if err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{m.putElastic, m.putReserved} {
		if err := step(ctx); errors.Is(err, errOutplanned) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// doPlan is do while this host may restore the plan.
func (m *mender) doPlan(ctx context.Context, fn func(*ledger.Change, *ipam.MendReport) error) error {
	return m.do(ctx, func(c *ledger.Change, r *ipam.MendReport) error {
		if mark := markOf(c.Index()); !mark.open() || mark.Plan.Host != m.s.Ledger.Host() {
			return errOutplanned
		}
		return fn(c, r)
	})
}

// putSettings restores the store's settings, and the owners in dynamic networks.
func (m *mender) putSettings(c *ledger.Change, _ *ipam.MendReport) error {
	for _, key := range sortedNames(m.mem.settings) {
		k := []byte(key)
		switch there, err := c.Tx().Get(k); {
		case err != nil:
			return err
		case there != nil || key == string(ledger.PlanKey()) || key == string(ledger.FormatKey()):
			continue
		}
		if err := c.Tx().Put(k, m.mem.settings[key]); err != nil {
			return err
		}
		if k[0] == ledger.DynamicKeys {
			c.FollowOwner(k, m.mem.settings[key])
		}
	}
	return nil
}

// putOther restores the record of another host. It removes a host again that was removed.
func (m *mender) putOther(c *ledger.Change, h *ipam.Host) error {
	if h.Name == m.s.Ledger.Host() {
		return nil
	}
	known := c.Index().Host(h.Name)
	switch {
	case known == nil:
		return m.putHost(c, h)
	case known.ID != h.ID || known.State == h.State:
		return nil
	case h.State == ipam.HostRemoved:
		return edit.RemoveHost(c, known)
	}
	again := *known
	again.State = h.State
	return m.putHost(c, &again)
}

// dropNetwork removes a network again that was removed. It stays if a Docker network has joined it since.
func (m *mender) dropNetwork(c *ledger.Change, r *ipam.MendReport, id ipam.ID) error {
	nx := c.Index().NetworkIndex(id)
	if nx.Record() == nil {
		return nil
	}
	p := edit.PlanOf(c, nx.Record())
	subnets := subnetsOf(c, id)
	for _, sx := range subnets {
		for _, at := range sx.Record().Attachments {
			if a := c.Index().Attachment(at); a != nil && a.Created.After(ipam.EventTime(m.mem.head.Plan)) {
				return nil
			}
		}
	}
	for _, sx := range subnets {
		sub := sx.Record()
		for _, at := range sub.Attachments {
			if err := c.SetAttachment(at, nil); err != nil {
				return err
			}
		}
		if err := p.DropSubnet(sub); err != nil {
			return err
		}
	}
	r.Removed++
	if _, err := c.Event(&ipam.Event{Verb: ipam.NetworkRemoved, Space: p.N.Space, Name: p.N.Name,
		Detail: "it had been removed"}); err != nil {
		return err
	}
	return c.SetNetwork(id, nil)
}

// subnetsOf returns the subnets of a network from the index.
func subnetsOf(c *ledger.Change, network ipam.ID) (all []*ledger.SubnetIndex) {
	if nx := c.Index().NetworkIndex(network); nx != nil {
		for _, id := range nx.Subnets() {
			if sx := c.Index().Subnet(id); sx != nil {
				all = append(all, sx)
			}
		}
	}
	return all
}

// putNetwork restores a network with its subnets as remembered.
func (m *mender) putNetwork(c *ledger.Change, r *ipam.MendReport, n *ipam.Network) error {
	there := c.Index().Network(n.ID)
	if there != nil && there.LastRevision() >= n.LastRevision() {
		return nil
	}
	if err := m.networkBack(c, n); err != nil {
		return err
	}
	r.Networks++
	if _, err := c.Event(&ipam.Event{Verb: ipam.NetworkModified, Space: n.Space, Name: n.Name,
		Detail: "put back"}); err != nil {
		return err
	}
	p := edit.PlanOf(c, c.Index().Network(n.ID))
	for _, sx := range subnetsOf(c, n.ID) {
		if sub := sx.Record(); m.mem.subnets[sub.ID] == nil && !sub.Created.After(ipam.EventTime(n.LastRevision())) {
			if err := p.DropSubnet(sub); err != nil {
				return err
			}
		}
	}
	for _, id := range sortedIDs(m.mem.subnets) {
		if sub := m.mem.subnets[id]; sub.Network == n.ID {
			if err := m.putSubnet(c, r, p, sub); err != nil {
				return err
			}
		}
	}
	return nil
}

// putSubnet restores a subnet as remembered, without its attachments, which each host restores itself.
func (m *mender) putSubnet(c *ledger.Change, r *ipam.MendReport, p *edit.Plan, known *ipam.Subnet) error {
	sx := c.Index().Subnet(known.ID)
	if sx == nil {
		_, why, err := m.subnetBack(c, known.ID)
		if why != "" {
			r.Problems = append(r.Problems,
				fmt.Sprintf("the subnet %s of network %s cannot be restored: %s", known.CIDR, p.N.Name, why))
		}
		return err
	}
	sub, edited := sx.Record(), *known
	edited.Attachments = sub.Attachments
	if sub.CIDR == edited.CIDR {
		return c.SetSubnet(&edited)
	}
	other, err := c.Overlapping(edited.Space, edited.CIDR, sub.ID)
	if err != nil {
		return err
	}
	if other != nil {
		r.Problems = append(r.Problems,
			fmt.Sprintf("the subnet %s of network %s stays as it is and does not become %s again: the subnet %s was "+
				"created in the meantime", sub.CIDR, p.N.Name, edited.CIDR, other.CIDR))
		return nil
	}
	return p.Resize(sub, &edited)
}

// reservedFix is an address whose plan in the store differs from what is remembered.
type reservedFix struct {
	subnet ipam.ID
	addr   netip.Addr
}

// putReserved restores reservations and external addresses as remembered.
func (m *mender) putReserved(ctx context.Context) error {
	var fixes []reservedFix
	for _, subnet := range sortedIDs(m.mem.leases) {
		for _, addr := range allocator.SortedAddrs(m.mem.leases[subnet]) {
			if l := m.mem.leases[subnet][addr]; l.Reservation != nil || l.Held() && l.Attachment == (ipam.ID{}) {
				fixes = append(fixes, reservedFix{subnet, addr})
			}
		}
	}
	err := m.s.Ledger.Look(ctx, func(c *ledger.Change) error {
		for id := range m.mem.subnets {
			if c.Index().Subnet(id) == nil {
				continue
			}
			err := ledger.EachLease(c.Tx(), id, func(l *ipam.Lease) error {
				known := m.mem.leases[id][l.Address]
				if known.Reserved() == nil && l.Reservation != nil && l.Reservation.ID <= m.mem.head.Plan ||
					!known.Held() && l.Held() && l.Attachment == (ipam.ID{}) && l.ID <= m.mem.head.Plan {
					fixes = append(fixes, reservedFix{id, l.Address})
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for page := range slices.Chunk(fixes, allocator.ClaimPage) {
		err := m.doPlan(ctx, func(c *ledger.Change, r *ipam.MendReport) error {
			for _, fix := range page {
				if err := m.fixReserved(c, r, fix); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *mender) fixReserved(c *ledger.Change, r *ipam.MendReport, fix reservedFix) error {
	sx := c.Index().Subnet(fix.subnet)
	if sx == nil || !sx.Usable().Contains(fix.addr) {
		return nil
	}
	sub := sx.Record()
	there, err := c.Lease(fix.subnet, fix.addr)
	if err != nil {
		return err
	}
	known, after := m.mem.leases[fix.subnet][fix.addr], there
	if want, has := known.Reserved(), there.Reserved(); !sameReservation(want, has) &&
		(has == nil || has.ID <= m.mem.head.Plan) {
		if after = there.WithReservation(fix.addr, want); want == nil {
			r.Removed++
		} else {
			r.Reserved++
		}
	}
	planned := known.Held() && known.Attachment == (ipam.ID{})
	switch {
	case planned && !after.Held():
		again := *known
		again.Reservation = after.Reserved()
		after = &again
		if known.Kind == ipam.External {
			r.Reserved++
		}
	case planned && after.ID != known.ID && after.Attachment != (ipam.ID{}):
		r.Collisions = append(r.Collisions,
			ipam.MendCollision{Space: sub.Space, Address: fix.addr, Here: known.Holder(), There: after.Holder(),
				Kept: after.Host, Seen: m.runs(sub, fix.addr)})
	case !known.Held() && after.Held() && after.Attachment == (ipam.ID{}) && after.ID <= m.mem.head.Plan &&
		sub.Gateway != fix.addr:
		after = after.Unheld()
		r.Removed++
	}
	if after == there {
		return nil
	}
	return c.SetLease(fix.subnet, fix.addr, there, after)
}

func sameReservation(a, b *ipam.Reservation) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Until, y.Until = time.Time{}, time.Time{}
	return x == y && a.Until.Equal(b.Until)
}

func sortedNames[V any](of map[string]V) []string {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
