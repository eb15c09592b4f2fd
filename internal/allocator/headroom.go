package allocator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// ClaimPage is the maximum number of headroom addresses that one transaction claims, uses or releases. Each is a lease
// and an event, and transactions of a shared store must be small.
const ClaimPage = 16

// HeadroomOf returns the headroom of an attachment: addresses with the ids of their leases.
func (t *Target) HeadroomOf() (map[netip.Addr]uint64, error) {
	all := map[netip.Addr]uint64{}
	for addr := range t.Sx.Headroom(t.At.ID) {
		l, err := t.Record(addr)
		if err != nil {
			return nil, err
		}
		if l.Held() && l.Kind == ipam.Headroom && l.Attachment == t.At.ID {
			all[addr] = l.ID
		}
	}
	return all, nil
}

// ClaimHeadroom claims addresses for an attachment up to the wanted number, or until none is free. It returns the whole
// headroom. Addresses are chosen as for an unknown endpoint.
func ClaimHeadroom(ctx context.Context, s *ledger.Ledger, pool ipam.ID,
	want int) (has map[netip.Addr]uint64, err error) {
	for claimed := ClaimPage; claimed == ClaimPage && len(has) < want; {
		err = Update(ctx, s, func(c *ledger.Change) (err error) {
			has, claimed, err = claimPage(c, pool, want)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return has, nil
}

func claimPage(c *ledger.Change, pool ipam.ID, want int) (has map[netip.Addr]uint64, claimed int, err error) {
	t, err := OpenTarget(c, pool)
	if err != nil {
		return nil, 0, err
	}
	if c.MayTake() != nil {
		want = 0 // this host may take nothing new
	}
	if has, err = t.HeadroomOf(); err != nil {
		return nil, 0, err
	}
	for len(has) < want && claimed < ClaimPage {
		addr, id, err := t.claim()
		if err != nil {
			return nil, 0, err
		}
		if !addr.IsValid() {
			break
		}
		has[addr] = id
		claimed++
	}
	return has, claimed, nil
}

// claim claims one address and returns its lease's id, or the zero address if none is free.
func (t *Target) claim() (netip.Addr, uint64, error) {
	addr, before, err := t.Any()
	if err != nil {
		return netip.Addr{}, 0, err
	}
	if !addr.IsValid() {
		return netip.Addr{}, 0, nil
	}
	l := &ipam.Lease{Address: addr, Kind: ipam.Headroom, Attachment: t.At.ID, Host: t.Host()}
	err = t.create(l, before, l.Event(ipam.HeadroomClaimed, t.Sub, ""))
	return addr, l.ID, err
}

// unclaim ends headroom. It leaves no memory.
func unclaim(c *ledger.Change, sub *ipam.Subnet, held *ipam.Lease) error {
	if _, err := c.Event(held.Event(ipam.HeadroomReleased, sub, "")); err != nil {
		return err
	}
	return c.SetLease(sub.ID, held.Address, held, held.Unheld())
}

// GiveHeadroom releases addresses of an attachment's headroom whose lease ids still match.
func GiveHeadroom(ctx context.Context, s *ledger.Ledger, pool ipam.ID, leases map[netip.Addr]uint64) error {
	for page := range Pages(leases, ClaimPage) {
		err := s.Update(ctx, func(c *ledger.Change) error { return givePage(c, pool, page) })
		if err != nil {
			return err
		}
	}
	return nil
}

func givePage(c *ledger.Change, pool ipam.ID, leases map[netip.Addr]uint64) error {
	t, err := OpenTarget(c, pool)
	if errors.Is(err, ipam.ErrNotFound) {
		return nil // they ended with it
	}
	if err != nil {
		return err
	}
	for _, addr := range SortedAddrs(leases) {
		l, err := t.Record(addr)
		if err != nil {
			return err
		}
		if l.Held() && l.Kind == ipam.Headroom && l.Attachment == pool && l.ID == leases[addr] {
			if err := unclaim(t.Change, t.Sub, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// HeadroomUse is a use of headroom that the host reports to the shared store.
type HeadroomUse struct {
	Pool     ipam.ID
	Addr     netip.Addr
	Lease    uint64 // the id of the headroom's lease
	Holder   HeadroomHolder
	Released bool // it has ended since
	Again    bool // an earlier report may have arrived
	Sure     bool // given since the daemon's start, so nobody else should have it
}

// HeadroomHolder is the endpoint to which a host gave an address of its headroom.
type HeadroomHolder struct {
	Kind      ipam.Kind `json:"kind"` // Automatic, Static or Auxiliary
	MAC       ipam.MAC  `json:"mac,omitzero"`
	Name      string    `json:"name,omitempty"`
	Container string    `json:"container_id,omitempty"` // its short id
	Since     time.Time `json:"since"`
}

// SettleUses turns used headroom into leases of its holders and ends those that were released since. It may be
// repeated. It skips leases that this host no longer has, and returns the indexes of those that it should still have.
func SettleUses(ctx context.Context, s *ledger.Ledger, uses []HeadroomUse) (lost []int, err error) {
	err = s.Update(ctx, func(c *ledger.Change) error {
		lost = nil
		for i := range uses {
			found, err := settleUse(c, &uses[i])
			if err != nil {
				return err
			}
			if !found && !uses[i].Released {
				lost = append(lost, i)
			}
		}
		return nil
	})
	return lost, err
}

func settleUse(c *ledger.Change, u *HeadroomUse) (found bool, err error) {
	t, err := OpenTarget(c, u.Pool)
	if errors.Is(err, ipam.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l, err := t.Record(u.Addr)
	if err != nil {
		return false, err
	}
	if !l.Held() || l.ID != u.Lease || l.Attachment != u.Pool {
		return false, nil
	}
	if l.Kind == ipam.Headroom || l.MAC != u.Holder.MAC || u.Holder.Name != "" && l.Name != u.Holder.Name {
		if l, err = t.putToUse(l, &u.Holder); err != nil {
			return false, err
		}
	} else if u.Sure {
		c.MarkAnswered(l.ID) // it was reported before the daemon's start and given again after it
	}
	if u.Released {
		err = Release(t.Change, t.Sub, l)
	}
	return true, err
}

// putToUse turns headroom into the lease of its holder. The lease keeps its id, by which the host knows it.
func (t *Target) putToUse(l *ipam.Lease, u *HeadroomHolder) (*ipam.Lease, error) {
	after := *l
	after.Kind, after.MAC, after.Name, after.Container = u.Kind, u.MAC, u.Name, u.Container
	id, err := t.Event(after.Event(ipam.LeaseTaken, t.Sub,
		fmt.Sprintf("%s from the headroom, in use since %s", u.Kind, u.Since.UTC().Format(time.RFC3339))))
	if err != nil {
		return nil, err
	}
	after.Since = t.TimeOf(id)
	t.MarkUsed(l.ID)
	return &after, t.SetLease(t.Sub.ID, l.Address, l, &after)
}

// Pages splits a map of addresses into pages of at most n, in order.
func Pages[V any](all map[netip.Addr]V, n int) iter.Seq[map[netip.Addr]V] {
	return func(yield func(map[netip.Addr]V) bool) {
		for chunk := range slices.Chunk(SortedAddrs(all), n) {
			page := make(map[netip.Addr]V, len(chunk))
			for _, addr := range chunk {
				page[addr] = all[addr]
			}
			if !yield(page) {
				return
			}
		}
	}
}

// SortedAddrs returns the keys of a map, in order.
func SortedAddrs[V any](of map[netip.Addr]V) []netip.Addr {
	return slices.SortedFunc(maps.Keys(of), netip.Addr.Compare)
}

// IsIPv6 reports whether an attachment is known and its subnet is IPv6.
func IsIPv6(s *ledger.Ledger, pool ipam.ID) bool {
	at := s.Attachment(pool)
	return at != nil && at.CIDR.Addr().Is6()
}
