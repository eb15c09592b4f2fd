package cluster

import (
	"context"
	"fmt"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// CheckOwn is stores.CheckStore for the records that a host keeps in its own store for the shared one. Each queued
// release and each headroom address must decode and be valid.
func CheckOwn(ctx context.Context, own store.Store) (problems []string, err error) {
	err = own.View(ctx, func(tx store.Tx) error {
		problems = nil
		known := map[ipam.ID]*headroom{}
		for _, kind := range []struct {
			letter byte
			check  func(store.Record) error
		}{{outboxKeys, checkQueued},
			{headroomKeys, func(rec store.Record) error { return takeIn(known, rec) }}} {
			for rec, err := range tx.Scan(ledger.KindRange(kind.letter)) {
				if err != nil {
					return err
				}
				if err := kind.check(rec); err != nil {
					problems = append(problems, err.Error())
				}
			}
		}
		return nil
	})
	return problems, err
}

func checkQueued(rec store.Record) error {
	q, err := decodeQueued(rec)
	if err == nil && q.Pool == (ipam.ID{}) {
		err = fmt.Errorf("%w: the release number %d, which waits for the cluster's store, names no pool",
			ipam.ErrDamaged, q.Seq)
	}
	return err
}
