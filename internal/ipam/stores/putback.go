package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
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
	if err := p.eachPage(ctx, p.write); err != nil {
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

// begin marks the store, which must be empty, and takes away what a call before has written.
func (p *puttingBack) begin(ctx context.Context) error {
	err := p.to.Update(ctx, func(tx store.Tx) error {
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
	key := ledger.FormatKey()
	for _, r := range []store.Range{{To: key}, {From: append(slices.Clone(key), 0)}} {
		r.Limit = restorePage
		for n := restorePage; err == nil && n == restorePage; {
			err = p.to.Update(ctx, func(tx store.Tx) (err error) {
				n, err = edit.DeleteWhile(tx, r, func(int, []byte) bool { return true })
				return err
			})
		}
	}
	return err
}

// restorePage is how many records a transaction puts back: those of etcd are small.
const restorePage = 2 * ledger.SharedPageSize

// eachPage hands out the records of the backup in pages, but for that of the format.
func (p *puttingBack) eachPage(ctx context.Context, fn func(context.Context, []store.Record) error) error {
	for r := (store.Range{Limit: restorePage}); ; {
		var page []store.Record
		read := 0
		err := p.from.View(ctx, func(tx store.Tx) error {
			for rec, err := range tx.Scan(r) {
				if err != nil {
					return err
				}
				if read++; !bytes.Equal(rec.Key, ledger.FormatKey()) {
					page = append(page, store.Record{Key: slices.Clone(rec.Key), Value: slices.Clone(rec.Value)})
				}
				r.From = append(slices.Clone(rec.Key), 0)
			}
			return nil
		})
		if err == nil {
			err = fn(ctx, page)
		}
		if err != nil {
			return err
		}
		if read < restorePage {
			return nil
		}
	}
}

func (p *puttingBack) write(ctx context.Context, page []store.Record) error {
	err := p.to.Update(ctx, func(tx store.Tx) error {
		for _, rec := range page {
			if err := tx.Put(rec.Key, rec.Value); err != nil {
				return err
			}
		}
		return nil
	})
	p.step(len(page))
	return err
}

var errNotPutBack = errors.New("what was put back differs from the backup")

// compare reads everything back.
func (p *puttingBack) compare(ctx context.Context, readBack store.Store) error {
	read := 0
	err := p.eachPage(ctx, func(ctx context.Context, page []store.Record) error {
		p.step(len(page))
		return readBack.View(ctx, func(tx store.Tx) error {
			for _, rec := range page {
				got, err := tx.Get(rec.Key)
				if err != nil {
					return err
				}
				if got == nil || !bytes.Equal(got, rec.Value) {
					return fmt.Errorf("%w in the record %q", errNotPutBack, rec.Key)
				}
				read++
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	return readBack.View(ctx, func(tx store.Tx) error {
		there := -1 // the format's
		for _, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			there++
		}
		if there != read {
			return fmt.Errorf("%w: it has %d records, and there are %d", errNotPutBack, read, there)
		}
		return nil
	})
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
	return p.to.Update(ctx, func(tx store.Tx) error {
		if format == nil {
			return tx.Delete(ledger.FormatKey())
		}
		return tx.Put(ledger.FormatKey(), format)
	})
}
