package view

import (
	"context"
	"errors"
	"iter"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// tailShared is tail for a store that other hosts also write. It reads the existing events in one view, and then
// receives the commits. If it falls behind, it reads again.
func tailShared(ctx context.Context, s *ledger.Ledger, after ipam.StoreMark) iter.Seq2[storePage, error] {
	return func(yield func(storePage, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		for {
			heard := s.Store().Watch(ctx, []byte{ledger.EventKeys}) // watches from here on
			err := readTail(ctx, s, &after, yield)
			if err == nil {
				err = hearTail(heard, &after, yield)
			}
			switch {
			case errors.Is(err, errEnough) || ctx.Err() != nil:
				return
			case !errors.Is(err, store.ErrLagged):
				yield(storePage{Next: after}, err)
				return
			}
		}
	}
}

// errEnough ends a tail when the receiver stops.
var errEnough = errors.New("enough")

// readTail yields the existing events that were not yielded before.
func readTail(ctx context.Context, s *ledger.Ledger, m *ipam.StoreMark, yield func(storePage, error) bool) error {
	fresh, last, names := s.FreshSince(), m.After, s.DockerNames()
	err := s.View(ctx, func(tx store.Tx) error {
		var page []ipam.Event
		for at, err := range ledger.EventsIn(tx, ledger.EventRange{From: m.After + 1}) {
			if err != nil {
				return err
			}
			last = max(last, at.ID)
			if !m.Pass(at.ID) {
				continue
			}
			e, err := at.Decode()
			if err != nil {
				return err
			}
			names.Show(e)
			if page = append(page, *e); len(page) == tailPage {
				if !yield(storePage{Events: page, Next: *m}, nil) {
					return errEnough
				}
				page = nil
			}
		}
		if len(page) > 0 && !yield(storePage{Events: page, Next: *m}, nil) {
			return errEnough
		}
		return nil
	})
	if err == nil {
		s.Settles(m, fresh, last)
	}
	return err
}

// hearTail yields committed events that were not yielded before, until the receiver stops or an error occurs.
func hearTail(heard iter.Seq2[store.Change, error], m *ipam.StoreMark, yield func(storePage, error) bool) error {
	for change, err := range heard {
		if err != nil {
			return err
		}
		if change.Value == nil {
			continue // it was trimmed
		}
		e, err := ipam.DecodeEvent(ledger.EventID(change.Key), change.Value)
		if err != nil {
			return err
		}
		if m.Pass(e.ID) && !yield(storePage{Events: []ipam.Event{*e}, Next: *m}, nil) {
			return errEnough
		}
	}
	return errEnough // ctx has ended
}
