package allocator

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// StandIns lists the containers of this host that stand in for others, by name.
func (s Allocator) StandIns(ctx context.Context) (all []ipam.StandIn, err error) {
	err = s.ledger.View(ctx, func(tx store.Tx) error {
		all = nil
		for rec, err := range tx.Scan(ledger.KindRange(StandInKeys)) {
			if err != nil {
				return err
			}
			var one ipam.StandIn
			if err := ipam.DecodeJSON("who stands in for a container", rec.Value, &one); err != nil {
				return err
			}
			if one.Host == s.ledger.Host() {
				all = append(all, one)
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b ipam.StandIn) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return all, err
}

// EndStandIns ends those whose containers were destroyed. One of another container is passed over.
func (s Allocator) EndStandIns(ctx context.Context, gone []ipam.StandIn) error {
	for page := range slices.Chunk(gone, ipam.MaxEdits) {
		err := s.ledger.Update(ctx, func(c *ledger.Change) error {
			for i := range page {
				now, err := ReadStandIn(c, StandInKey(page[i].Name, page[i].Host))
				if err != nil {
					return err
				}
				if now == nil || now.ID != page[i].ID {
					continue
				}
				if err := EndStandIn(c, now); err != nil {
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
