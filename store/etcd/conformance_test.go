package etcd

import (
	"testing"

	"berth/store"
	"berth/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, Config{Prefix: freshPrefix()}) })
}
