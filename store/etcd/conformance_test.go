package etcd

import (
	"context"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"

	"berth/store"
	"berth/store/storetest"
)

// both suites, over servers of different kinds. The stores are patient, because the suites take no answer but the right
// one.
func conform(t *testing.T, endpoint string, change ...func(*Config)) {
	config := func() Config {
		cfg := patient()
		cfg.Endpoints = []string{endpoint}
		for _, c := range change {
			c(&cfg)
		}
		return cfg
	}
	t.Run("Store", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) store.Store {
			return reading{open(t, config())}
		})
	})
	t.Run("Shared", func(t *testing.T) {
		storetest.RunShared(t, func(t *testing.T) func() store.Shared {
			cfg := config()
			return func() store.Shared { return reading{open(t, cfg)} }
		})
	})
}

func TestConformance(t *testing.T) { conform(t, embedded) }

// The oldest server that Berth works with is Debian 12's.
func TestConformanceDebian(t *testing.T) { conform(t, startDebian(t).endpoint) }

// A server that takes small transactions only has nearly every update of several records go through the gate.
func TestConformanceSmallTransactions(t *testing.T) {
	conform(t, otherEmbedded(t, func(c *embed.Config) { c.MaxTxnOps = 16 }))
}

// reading is a handle of whose bundled records none is put that was not read: in these suites several handles put
// records of one key (Config.Bundle).
type reading struct{ *Store }

func (r reading) Update(ctx context.Context, fn func(store.Tx) error) error {
	if r.cfg.Bundle == nil {
		return r.Store.Update(ctx, fn)
	}
	return r.Store.Update(ctx, func(tx store.Tx) error { return fn(readingTx{tx}) })
}

type readingTx struct{ store.Tx }

func (t readingTx) Put(key, value []byte) error {
	if len(key) > 0 {
		if _, err := t.Tx.Get(key); err != nil {
			return err
		}
	}
	return t.Tx.Put(key, value)
}

// bundled has all new records go into bundles.
func bundled(cfg *Config) { cfg.Bundle = []byte{} }

func TestConformanceBundled(t *testing.T) { conform(t, embedded, bundled) }

// What is bundled may go through the gate as well.
func TestConformanceBundledSmall(t *testing.T) {
	conform(t, otherEmbedded(t, func(c *embed.Config) { c.MaxTxnOps = 16 }), bundled)
}
