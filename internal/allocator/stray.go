package allocator

import (
	"context"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// TellStrays writes an event of each. What is no longer that lease is passed over. At most MaxEdits are written at
// once.
func (s Allocator) TellStrays(ctx context.Context, strays []ipam.Stray) error {
	for page := range slices.Chunk(strays, ipam.MaxEdits) {
		err := s.ledger.Update(ctx, func(c *ledger.Change) error {
			for i := range page {
				if err := tellStray(c, &page[i]); err != nil {
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

// Note writes the event of a change that was made beside the store. Its id and time, host and actor are filled in.
func (s Allocator) Note(ctx context.Context, e ipam.Event) error {
	return s.ledger.Update(ctx, func(c *ledger.Change) error {
		noted := e // the function may run again
		_, err := c.Event(&noted)
		return err
	})
}
