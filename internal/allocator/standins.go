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
	for _, l := range s.homes.All() {
		some, err := standIns(ctx, l)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func standIns(ctx context.Context, l *ledger.Ledger) (all []ipam.StandIn, err error) {
	all, err = ledger.View(ctx, l, func(tx store.Tx) ([]ipam.StandIn, error) {
		return ledger.AllJSON[ipam.StandIn](tx, ledger.KindRange(StandInKeys), "who stands in for a container")
	})
	all = slices.DeleteFunc(all, func(one ipam.StandIn) bool { return one.Host != l.Host() })
	slices.SortFunc(all, func(a, b ipam.StandIn) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return all, err
}

// EndStandIns ends the stand-ins whose containers were destroyed. It skips one that has another container by now.
func (s Allocator) EndStandIns(ctx context.Context, gone []ipam.StandIn) error {
	for _, l := range s.homes.All() {
		if err := endStandIns(ctx, l, gone); err != nil {
			return err
		}
	}
	return nil
}

func endStandIns(ctx context.Context, l *ledger.Ledger, gone []ipam.StandIn) error {
	for page := range slices.Chunk(gone, ipam.MaxEdits) {
		err := l.Update(ctx, func(c *ledger.Change) error {
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
