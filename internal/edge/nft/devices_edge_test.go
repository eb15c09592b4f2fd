//go:build edge

package nft

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestCrowdOfAddresses: if devices change faster than the provider reads, the kernel stops its notifications. The
// provider subscribes again, and hears of later changes.
func TestCrowdOfAddresses(t *testing.T) {
	p := apart(t)
	kernel, err := netlink.NewHandle(unix.NETLINK_ROUTE) // it stays in this namespace, whichever thread uses it
	if err != nil {
		t.Fatal(err)
	}
	defer kernel.Close()
	device, err := kernel.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	add := func(n int) error {
		addr, err := netlink.ParseAddr(fmt.Sprintf("10.9.%d.%d/32", n/256, n%256))
		if err != nil {
			return err
		}
		return kernel.AddrAdd(device, addr)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, err := watchDevices(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 4000 { // nothing reads these notifications
		if err := add(n); err != nil {
			t.Fatal(err)
		}
	}
	if p.listen(ctx, w); ctx.Err() != nil {
		t.Fatal("the kernel goes on to tell of devices: the crowd is too small")
	}
	go func() {
		defer cancel()
		heard := 0
		for n := 4000; ctx.Err() == nil && heard < 3; n++ { // two are the starts of watches
			p.stray.Store(false)
			if err := add(n); err != nil {
				t.Error(err)
				return
			}
			for begun := time.Now(); !p.stray.Load() && time.Since(begun) < time.Second; {
				time.Sleep(time.Millisecond)
			}
			if p.stray.Load() {
				heard++
			}
		}
	}()
	p.hear(ctx, w)
	if ctx.Err() == context.DeadlineExceeded {
		t.Error("an address that came after the crowd was not heard of")
	}
}
