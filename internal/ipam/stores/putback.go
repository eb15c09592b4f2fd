package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// OfCluster reports whether a store, or a backup of one, belongs to a cluster and not to one host.
func OfCluster(ctx context.Context, st store.Store) (cluster bool, err error) {
	err = st.View(ctx, func(tx store.Tx) error {
		plan, err := tx.Get(ledger.PlanKey())
		cluster = plan != nil
		return err
	})
	return cluster, err
}

// PutBack writes all records of a backup of a cluster's store to an empty one, and compares them through another
// handle. If it is interrupted, no Service opens the store, and the same call begins again.
func PutBack(ctx context.Context, backup, to, readBack store.Store, progress func(done,
	total int)) (records int, err error) {
	cluster, err := OfCluster(ctx, backup)
	if err == nil && !cluster {
		err = ipam.Refuse(ipam.ErrInvalid,
			"this is a backup of a host's own store, not of a cluster's; restore it without --shared")
	}
	if err != nil {
		return 0, err
	}
	p := &puttingBack{backup, to, progress, 0, 0}
	if err := backup.View(ctx, func(tx store.Tx) error {
		p.total = 0
		for _, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			p.total += 2 // written and compared
		}
		return nil
	}); err != nil {
		return 0, err
	}
	if err := p.begin(ctx); err != nil {
		return 0, err
	}
	if err := p.write(ctx); err != nil {
		return 0, err
	}
	if err := p.compare(ctx, readBack); err != nil {
		return 0, err
	}
	return p.total / 2, p.end(ctx)
}

type puttingBack struct {
	from, to    store.Store
	progress    func(done, total int)
	done, total int
}

func (p *puttingBack) step(n int) {
	if p.done += n; p.progress != nil {
		p.progress(min(p.done, p.total), p.total)
	}
}

// begin marks the store. It must be empty, or contain what an earlier call has written.
func (p *puttingBack) begin(ctx context.Context) error {
	return p.to.Update(ctx, func(tx store.Tx) error {
		if begun, err := mayPutBack(tx); begun || err != nil {
			return err
		}
		return tx.Put(ledger.FormatKey(), []byte(ledger.Restoring))
	})
}

// MayPutBack returns the refusal of PutBack for a store that has other records.
func MayPutBack(ctx context.Context, to store.Store) error {
	return to.View(ctx, func(tx store.Tx) error {
		_, err := mayPutBack(tx)
		return err
	})
}

// mayPutBack reports whether a call of PutBack has begun before. It refuses other records.
func mayPutBack(tx store.Tx) (begun bool, err error) {
	format, err := tx.Get(ledger.FormatKey())
	if err != nil || string(format) == ledger.Restoring {
		return err == nil, err
	}
	for _, err := range tx.Scan(store.Range{Limit: 1}) {
		if err == nil {
			err = ipam.Refuse(ipam.ErrInUse,
				"the store already has records of Berth, but a backup can be restored only into an empty store: give "+
					"another prefix, or remove the records")
		}
		return false, err
	}
	return false, nil
}

// restorePage is how many records a transaction writes: those of etcd are small.
const restorePage = 2 * ledger.SharedPageSize

// besidesFormat copies all records except the format's, which comes last.
func besidesFormat() [2]*rangeCopy {
	format := ledger.FormatKey()
	return [2]*rangeCopy{
		{keys: store.Range{To: format}, limit: restorePage, want: asItIs},
		{keys: store.Range{From: keyBehind(format)}, limit: restorePage, want: asItIs},
	}
}

// write makes the store equal to the backup. What an earlier call has written stays if it is right.
func (p *puttingBack) write(ctx context.Context) error { return p.each(ctx, p.to.Update, write) }

var errNotPutBack = errors.New("the restored records differ from the backup")

// compare reads everything back.
func (p *puttingBack) compare(ctx context.Context, readBack store.Store) error {
	return p.each(ctx, readBack.View, isPutBack)
}

func (p *puttingBack) each(ctx context.Context, to viewing, is holding) error {
	for _, records := range besidesFormat() {
		if err := records.each(ctx, p.from.View, to, is, p.step); err != nil {
			return err
		}
	}
	return nil
}

// isPutBack compares a record that was read back with the backup's.
func isPutBack(_ store.Tx, key, want, got []byte) error {
	switch {
	case want == nil:
		return fmt.Errorf("%w: the backup has no record %q, but the store does", errNotPutBack, key)
	case got == nil:
		return fmt.Errorf("%w: the record %q is missing in the store", errNotPutBack, key)
	case !bytes.Equal(got, want):
		return fmt.Errorf("%w in the record %q", errNotPutBack, key)
	}
	return nil
}

// end allows the store to be opened.
func (p *puttingBack) end(ctx context.Context) error {
	var format []byte
	err := p.from.View(ctx, func(tx store.Tx) error {
		raw, err := tx.Get(ledger.FormatKey())
		format = slices.Clone(raw)
		return err
	})
	if err != nil {
		return err
	}
	err = p.to.Update(ctx, func(tx store.Tx) error { return write(tx, ledger.FormatKey(), format, nil) })
	p.step(2)
	return err
}
