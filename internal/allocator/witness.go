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
			Chosen: at.Chosen, Range: at.Pool, Named: at.Named,
			Beneath: at.Beneath,
			Created: at.Created, Live: sx.Live(id) - len(sx.Headroom(id)), Gateway: sx.Record().Gateway}
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
	at := func(one ipam.LeaseName) ipam.LeaseRef { return one.LeaseRef }
	return eachHome(s.homes, names, at, func(l *ledger.Ledger, page []ipam.LeaseName) error {
		wrong := 0
		err := l.Update(ctx, func(c *ledger.Change) error {
			wrong = 0
			for _, name := range page {
				mistaken, err := nameLease(c, name)
				if err != nil {
					return err
				}
				if mistaken {
					wrong++
				}
			}
			return nil
		})
		if err == nil {
			l.CountGuesses(0, wrong)
		}
		return err
	})
}

// nameLease names one lease, and reports whether the guess was wrong. A container's address is not auxiliary, even if
// it was recorded as such (KindOf).
func nameLease(c *ledger.Change, name ipam.LeaseName) (mistaken bool, err error) {
	sub, l, err := leaseOf(c, name.LeaseRef)
	if err != nil {
		return false, err
	}
	if !nameable(l) || name.Name == "" || len(name.Name) > ipam.MaxText {
		return false, setContainer(c, sub, l, name.Container)
	}
	// Compose renames a container that it recreates
	mistaken = l.Guessed && ipam.RememberedName(l.Name) != ipam.RememberedName(name.Name)
	e := &ipam.Event{Verb: ipam.LeaseNamed, Space: sub.Space, Subnet: sub.CIDR, Address: l.Address, Lease: l.ID,
		Attachment: l.Attachment, MAC: l.MAC, Name: name.Name}
	if mistaken {
		e.Verb, e.Detail = ipam.GuessedWrong, "it was taken for "+l.Name
	}
	if _, err := c.Event(e); err != nil {
		return false, err
	}
	after := *l
	after.Name, after.Guessed, after.Container = name.Name, false, cmp.Or(name.Container, l.Container)
	if after.Kind == ipam.Auxiliary {
		after.Kind = ipam.Static
	}
	return mistaken, c.SetLease(sub.ID, l.Address, l, &after)
}

// setContainer records the container of a lease that has its name already.
func setContainer(c *ledger.Change, sub *ipam.Subnet, l *ipam.Lease, container string) error {
	if container == "" || !endpoints(l) || l.Container == container {
		return nil
	}
	after := *l
	after.Container = container
	return c.SetLease(sub.ID, l.Address, l, &after)
}

// nameable reports whether the witness determines the holder of a lease: an endpoint that sent no name.
func nameable(l *ipam.Lease) bool {
	return l.Held() && (l.Name == "" || l.Guessed) && l.Attachment != (ipam.ID{}) && l.Kind != ipam.Gateway &&
		l.Kind != ipam.Headroom
}

// leaseOf reads the lease or memory of ref. It returns nil if there is none, or another one now.
func leaseOf(c *ledger.Change, ref ipam.LeaseRef) (*ipam.Subnet, *ipam.Lease, error) {
	sx := c.Index().Overlapping(ref.Space, netip.PrefixFrom(ref.Address, ref.Address.BitLen()))
	if sx == nil {
		return nil, nil, nil
	}
	sub := sx.Record()
	l, err := c.Lease(sub.ID, ref.Address)
	if err != nil {
		return sub, nil, err
	}
	if l == nil || l.ID != ref.ID {
		return sub, nil, nil
	}
	return sub, l, nil
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
		if !endpointsOn(l, home.Host()) {
			return nil
		}
		t, err := OpenTarget(c, req.Pool)
		if err != nil {
			return err
		}
		if t.Sub.ID != sub.ID {
			return nil
		}
		if _, err := c.Event(ipam.EndOf(sub, l)); err != nil {
			return err
		}
		done = true
		return t.Take(req, l.Address, l, l.Kind)
	})
	return done && err == nil, err
}

// endpointsOn reports whether a lease was taken for an endpoint on a host.
func endpointsOn(l *ipam.Lease, host string) bool { return endpoints(l) && l.Host == host }

func endpoints(l *ipam.Lease) bool {
	return l.Held() && l.Attachment != (ipam.ID{}) && (l.Kind == ipam.Automatic || l.Kind == ipam.Static)
}

// ReleaseLease ends a lease of this host that was taken through an attachment, and reports whether it still existed.
func (s Allocator) ReleaseLease(ctx context.Context, ref ipam.LeaseRef) (done bool, err error) {
	home, err := s.homes.At(ref.Space, ref.Address)
	if err != nil {
		return false, err
	}
	err = home.Update(ctx, func(c *ledger.Change) error {
		done = false
		sub, l, err := leaseOf(c, ref)
		if err != nil {
			return err
		}
		// the host itself releases its headroom
		if !l.Held() || l.Attachment == (ipam.ID{}) || l.Host != home.Host() || l.Kind == ipam.Headroom {
			return nil
		}
		done = true
		return Release(c, sub, l)
	})
	return done && err == nil, err
}

// ForgetMemory deletes a memory and reports whether it still existed.
func (s Allocator) ForgetMemory(ctx context.Context, ref ipam.LeaseRef) (done bool, err error) {
	home, err := s.homes.At(ref.Space, ref.Address)
	if err != nil {
		return false, err
	}
	err = home.Update(ctx, func(c *ledger.Change) error {
		done = false
		sub, l, err := leaseOf(c, ref)
		if err != nil {
			return err
		}
		if !l.Remembered() {
			return nil
		}
		done = true
		return c.SetLease(sub.ID, l.Address, l, l.Unheld())
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
