package allocator

import (
	"context"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// TellStrays writes an event for each stray. It skips leases that have changed. One transaction writes at most
// MaxEdits.
func (s Allocator) TellStrays(ctx context.Context, strays []ipam.Stray) error {
	at := func(one ipam.Stray) ipam.LeaseRef { return one.LeaseRef }
	return eachHome(s.homes, strays, at, func(l *ledger.Ledger, page []ipam.Stray) error {
		return l.Update(ctx, func(c *ledger.Change) error {
			for i := range page {
				if err := tellStray(c, &page[i]); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// eachHome distributes items by the store of their leases, at most MaxEdits at a time.
func eachHome[T any](homes ledger.Homes, all []T, at func(T) ipam.LeaseRef, do func(*ledger.Ledger, []T) error) error {
	of := map[*ledger.Ledger][]T{}
	for _, one := range all {
		l, err := homes.At(at(one).Space, at(one).Address)
		if err != nil {
			return err
		}
		of[l] = append(of[l], one)
	}
	for _, l := range homes.All() {
		for page := range slices.Chunk(of[l], ipam.MaxEdits) {
			if err := do(l, page); err != nil {
				return err
			}
		}
	}
	return nil
}

func tellStray(c *ledger.Change, stray *ipam.Stray) error {
	verb, known := map[ipam.FindingKind]ipam.Verb{ipam.ForeignHolder: ipam.ForeignHolderTold,
		ipam.OwnerElsewhere: ipam.OwnerElsewhereTold}[stray.Kind]
	if !known {
		return ipam.Refuse(ipam.ErrInvalid, "%q is not of a container with the wrong address", stray.Kind)
	}
	sub, l, err := leaseOf(c, stray.LeaseRef)
	if err != nil {
		return err
	}
	if !l.Held() {
		return nil
	}
	_, err = c.Event(&ipam.Event{Verb: verb, Space: sub.Space, Subnet: sub.CIDR, Address: l.Address, Lease: l.ID,
		Attachment: l.Attachment, MAC: l.MAC, Name: stray.Name, Detail: stray.Detail})
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
