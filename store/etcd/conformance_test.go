package etcd

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"

	"berth/store"
	"berth/store/storetest"
)

// conform runs both suites on a kind of server. The stores are patient, because the suites accept only the right
// answer. Under -short each test of the suites runs on two randomly drawn kinds.
func conform(t *testing.T, kind int, endpoint string, change ...func(*Config)) {
	t.Parallel()
	config := func(t *testing.T) Config {
		_, test, _ := strings.Cut(t.Name(), "/")
		if testing.Short() && !inSample(test, kind) {
			t.Skipf("another kind of server was drawn, by the seed %#x", sampleSeed)
		}
		cfg := patient()
		cfg.Endpoints = []string{endpoint}
		for _, c := range change {
			c(&cfg)
		}
		return cfg
	}
	t.Run("Store", func(t *testing.T) {
		t.Parallel()
		storetest.Run(t, func(t *testing.T) store.Store {
			return reading{open(t, config(t))}
		})
	})
	t.Run("Shared", func(t *testing.T) {
		t.Parallel()
		storetest.RunShared(t, func(t *testing.T) func() store.Shared {
			cfg := config(t)
			return func() store.Shared { return reading{open(t, cfg)} }
		})
	})
}

const kinds = 5

var sampleSeed = rand.Uint64()

// inSample tells whether a test of the suites runs on a kind of server.
func inSample(test string, kind int) bool {
	h := fnv.New64()
	_, _ = h.Write([]byte(test))
	return slices.Contains(rand.New(rand.NewPCG(sampleSeed, h.Sum64())).Perm(kinds)[:2], kind)
}

func TestConformance(t *testing.T) { conform(t, 0, embedded()) }

// The oldest server that Berth works with is Debian 12's.
func TestConformanceDebian(t *testing.T) { conform(t, 1, startDebian(t).endpoint) }

// On a server that takes only small transactions, nearly every update of several records goes through the gate.
func TestConformanceSmallTransactions(t *testing.T) {
	conform(t, 2, otherEmbedded(t, func(c *embed.Config) { c.MaxTxnOps = 16 }))
}

// bundled makes all new records go into bundles.
func bundled(cfg *Config) { cfg.Bundle = []byte{} }

func TestConformanceBundled(t *testing.T) { conform(t, 3, embedded(), bundled) }

// Bundled records may go through the gate as well.
func TestConformanceBundledSmall(t *testing.T) {
	conform(t, 4, otherEmbedded(t, func(c *embed.Config) { c.MaxTxnOps = 16 }), bundled)
}

// reading is a handle that reads each bundled record before it puts it: in these suites several handles put
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
