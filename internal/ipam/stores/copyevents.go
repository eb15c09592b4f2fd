package stores

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"berth/internal/ipam/ledger"
	"berth/store"
)

// eachEvent passes on the events of a space, or of elastic addresses, in pages, each as its own record.
func eachEvent(ctx context.Context, s *ledger.Ledger, space string, limit int, fn func([]store.Record) error) error {
	for from, more := uint64(0), true; more; {
		var page []store.Record
		err := s.View(ctx, func(tx store.Tx) (err error) {
			page, from, more, err = eventPage(tx, space, from, limit)
			return err
		})
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		if err := fn(page); err != nil {
			return err
		}
	}
	return nil
}

// eventPage reads a page of eachEvent, and returns where the next one begins.
func eventPage(tx store.Tx, space string, from uint64, limit int) (page []store.Record, next uint64, more bool,
	err error) {
	for at, err := range ledger.EventsIn(tx, ledger.EventRange{From: from}) {
		if err != nil {
			return nil, from, false, err
		}
		e, err := at.Decode()
		if err != nil {
			return nil, from, false, err
		}
		if !isOf(e, space) {
			continue
		}
		if len(page) == limit {
			return page, at.ID, true, nil
		}
		alone, err := at.Alone()
		if err != nil {
			return nil, from, false, err
		}
		page = append(page, store.Record{Key: ledger.EventKey(nil, at.ID), Value: slices.Clone(alone)})
	}
	return page, from, false, nil
}

// writeEvents writes a page of events that the target lacks. If the target has another event of the same id, the next
// free id is used; ids are times in microseconds.
func (cp *copying) writeEvents(ctx context.Context, page []store.Record) error {
	err := cp.to.Update(ctx, func(c *ledger.Change) error {
		for _, e := range page {
			id, there, err := placeOfEvent(c.EventAlone, e)
			if err != nil {
				return err
			}
			if there {
				continue
			}
			if err := c.PutEvent(id, e.Value); err != nil {
				return err
			}
			c.SkipIDs(id)
		}
		return nil
	})
	cp.step(len(page))
	return err
}

// placeOfEvent returns the id under which a store has an event, or a free one. read reads the store's events, each as
// its own record.
func placeOfEvent(read func(id uint64) ([]byte, error), e store.Record) (id uint64, there bool, err error) {
	for id = ledger.EventID(e.Key); ; id++ {
		raw, err := read(id)
		if err != nil {
			return id, false, err
		}
		if raw == nil {
			return id, false, nil
		}
		if bytes.Equal(raw, e.Value) {
			return id, true, nil
		}
	}
}

// compareEvents looks for a page of events in the target. Events older than all of the target's were trimmed there.
func compareEvents(tx store.Tx, page []store.Record) error {
	first := ^uint64(0)
	for at, err := range ledger.EventsIn(tx, ledger.EventRange{}) {
		if err != nil {
			return err
		}
		first = at.ID
		break
	}
	read := func(id uint64) ([]byte, error) { return ledger.EventAlone(tx, id) }
	for _, e := range page {
		_, there, err := placeOfEvent(read, e)
		if err != nil {
			return err
		}
		if id := ledger.EventID(e.Key); !there && id >= first {
			return fmt.Errorf("%w: the event %d is not in the target", errDiffers, id)
		}
	}
	return nil
}

// dropEventsOf removes from a store those events of a space, or of elastic addresses, that the other store has, too.
func (cp *copying) dropEventsOf(ctx context.Context, s *ledger.Ledger, part string) error {
	return eachEvent(ctx, cp.from, part, copyPage(s), func(page []store.Record) error {
		cp.step(len(page))
		return s.Update(ctx, func(c *ledger.Change) error { return dropEvents(c, page) })
	})
}

// dropEvents removes events that are still the same.
func dropEvents(c *ledger.Change, page []store.Record) error {
	for _, e := range page {
		id, there, err := placeOfEvent(c.EventAlone, e)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		if err := c.DropEvent(id); err != nil {
			return err
		}
	}
	return nil
}
