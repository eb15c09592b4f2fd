package main

import (
	"context"
	"errors"

	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/service"
	"berth/internal/ipam/stores"
	"berth/store"
	"berth/store/etcd"
	"berth/store/mem"
)

// openMend opens a second handle on the shared store for mending. For a dry run it is a copy in memory.
func (c *clusterStore) openMend(ctx context.Context, dry bool) (cluster.MendStore, error) {
	cfg, err := c.known(ctx)
	if err != nil {
		return cluster.MendStore{}, err
	}
	cfg.Mends, cfg.Create, cfg.Timeout = true, !dry, etcdPatience
	var back *store.Back
	st, err := etcd.Open(ctx, cfg)
	switch {
	case dry && errors.As(err, &back) && back.Emptied:
		return c.mendOn(ctx, mem.New(), cfg.Cluster, func() store.Trace { return store.Trace{} })
	case err != nil:
		return cluster.MendStore{}, err
	case !dry:
		return c.mendOn(ctx, st, cfg.Cluster, st.Trace)
	}
	copied, err := inMemory(ctx, st)
	if err = errors.Join(err, st.Close()); err != nil {
		return cluster.MendStore{}, err
	}
	return c.mendOn(ctx, copied, cfg.Cluster, func() store.Trace { return store.Trace{} })
}

// mendOn opens the Service for mending.
func (c *clusterStore) mendOn(ctx context.Context, st store.Shared, mark string,
	trace func() store.Trace) (cluster.MendStore, error) {
	member, cfg := c.member, c.ipam
	member.Mark = cluster.MarkOf(mark)
	cfg.Store, cfg.Member, cfg.Mends = st, &member, true
	service, err := service.Open(ctx, cfg)
	if err != nil {
		return cluster.MendStore{}, errors.Join(err, st.Close())
	}
	return cluster.MendStore{Service: service, Trace: trace, Close: st.Close}, nil
}

// inMemory returns a copy of a store in memory.
func inMemory(ctx context.Context, from store.Store) (*mem.Store, error) {
	to := mem.New()
	return to, stores.Fill(ctx, from, to)
}

// trust marks the open store as trusted.
func (c *clusterStore) trust(at store.Trace) {
	if st := c.opened(); st != nil {
		st.Trust(at)
	}
}

// running returns what runs on this host; nil if nobody knows.
func (c *clusterStore) running(ctx context.Context) (*ipam.EngineView, error) {
	if c.see == nil {
		return nil, nil
	}
	return c.see(ctx)
}
