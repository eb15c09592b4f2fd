package ipamtest

import (
	"context"
	"flag"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/etcd"
	"berth/store/storetest"
)

// OverEtcd makes tests keep in etcd what they keep in files, under a prefix for each path, by a host of a cluster.
// It is for runs by hand (`make ipam-etcd`): they take long.
var OverEtcd = flag.String("etcd", "", "`URL` of an etcd that takes the place of files")

// atPath has the place of each handle: its path, and whether a service uses it.
var atPath sync.Map

type place struct {
	path     string
	followed atomic.Bool
}

func openEtcd(t rapid.TB, path string) store.Store {
	t.Helper()
	st, err := etcd.Open(context.Background(),
		etcd.Config{Endpoints: []string{*OverEtcd}, Prefix: "test" + path + "/", Timeout: time.Minute,
			Bundle: cluster.Bundled()})
	fine(t, err)
	atPath.Store(st, &place{path: path})
	return st
}

// onShared makes the host of cfg a member of a cluster if hosts share its store. A second service on one handle
// gets another handle.
func onShared(t rapid.TB, cfg service.Config) service.Config {
	t.Helper()
	faulty, before := cfg.Store.(*storetest.Faulty)
	if before {
		cfg.Store = faulty.Inner()
	}
	shared, ok := cfg.Store.(*etcd.Store)
	switch {
	case !ok && before:
		cfg.Store = faulty
		return cfg
	case !ok:
		return cfg
	}
	at, _ := atPath.Load(shared)
	again := at.(*place).followed.Swap(true)
	switch {
	case again:
		cfg.Store = openEtcd(t, at.(*place).path)
	case before:
		cfg.Store = faultyShared{shared, faulty}
	}
	id := ipam.ID{1}
	copy(id[1:], cfg.Host)
	cfg.Member = &ipam.Member{Host: id, Session: ipam.NewID(), Mark: cluster.MarkOf(shared.Cluster())}
	return cfg
}

// faultyShared is a shared store with a Faulty in front of it.
type faultyShared struct {
	store.Shared
	faulty *storetest.Faulty
}

func (f faultyShared) View(ctx context.Context, fn func(store.Tx) error) error {
	return f.faulty.View(ctx, fn)
}

func (f faultyShared) Update(ctx context.Context, fn func(store.Tx) error) error {
	return f.faulty.Update(ctx, fn)
}

func (f faultyShared) Watch(ctx context.Context, prefix []byte) iter.Seq2[store.Change, error] {
	return f.faulty.Watch(ctx, prefix)
}

func (f faultyShared) Close() error { return f.faulty.Close() }
