package view

import (
	"context"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// MayLack reports whether the retention may have removed events after a mark. whole is a time at which there was no
// event after the mark. False is certain. The result is also true if the last removed event was just before the mark.
func (s Views) MayLack(ctx context.Context, mark ipam.EventMark, whole time.Time) (bool, error) {
	lacks, err := mayLack(ctx, s.homes.Own, mark.Own, whole)
	if l, is := s.homes.Reached(); err == nil && !lacks && is {
		return mayLack(ctx, l, reached(l, mark.Shared), whole)
	}
	return lacks, err
}

// mayLack is MayLack for one store. The oldest events are removed first, so no event after the mark is missing while an
// event before the mark is kept. Nor is one missing if whole is within the retention's age and the number of events is
// below its limit.
func mayLack(ctx context.Context, s *ledger.Ledger, mark ipam.StoreMark, whole time.Time) (bool, error) {
	keep := s.Retention()
	if few := ledger.Ask(s, (*ledger.Index).Events).Few(keep); few && whole.After(s.Now().Add(-keep.Age)) {
		return false, nil
	}
	before := false
	err := s.View(ctx, func(tx store.Tx) error {
		for at, err := range ledger.EventsIn(tx, ledger.EventRange{}) {
			before = err == nil && (at.ID <= mark.After || s.Member() != nil && mark.Passed(at.ID))
			return err
		}
		return nil
	})
	return !before, err
}
