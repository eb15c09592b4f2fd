package etcd

import (
	"testing"

	"go.etcd.io/etcd/server/v3/embed"

	"berth/store"
	"berth/store/storetest"
)

// both suites, over servers of different kinds. The stores are patient, because the suites take no answer but the right
// one.
func conform(t *testing.T, endpoint string) {
	t.Run("Store", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) store.Store {
			cfg := patient()
			cfg.Endpoints = []string{endpoint}
			return open(t, cfg)
		})
	})
	t.Run("Shared", func(t *testing.T) {
		storetest.RunShared(t, func(t *testing.T) func() store.Shared {
			cfg := patient()
			cfg.Endpoints = []string{endpoint}
			return func() store.Shared { return open(t, cfg) }
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
