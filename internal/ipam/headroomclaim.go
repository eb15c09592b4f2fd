package ipam

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// claimPage is how many addresses of headroom one transaction claims, uses or gives back: each is a lease and an event, and the
// transaction of a shared store is to be small.
const claimPage = 16

// claims are the addresses of a subnet that are headroom, by the attachment.
type claims map[ID]map[netip.Addr]struct{}

func (c *claims) add(l *Lease) {
	if l.Kind != Headroom {
		return
	}
	if *c == nil {
		*c = claims{}
	}
	if (*c)[l.Attachment] == nil {
		(*c)[l.Attachment] = map[netip.Addr]struct{}{}
	}
	(*c)[l.Attachment][l.Address] = struct{}{}
}

func (c claims) remove(l *Lease) {
	if l.Kind != Headroom {
		return
	}
	if delete(c[l.Attachment], l.Address); len(c[l.Attachment]) == 0 {
		delete(c, l.Attachment)
	}
}

// headroomOf reads which headroom an attachment has, with the ids of the leases.
func (t *target) headroomOf() (map[netip.Addr]uint64, error) {
	all := map[netip.Addr]uint64{}
	for addr := range t.sx.headroom[t.at.ID] {
		l, err := t.lease(t.sub.ID, addr)
		if err != nil {
			return nil, err
		}
		if l.Held() && l.Kind == Headroom && l.Attachment == t.at.ID {
			all[addr] = l.ID
		}
	}
	return all, nil
}

// claimHeadroom claims addresses for an attachment, until it has so many or there are no more, and tells all that it has. They
// are chosen as for an endpoint that nobody knows.
func (s *Service) claimHeadroom(ctx context.Context, pool ID, want int) (has map[netip.Addr]uint64, err error) {
	for claimed := claimPage; claimed == claimPage && len(has) < want; {
		err = s.update(ctx, func(c *change) (err error) {
			has, claimed, err = c.claimPage(pool, want)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return has, nil
}

func (c *change) claimPage(pool ID, want int) (has map[netip.Addr]uint64, claimed int, err error) {
	t, err := c.target(pool)
	if err != nil {
		return nil, 0, err
	}
	if c.mayTake() != nil {
		want = 0 // it is on its way out
	}
	if has, err = t.headroomOf(); err != nil {
		return nil, 0, err
	}
	for len(has) < want && claimed < claimPage {
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

// claim claims one address; the zero one where none is free.
func (t *target) claim() (netip.Addr, uint64, error) {
	for _, p := range t.pools() {
		addr, before, err := t.chooseIn(p)
		if err != nil {
			return netip.Addr{}, 0, err
		}
		if !addr.IsValid() {
			continue
		}
		id, err := t.event(&Event{Verb: HeadroomClaimed, Space: t.sub.Space, Subnet: t.sub.CIDR, Address: addr, Attachment: t.at.ID})
		if err != nil {
			return netip.Addr{}, 0, err
		}
		after := &Lease{ID: id, Address: addr, Kind: Headroom, Attachment: t.at.ID, Host: t.host, Since: eventTime(id)}
		return addr, id, t.setLease(t.sub.ID, addr, before, after)
	}
	return netip.Addr{}, 0, nil
}

// unclaim ends headroom, which leaves nothing.
func (c *change) unclaim(sub *Subnet, held *Lease) error {
	e := &Event{Verb: HeadroomReleased, Space: sub.Space, Subnet: sub.CIDR, Address: held.Address, Lease: held.ID, Attachment: held.Attachment}
	if _, err := c.event(e); err != nil {
		return err
	}
	return c.setLease(sub.ID, held.Address, held, held.unheld())
}

// giveHeadroom gives addresses of an attachment's headroom back, those that are still it by their leases' ids.
func (s *Service) giveHeadroom(ctx context.Context, pool ID, leases map[netip.Addr]uint64) error {
	for page := range pages(leases, claimPage) {
		err := s.update(ctx, func(c *change) error { return c.givePage(pool, page) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *change) givePage(pool ID, leases map[netip.Addr]uint64) error {
	t, err := c.target(pool)
	if errors.Is(err, ErrNotFound) {
		return nil // they ended with it
	}
	if err != nil {
		return err
	}
	for _, addr := range sortedAddrs(leases) {
		l, err := t.lease(t.sub.ID, addr)
		if err != nil {
			return err
		}
		if l.Held() && l.Kind == Headroom && l.Attachment == pool && l.ID == leases[addr] {
			if err := t.unclaim(t.sub, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// use is whom a host has given an address of its headroom.
type use struct {
	Kind  Kind      `json:"kind"` // Automatic, Static or Auxiliary
	MAC   MAC       `json:"mac,omitzero"`
	Name  string    `json:"name,omitempty"`
	Since time.Time `json:"since"`
}

// headroomUse is a use that the shared store is told of.
type headroomUse struct {
	pool     ID
	addr     netip.Addr
	lease    uint64 // of the headroom
	use      use
	released bool // it has ended meanwhile
	again    bool // the store was told before, and may have taken it in
}

// settleUses makes the headroom that was used the leases of those who have it, and ends those that were released since. It may be
// done twice. What is no longer that lease of this host is left as it is; of what should be, it returns the indexes.
func (s *Service) settleUses(ctx context.Context, uses []headroomUse) (lost []int, err error) {
	err = s.update(ctx, func(c *change) error {
		lost = nil
		for i := range uses {
			found, err := c.settleUse(&uses[i])
			if err != nil {
				return err
			}
			if !found && !uses[i].released {
				lost = append(lost, i)
			}
		}
		return nil
	})
	return lost, err
}

func (c *change) settleUse(u *headroomUse) (found bool, err error) {
	t, err := c.target(u.pool)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l, err := t.lease(t.sub.ID, u.addr)
	if err != nil || !l.Held() || l.ID != u.lease || l.Attachment != u.pool {
		return false, err
	}
	if l.Kind == Headroom || l.MAC != u.use.MAC || u.use.Name != "" && l.Name != u.use.Name {
		if l, err = t.putToUse(l, &u.use); err != nil {
			return false, err
		}
	}
	if u.released {
		err = t.release(t.sub, l)
	}
	return true, err
}

// putToUse makes headroom the lease of who has it. It keeps its id, by which the host knows it.
func (t *target) putToUse(l *Lease, u *use) (*Lease, error) {
	id, err := t.event(&Event{Verb: LeaseTaken, Space: t.sub.Space, Subnet: t.sub.CIDR, Address: l.Address, Lease: l.ID, Attachment: t.at.ID,
		MAC: u.MAC, Name: u.Name, Detail: fmt.Sprintf("%s out of the headroom, in use since %s", u.Kind, u.Since.UTC().Format(time.RFC3339))})
	if err != nil {
		return nil, err
	}
	after := *l
	after.Kind, after.MAC, after.Name, after.Since = u.Kind, u.MAC, u.Name, eventTime(id)
	return &after, t.setLease(t.sub.ID, l.Address, l, &after)
}
