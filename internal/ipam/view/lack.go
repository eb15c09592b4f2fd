package view

import (
	"context"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// MayLack tells whether the retention may have removed events behind a mark. whole is a time at which there were none
// behind it. False is sure; true also where what was removed last was just before the mark.
func (s Views) MayLack(ctx context.Context, mark ipam.EventMark, whole time.Time) (bool, error) {
	lacks, err := mayLack(ctx, s.homes.Own, mark.Own, whole)
	if l, is := s.homes.Reached(); err == nil && !lacks && is {
		return mayLack(ctx, l, reached(l, mark.Shared), whole)
	}
	return lacks, err
}

// mayLack is that of one store. The oldest events are removed first. So none behind the mark was while one before it is
// there still; and none that is younger than whole, where nothing as young is too old, and there are so few that none
// were too many.
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
