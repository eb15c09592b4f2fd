package driver

import (
	"fmt"
	"strings"
	"testing"

	"berth/store"
	"berth/store/storetest"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// TestFullDisk tests that a full disk refuses new work with the reason and loses nothing. Releases succeed, and are
// made as soon as there is room.
func TestFullDisk(t *testing.T) {
	b := newBench(t)
	faulty := storetest.NewFaulty(b.store)
	b.use(faulty)
	p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	held := b.take(p, "", mac(1))
	full := storetest.Fault{Before: fmt.Errorf("%w: make room", store.ErrNoSpace)}

	for range 3 {
		faulty.Each(func(int) storetest.Fault { return full })
		_, refused := b.tryTake(p, "", mac(2))
		wantText(t, refused, "no space", "make room")
		b.give(p, held)
		_, refused = b.tryPool(api.RequestPoolRequest{AddressSpace: "lab", Pool: "10.0.0.0/24"})
		wantText(t, refused, "no space")
	}
	faulty.Each(nil)
	if got := b.take(p, held, mac(3)); got != held {
		t.Errorf("%s was released on the full disk, and another gets %s", held, got)
	}
	if got := b.take(p, "", mac(2)); got != "10.0.0.2" {
		t.Errorf("the first address with room is %s: a refused one was kept", got)
	}
	faulty.Each(func(int) storetest.Fault { return full })
	b.drop(p)
	faulty.Each(nil)
	b.pool("lab", "10.0.0.0/24", "", nil)
	if _, refused := b.tryTake(p, "", mac(4)); !strings.Contains(refused, "there is no pool") {
		t.Errorf("a pool that was released on the full disk answers %q", refused)
	}
	b.check()
}

// TestUnknownOutcome tests that an unacknowledged change may or may not be stored, that each acknowledged one is
// stored, and that all requests but releases are refused until the store is opened again.
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
				b.give(p, held) // it waits, and the restart loses it
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
