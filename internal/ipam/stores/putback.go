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

// OfCluster tells whether a store, or a backup of one, is that of a cluster, and not a host's own.
func OfCluster(ctx context.Context, st store.Store) (cluster bool, err error) {
	err = st.View(ctx, func(tx store.Tx) error {
		plan, err := tx.Get(ledger.PlanKey())
		cluster = plan != nil
		return err
	})
	return cluster, err
}

// PutBack brings all records of a backup of a cluster's store into one that is empty, and compares them through another
// handle on it. Cut off, it leaves a store that no Service opens, and the same call begins again.
func PutBack(ctx context.Context, backup, to, readBack store.Store, progress func(done,
	total int)) (records int, err error) {
	cluster, err := OfCluster(ctx, backup)
	if err == nil && !cluster {
		err = ipam.Refuse(ipam.ErrInvalid,
			"this is a backup of a host's own store, and not of a cluster's; it is put back without --shared")
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
			p.total += 2 // written, and compared
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

// begin marks the store, which must be empty, or have what a call before has written.
func (p *puttingBack) begin(ctx context.Context) error {
	return p.to.Update(ctx, func(tx store.Tx) error {
		format, err := tx.Get(ledger.FormatKey())
		if err != nil {
			return err
		}
		if string(format) == ledger.Restoring {
			return nil
		}
		for _, err := range tx.Scan(store.Range{Limit: 1}) {
			if err == nil {
				err = ipam.Refuse(ipam.ErrInUse,
					"there are records of Berth there already, and a backup is put back into an empty store: give "+
						"another prefix, or take away what is there")
			}
			return err
		}
		return tx.Put(ledger.FormatKey(), []byte(ledger.Restoring))
	})
}

// restorePage is how many records a transaction puts back: those of etcd are small.
const restorePage = 2 * ledger.SharedPageSize

// besidesFormat copies all records but that of the format, which comes last.
func besidesFormat() [2]*rangeCopy {
	format := ledger.FormatKey()
	return [2]*rangeCopy{
		{keys: store.Range{To: format}, limit: restorePage, want: asItIs},
		{keys: store.Range{From: keyBehind(format)}, limit: restorePage, want: asItIs},
	}
}

// write makes the store what the backup is. What a call before has written of it stays, and the rest goes.
func (p *puttingBack) write(ctx context.Context) error { return p.each(ctx, p.to.Update, write) }

var errNotPutBack = errors.New("what was put back differs from the backup")

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

// isPutBack holds a record that was read back against that of the backup.
func isPutBack(_ store.Tx, key, want, got []byte) error {
	switch {
	case want == nil:
		return fmt.Errorf("%w: it has no record %q, which is there", errNotPutBack, key)
	case got == nil:
		return fmt.Errorf("%w: its record %q is not there", errNotPutBack, key)
	case !bytes.Equal(got, want):
		return fmt.Errorf("%w in the record %q", errNotPutBack, key)
	}
	return nil
}

// end has the store be opened from now on.
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
