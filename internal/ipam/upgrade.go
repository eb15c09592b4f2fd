package ipam

import (
	"context"
	"fmt"
	"strconv"

	"berth/store"
)

// stateFormat is the number of the form that all records together have. The first one had none written down; the second
// has a record for each network's name, and networks that a Berth of the first one refuses to read (GA-26); the third has
// owners' rules, types, static bands and reservations that end, which a Berth before it would pass over.
const stateFormat = 3

func formatKey() []byte { return append([]byte{settingKeys}, "format"...) }

// upgrade brings the state into today's form, a page at a time, and refuses one of a newer form. It may be cut off
// anywhere and is gone on with by the next Open.
func (s *Service) upgrade(ctx context.Context) error {
	format, old, err := s.format(ctx)
	if err != nil || format == stateFormat && !old {
		return err
	}
	if format > stateFormat {
		return fmt.Errorf("%w: the state has the format %d of a newer Berth, and this one reads up to %d; run that one, or restore a backup of before (`berth restore`)", ErrDamaged, format, stateFormat)
	}
	page := kindRange(networkKeys)
	if format > 1 && !old {
		page.From = nil // its networks have their names; what is new is read as not there
	}
	for page.From != nil {
		page.Limit = pageSize
		var next []byte
		err := s.store.Update(ctx, func(tx store.Tx) (err error) {
			next, err = upgradeNetworks(tx, page)
			return err
		})
		if err != nil {
			return fmt.Errorf("bringing the state into the format %d: %w", stateFormat, err)
		}
		page.From = next
	}
	return s.store.Update(ctx, func(tx store.Tx) error {
		return tx.Put(formatKey(), strconv.AppendInt(nil, stateFormat, 10))
	})
}

// format reads the number of the state's form; an empty store, like one of the first form, has none. It also tells whether
// there are networks of an older form: a Berth before this one takes a state without any, and may have made some.
func (s *Service) format(ctx context.Context) (format int, old bool, err error) {
	err = s.store.View(ctx, func(tx store.Tx) error {
		raw, err := tx.Get(formatKey())
		if err != nil {
			return err
		}
		format = 1
		if string(raw) == restoring {
			return &refusal{ErrDamaged, "a backup is being put back into the store, and not all of it is there: where that was cut off, begin again with `berth restore --shared`"}
		}
		if raw != nil {
			if format, err = strconv.Atoi(string(raw)); err != nil {
				return fmt.Errorf("%w: the format of the state is %q", ErrDamaged, raw)
			}
		}
		for rec, err := range tx.Scan(kindRange(networkKeys)) {
			if err != nil {
				return err
			}
			old = old || len(rec.Value) > 0 && rec.Value[0] < recordVersion
		}
		return nil
	})
	return format, old, err
}

// upgradeNetworks writes a page of networks anew, with a record for the name of each, and tells where the next page begins.
func upgradeNetworks(tx store.Tx, page store.Range) (next []byte, err error) {
	var all []*Network
	for rec, err := range tx.Scan(page) {
		if err != nil {
			return nil, err
		}
		n := new(Network)
		if err := decodeJSON("a network", rec.Value, n); err != nil {
			return nil, err
		}
		all = append(all, n)
		next = append(append(next[:0], rec.Key...), 0)
	}
	for _, n := range all {
		if err := upgradeNetwork(tx, n); err != nil {
			return nil, err
		}
	}
	if len(all) < page.Limit {
		return nil, nil
	}
	return next, nil
}

func upgradeNetwork(tx store.Tx, n *Network) error {
	taken, err := tx.Get(nameKey(nil, n.Name))
	if err != nil {
		return err
	}
	if taken != nil && string(taken) != string(n.ID[:]) {
		n.Name = "net-" + n.ID.String() // two had the first digits of their ids in common
	}
	raw, err := encodeJSON(n)
	if err != nil {
		return err
	}
	if err := tx.Put(networkKey(nil, n.ID), raw); err != nil {
		return err
	}
	return tx.Put(nameKey(nil, n.Name), n.ID[:])
}
