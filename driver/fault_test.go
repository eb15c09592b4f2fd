package driver

import (
	"fmt"
	"testing"

	"berth/store"
	"berth/store/storetest"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// TestFullDisk tests that a full disk refuses new work with the reason, loses nothing, and that work continues as soon
// as there is room.
func TestFullDisk(t *testing.T) {
	b := newBench(t)
	faulty := storetest.NewFaulty(b.store)
	b.use(faulty)
	p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	held := b.take(p, "", mac(1))
	full := storetest.Fault{Before: fmt.Errorf("%w: make room", store.ErrNoSpace)}

	for range 3 {
		faulty.Next(full, full, full, full)
		_, refused := b.tryTake(p, "", mac(2))
		wantText(t, refused, "no space", "make room")
		wantText(t, b.send("ReleaseAddress", api.ReleaseAddressRequest{PoolID: p, Address: held}, &struct{}{}),
			"no space", "make room")
		_, refused = b.tryPool(api.RequestPoolRequest{AddressSpace: "lab", Pool: "10.0.0.0/24"})
		wantText(t, refused, "no space")
		wantText(t, b.send("ReleasePool", api.ReleasePoolRequest{PoolID: p}, &struct{}{}), "no space", "make room")
	}
	if got := b.take(p, "", mac(2)); got != "10.0.0.2" {
		t.Errorf("the first address with room is %s: a refused one was kept", got)
	}
	if _, refused := b.tryTake(p, held, mac(3)); refused == "" {
		t.Errorf("%s was released by a call that was refused", held)
	}
	b.pool("lab", "10.0.0.0/24", "", nil)
	b.check()
}

// TestUnknownOutcome tests that an unacknowledged change may or may not be stored, that each acknowledged one is
// stored, and that all requests are refused until the store is opened again.
func TestUnknownOutcome(t *testing.T) {
	for name, fault := range map[string]storetest.Fault{
		"committed": {After: fmt.Errorf("the disk does not answer")},
		"lost":      {Lost: fmt.Errorf("the disk does not answer")},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			faulty := storetest.NewFaulty(b.store)
			b.use(faulty)
			p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
			held := b.take(p, "", mac(1))
			faulty.Next(fault)
			_, refused := b.tryTake(p, "", mac(2))
			wantText(t, refused, "unknown", "the disk does not answer")
			for n := range 3 {
				_, refused := b.tryTake(p, "", mac(3+n))
				wantText(t, refused, "unknown")
				wantText(t, b.send("ReleaseAddress", api.ReleaseAddressRequest{PoolID: p, Address: held}, &struct{}{}),
					"unknown")
			}
			faulty.Heal()
			b.use(faulty)
			if got := b.take(p, "", mac(1)); got != held {
				t.Errorf("the acknowledged address moved from %s to %s", held, got)
			}
			if got := b.take(p, "", mac(2)); got != "10.0.0.2" {
				t.Errorf("after a restart it gets %s", got)
			}
			b.check()
		})
	}
}
