package main

import (
	"context"
	"fmt"

	"berth/store"
	"berth/store/bolt"
	"berth/store/etcd"
)

// backup writes a snapshot of the shared store to a new file with the cluster's id.
func (c *clusterStore) backup(ctx context.Context, path string) (id string, err error) {
	st := c.opened()
	if st == nil {
		return "", fmt.Errorf("%w: the daemon has not reached it since it started, so there is nothing to back up",
			store.ErrAway)
	}
	return st.Cluster(), backupShared(ctx, st, path)
}

// backupShared writes all records of the shared store to a new file.
func backupShared(ctx context.Context, st *etcd.Store, path string) error {
	return st.View(ctx, func(tx store.Tx) error {
		if away := st.Reach().Err; away != nil {
			return fmt.Errorf("%w; this host's copy may be out of date, so it cannot serve as a backup", away)
		}
		return bolt.Write(ctx, path, st.Cluster(), func(put func(key, value []byte) error) error {
			for rec, err := range tx.Scan(store.Range{}) {
				if err == nil {
					err = put(rec.Key, rec.Value)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}
