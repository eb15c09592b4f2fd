package edit

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// hostOf returns the record of a host of the cluster.
func hostOf(c *ledger.Change, name string) (*ipam.Host, error) {
	if c.Member() == nil {
		return nil, ipam.ErrNoShared
	}
	known := c.Index().Host(name)
	if known == nil {
		return nil, ipam.Refuse(ipam.ErrNotFound, "there is no host %q in the cluster", name).
			Advise(ipam.DoListHosts)
	}
	return known, nil
}

func drainHost(c *run, e *ipam.DrainHost) error {
	h, err := hostOf(c.Change, e.Name)
	if err != nil {
		return err
	}
	want := ipam.HostDraining
	if e.Undo {
		want = ""
	}
	switch {
	case h.State == want:
		return nil
	case h.State == ipam.HostLeaving || h.State == ipam.HostRemoved:
		return ipam.Refuse(ipam.ErrInUse, "host %s is %s", h.Name, h.State).Advise(ipam.DoLetHostIn, h.Name)
	}
	detail := ""
	if e.Undo {
		detail = "undone"
	}
	return setHostState(c.Change, h, want, ipam.HostDrained, detail)
}

// setHostState writes a host's new state and its event.
func setHostState(c *ledger.Change, h *ipam.Host, state ipam.HostState, verb ipam.Verb, detail string) error {
	if _, err := c.Event(&ipam.Event{Verb: verb, Name: h.Name, Detail: detail}); err != nil {
		return err
	}
	changed := *h
	changed.State = state
	return c.SetHost(&changed)
}

func removeHost(c *run, e *ipam.RemoveHost) error {
	h, err := hostOf(c.Change, e.Name)
	if err != nil {
		return err
	}
	switch {
	case h.State == ipam.HostRemoved:
		return ipam.Refuse(ipam.ErrInUse, "host %s was removed already", h.Name).
			Advise(ipam.DoLetHostIn, h.Name)
	case e.Off && isPresent(c.Change, h.Name) && h.ID != c.Member().Host:
		return ipam.Refuse(ipam.ErrInUse, "the daemon of host %s answered seconds ago, so the host is not off", h.Name).
			Advise(ipam.DoAskHostToGo, h.Name)
	case e.Off:
		c.ended = true
		return RemoveHost(c.Change, h)
	case h.State == ipam.HostLeaving:
		return nil
	case !otherHost(c.Index(), h.Name):
		return ipam.Refuse(ipam.ErrInUse, "host %s is the only one in the cluster, so no other host could admit it "+
			"again; remove its networks instead", h.Name).OrAdvise(ipam.DoMoveSpaces)
	case !isPresent(c.Change, h.Name):
		return ipam.Refuse(ipam.ErrInUse, "the daemon of host %s does not answer, so it cannot release its addresses: "+
			"its containers and headroom may still be in use; start it", h.Name).Advise(ipam.DoSayHostOff, h.Name)
	}
	return setHostState(c.Change, h, ipam.HostLeaving, ipam.HostLeft, "")
}

// RemoveHost ends all attachments of a host. Their leases are released in batches afterwards.
func RemoveHost(c *ledger.Change, h *ipam.Host) error {
	for _, id := range HeldBy(c.Index(), h.Name) {
		at, err := c.Attachment(id)
		if errors.Is(err, ipam.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		sub, err := c.SubnetOf(at)
		if err != nil {
			return err
		}
		last, err := allocator.Detach(c, at, sub)
		if err != nil {
			return err
		}
		if last {
			c.AddOrphan(&ipam.Subnet{ID: sub.ID, Space: sub.Space, CIDR: sub.CIDR})
		}
	}
	return setHostState(c, h, ipam.HostRemoved, ipam.HostGone, "")
}

// ReleasePools ends all attachments of this host, with their leases.
func ReleasePools(ctx context.Context, s *ledger.Ledger) error {
	held := ledger.Ask(s, func(ix *ledger.Index) []ipam.ID { return HeldBy(ix, s.Host()) })
	for _, id := range held {
		if err := allocator.ReleasePool(ctx, s, id); err != nil {
			return err
		}
	}
	return Finish(ctx, s)
}

// otherHost reports whether another host takes part in the cluster and is not leaving.
func otherHost(ix *ledger.Index, name string) bool {
	for _, h := range ix.Hosts() {
		if h.Name != name && h.State != ipam.HostRemoved && h.State != ipam.HostLeaving {
			return true
		}
	}
	return false
}

// HeldBy lists the active attachments of a host, the oldest first.
func HeldBy(ix *ledger.Index, host string) (all []ipam.ID) {
	for id, at := range ix.Attachments() {
		if at.Host == host && !at.Ended {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, func(a, b ipam.ID) int {
		return ix.Attachment(a).Created.Compare(ix.Attachment(b).Created)
	})
	return all
}

func admitHost(c *run, e *ipam.AdmitHost) error {
	h, err := hostOf(c.Change, e.Name)
	if err != nil {
		return err
	}
	if h.State != ipam.HostRemoved {
		return ipam.Refuse(ipam.ErrInUse, "host %s is in the cluster already", h.Name)
	}
	slot, err := c.FreeSlot()
	if err != nil {
		return err
	}
	again := *h
	again.Slot = slot
	return setHostState(c.Change, &again, "", ipam.HostAdmitted, "")
}

// isPresent reports whether a host's daemon is connected now.
func isPresent(c *ledger.Change, host string) bool {
	_, ok := c.Present()[host]
	return ok
}

// ShownAddresses is how many addresses HostInfo names.
const ShownAddresses = 10

// Counted is the number of leases of one attachment.
type Counted struct {
	Leases, Headroom int
	First            []netip.Addr // the first leased addresses, up to ShownAddresses
}

// Count counts one lease. Gateways do not count.
func (n *Counted) Count(l *ipam.LeaseInfo) {
	switch l.Kind {
	case ipam.Headroom:
		n.Headroom++
	case ipam.Gateway:
	default:
		n.Leases++
		if len(n.First) < ShownAddresses {
			n.First = append(n.First, l.Address)
		}
	}
}

// BoolCompare orders false before true.
func BoolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
