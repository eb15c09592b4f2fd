package cluster

import (
	"context"
	"encoding/hex"
	"fmt"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// The keys in a host's own store for its id and its cluster.
func ownHostKey() []byte { return append([]byte{ledger.SettingKeys}, "host"...) }
func clusterKey() []byte { return append([]byte{ledger.SettingKeys}, "cluster"...) }

// OwnHost returns the id of the host whose own store st is. It is drawn once. Another state is another host, even with
// the same name.
func OwnHost(ctx context.Context, st store.Store) (id ipam.ID, err error) {
	err = st.Update(ctx, func(tx store.Tx) error {
		raw, err := tx.Get(ownHostKey())
		if err != nil {
			return err
		}
		if raw == nil {
			id = ipam.NewID()
			return tx.Put(ownHostKey(), []byte(id.String()))
		}
		id, err = ipam.ParseID(string(raw))
		return err
	})
	if err != nil {
		return ipam.ID{}, fmt.Errorf("the host's own id: %w", err)
	}
	return id, nil
}

// KnownCluster returns the id of the cluster of the host whose own store st is. It is empty if the host has not reached
// a cluster yet.
func KnownCluster(ctx context.Context, st store.Store) (cluster string, err error) {
	err = st.View(ctx, func(tx store.Tx) error {
		raw, err := tx.Get(clusterKey())
		cluster = string(raw)
		return err
	})
	return cluster, err
}

// KeepCluster records the host's cluster, so that another cluster at the same endpoints is refused from then on.
func KeepCluster(ctx context.Context, st store.Store, cluster string) error {
	err := st.Update(ctx, func(tx store.Tx) error {
		raw, err := tx.Get(clusterKey())
		switch {
		case err != nil || string(raw) == cluster:
			return err
		case raw != nil:
			return fmt.Errorf("this host belongs to the cluster %s, not to %s", raw, cluster)
		}
		return tx.Put(clusterKey(), []byte(cluster))
	})
	if err != nil {
		return fmt.Errorf("the cluster of this host: %w", err)
	}
	return nil
}

// MarkOf returns the last bytes of ids that are made in the store of a cluster (Member.Mark). They are the first bytes
// of the cluster's own id, which has 32 hexadecimal digits. The mark is zero if cluster is no such id.
func MarkOf(cluster string) (mark [4]byte) {
	if b, err := hex.DecodeString(cluster); err == nil {
		copy(mark[:], b)
	}
	return mark
}
