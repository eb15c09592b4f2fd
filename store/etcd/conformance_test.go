package etcd

import (
	"testing"
	"time"

	"berth/store"
	"berth/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, Config{Prefix: freshPrefix()}) })
}

func TestShared(t *testing.T) {
	storetest.RunShared(t, func(t *testing.T) func() store.Shared {
		cfg := Config{Prefix: freshPrefix(), Timeout: 30 * time.Second}
		return func() store.Shared { return open(t, cfg) }
	})
}
