package allocator

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Attachments lists all attachments that have not ended, by space, subnet and age.
func (s Allocator) Attachments(ctx context.Context) ([]ipam.AttachmentInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return ledger.Merged(s.homes, orderAttachments, func(l *ledger.Ledger) ([]ipam.AttachmentInfo, error) {
		return ledger.Ask(l, func(ix *ledger.Index) []ipam.AttachmentInfo { return attachments(l, ix) }), nil
	})
}

func attachments(l *ledger.Ledger, ix *ledger.Index) (all []ipam.AttachmentInfo) {
	for id, at := range ix.Attachments() {
		sx := ix.Subnet(at.Subnet)
		if at.Ended || sx == nil {
			continue
		}
		info := ipam.AttachmentInfo{ID: id, Space: at.Space, CIDR: at.CIDR, Host: at.Host, Swarm: at.Swarm,
			Chosen: at.Chosen, Range: at.Pool, Named: at.Named, Beneath: at.Beneath, Created: at.Created,
			Live: sx.Live(id) - len(sx.Headroom(id)), Gateway: sx.Record().Gateway}
		if n := ix.Network(sx.Record().Network); n != nil {
			info.Network, info.Planned = l.ShownName(ix, n), n.Planned
		}
		all = append(all, info)
	}
	slices.SortFunc(all, orderAttachments)
	return all
}

// orderAttachments is the order of the list of attachments.
func orderAttachments(a, b ipam.AttachmentInfo) int {
	return cmp.Or(cmp.Compare(a.Space, b.Space), a.CIDR.Addr().Compare(b.CIDR.Addr()), a.Created.Compare(b.Created),
		cmp.Compare(a.ID.String(), b.ID.String()))
}

// NameLeases writes the engine's view of endpoints into their leases: the container, a missing name, or the correction
// or confirmation of a guess. It skips leases that have changed. One transaction writes at most MaxEdits.
func (s Allocator) NameLeases(ctx context.Context, names []ipam.LeaseName) error {
	return eachLease(ctx, s.homes, names, nameLease)
}

// eachLease runs fn for each item in the store of its lease, at most MaxEdits in one transaction.
func eachLease[T interface{ Ref() ipam.LeaseRef }](ctx context.Context, homes ledger.Homes, all []T,
	fn func(*ledger.Change, *T) error) error {
	of := map[*ledger.Ledger][]T{}
	for _, one := range all {
		l, err := homes.At(one.Ref().Space, one.Ref().Address)
		if err != nil {
			return err
		}
		of[l] = append(of[l], one)
	}
	for _, l := range homes.All() {
		for page := range slices.Chunk(of[l], ipam.MaxEdits) {
			err := l.Update(ctx, func(c *ledger.Change) error {
				for i := range page {
					if err := fn(c, &page[i]); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// nameLease names one lease. A container's address is not auxiliary, even if it was recorded as such (KindOf).
func nameLease(c *ledger.Change, name *ipam.LeaseName) error {
	sub, l, err := leaseOf(c, name.LeaseRef)
	if err != nil {
		return err
	}
	// the holder is an endpoint that sent no name
	unnamed := l.Held() && (l.Name == "" || l.Guessed) && l.Attachment != (ipam.ID{}) && l.Kind != ipam.Gateway &&
		l.Kind != ipam.Headroom
	if !unnamed || name.Name == "" || len(name.Name) > ipam.MaxText {
		if name.Container == "" || !endpoints(l) || l.Container == name.Container {
			return nil
		}
		after := *l
		after.Container = name.Container
		return c.SetLease(sub.ID, l.Address, l, &after)
	}
	after := *l
	after.Name, after.Guessed, after.Container = name.Name, false, cmp.Or(name.Container, l.Container)
	if after.Kind == ipam.Auxiliary {
		after.Kind = ipam.Static
	}
	e := after.Event(ipam.LeaseNamed, sub, "")
	// Compose renames a container that it recreates
	if l.Guessed && ipam.RememberedName(l.Name) != ipam.RememberedName(name.Name) {
		e.Verb, e.Detail = ipam.GuessedWrong, "it was mistaken for "+l.Name
	}
	if _, err := c.Event(e); err != nil {
		return err
	}
	return c.SetLease(sub.ID, l.Address, l, &after)
}

// TellStrays writes an event for each stray. It skips leases that have changed. One transaction writes at most
// MaxEdits.
func (s Allocator) TellStrays(ctx context.Context, strays []ipam.Stray) error {
	return eachLease(ctx, s.homes, strays, tellStray)
}

func tellStray(c *ledger.Change, stray *ipam.Stray) error {
	verb, known := map[ipam.FindingKind]ipam.Verb{ipam.ForeignHolder: ipam.ForeignHolderTold,
		ipam.OwnerElsewhere: ipam.OwnerElsewhereTold}[stray.Kind]
	if !known {
		return ipam.Refuse(ipam.ErrInvalid, "%q is not a finding about a wrong address", stray.Kind)
	}
	sub, l, err := leaseOf(c, stray.LeaseRef)
	if err != nil {
		return err
	}
	if !l.Held() {
		return nil
	}
	e := l.Event(verb, sub, stray.Detail)
	e.Name = stray.Name
	_, err = c.Event(e)
	return err
}

// Note writes the event of a change outside of the store. It fills in id, time, host and actor. The event goes to the
// store of its space, or to the host's own store if it has no space.
func (s Allocator) Note(ctx context.Context, e ipam.Event) error {
	l, err := s.homes.In(e.Space)
	if err != nil {
		return err
	}
	return l.Update(ctx, func(c *ledger.Change) error {
		noted := e // the function may run again
		_, err := c.Event(&noted)
		return err
	})
}

// leaseOf reads the lease or memory of ref. It returns nil if there is none, or another one now.
func leaseOf(c *ledger.Change, ref ipam.LeaseRef) (*ipam.Subnet, *ipam.Lease, error) {
	sx := c.Index().Overlapping(ref.Space, netip.PrefixFrom(ref.Address, ref.Address.BitLen()))
	if sx == nil {
		return nil, nil, nil
	}
	sub := sx.Record()
	l, err := c.Lease(sub.ID, ref.Address)
	if l != nil && l.ID != ref.ID {
		l = nil
	}
	return sub, l, err
}

// ReplaceLease ends a lease of this host whose endpoint is gone. In the same transaction it leases the address to the
// endpoint that the engine shows there. It reports whether the lease still existed. Reservations stay unchanged.
func (s Allocator) ReplaceLease(ctx context.Context, ref ipam.LeaseRef, req ipam.AddressRequest) (done bool, err error) {
	home, err := s.homes.At(ref.Space, ref.Address)
	if err != nil {
		return false, err
	}
	err = Update(ctx, home, func(c *ledger.Change) error {
		done = false
		if err := c.MayTake(); err != nil {
			return err
		}
		sub, l, err := leaseOf(c, ref)
		if err != nil {
			return err
		}
		if !endpoints(l) || l.Host != home.Host() {
			return nil
		}
		t, err := OpenTarget(c, req.Pool)
		if err != nil {
			return err
		}
		if t.Sub.ID != sub.ID {
			return nil
		}
		if _, err := c.Event(l.Event(ipam.LeaseReleased, sub, "")); err != nil {
			return err
		}
		done = true
		return t.take(req, l.Address, l, l.Kind)
	})
	return done && err == nil, err
}

// endpoints reports whether a lease was taken for an endpoint.
func endpoints(l *ipam.Lease) bool {
	return l.Held() && l.Attachment != (ipam.ID{}) && (l.Kind == ipam.Automatic || l.Kind == ipam.Static)
}

// ReleaseLease ends a lease of this host that was taken through an attachment, and reports whether it still existed.
func (s Allocator) ReleaseLease(ctx context.Context, ref ipam.LeaseRef) (done bool, err error) {
	return s.endLease(ctx, ref, func(c *ledger.Change, sub *ipam.Subnet, l *ipam.Lease) (bool, error) {
		// the host itself releases its headroom
		if !l.Held() || l.Attachment == (ipam.ID{}) || l.Host != c.Host() || l.Kind == ipam.Headroom {
			return false, nil
		}
		return true, Release(c, sub, l)
	})
}

// ForgetMemory deletes a memory and reports whether it still existed.
func (s Allocator) ForgetMemory(ctx context.Context, ref ipam.LeaseRef) (done bool, err error) {
	return s.endLease(ctx, ref, func(c *ledger.Change, sub *ipam.Subnet, l *ipam.Lease) (bool, error) {
		if !l.Remembered() {
			return false, nil
		}
		return true, c.SetLease(sub.ID, l.Address, l, l.Unheld())
	})
}

// endLease runs fn on the lease or memory of ref, and returns what it reports. The lease is nil if it is gone.
func (s Allocator) endLease(ctx context.Context, ref ipam.LeaseRef,
	fn func(*ledger.Change, *ipam.Subnet, *ipam.Lease) (bool, error)) (done bool, err error) {
	home, err := s.homes.At(ref.Space, ref.Address)
	if err != nil {
		return false, err
	}
	err = home.Update(ctx, func(c *ledger.Change) error {
		sub, l, err := leaseOf(c, ref)
		if err == nil {
			done, err = fn(c, sub, l)
		}
		return err
	})
	return done && err == nil, err
}

// Guesses returns how often names were guessed, and how often wrongly.
func (s Allocator) Guesses() (sum ipam.GuessCounts) {
	for _, l := range s.homes.All() {
		n := l.Guesses()
		sum.Made, sum.Wrong = sum.Made+n.Made, sum.Wrong+n.Wrong
	}
	return sum
}
