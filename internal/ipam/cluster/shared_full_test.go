package cluster

import (
	"context"
	"errors"
	"testing"

	"berth/internal/ipam"
	"berth/store"
	"berth/store/storetest"
)

// fills makes the host's own store fail all writes.
func (h *sharingHost) fills() {
	h.ours.Each(func(int) storetest.Fault { return storetest.Fault{Before: store.ErrNoSpace} })
}

// TestReleaseOnFullHost: a release succeeds even if neither the shared store nor the host's own can be written. It is
// made as soon as the shared store is in reach, and ends only its lease.
func TestReleaseOnFullHost(t *testing.T) {
	common, h, pool := newLan(t, 0)
	addr := h.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
	h.fills()
	h.handle.Cut(errCut)
	h.give(pool, addr)
	h.give(pool, addr)
	if got := h.State().Waiting; got != 1 {
		t.Errorf("%d wait", got)
	}
	isLease(t, common, addr, ipam.Automatic, testMAC(1))
	h.handle.Heal()
	h.mustLook() // the own store is still full
	isFree(t, common, addr)
	if got := h.State().Waiting; got != 0 {
		t.Errorf("%d wait in the end", got)
	}
	if got := h.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(2), Preferred: addr}); got != addr {
		t.Errorf("it is given as %s", got)
	}
}

// TestReleasePoolOnFullHost: so does the release of a pool, in reach of the shared store or not.
func TestReleasePoolOnFullHost(t *testing.T) {
	for _, away := range []bool{false, true} {
		common, h, pool := newLan(t, 2)
		addr := h.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
		h.fills()
		if away {
			h.handle.Cut(errCut)
		}
		fine(t, h.ReleasePool(context.Background(), pool))
		if away {
			h.handle.Heal()
		}
		h.mustLook()
		isFree(t, common, addr)
		if left := inStore(t, common); len(left) > 0 {
			t.Errorf("away %t: left in the store: %q", away, left)
		}
	}
}

// TestHeadroomOnFullHost: the use of headroom ends. The address is used again only when that can be written.
func TestHeadroomOnFullHost(t *testing.T) {
	common, h, pool := newLan(t, 1)
	h.handle.Cut(errCut)
	addr := h.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
	h.fills()
	h.give(pool, addr)
	if _, err := h.ask(ipam.AddressRequest{Pool: pool, MAC: testMAC(2)}); !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("a new use: %v", err)
	}
	h.ours.Each(nil)
	if got := h.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(2)}); got != addr {
		t.Errorf("it is given as %s", got)
	}
	h.handle.Heal()
	h.mustLook()
	isLease(t, common, addr, ipam.Automatic, testMAC(2))
	h.sound()
}
