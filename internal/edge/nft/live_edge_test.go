//go:build edge

package nft

import (
	"errors"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"berth/internal/edge"

	"golang.org/x/sys/unix"
)

// apart returns a provider in a new network namespace on the test's thread. Both end with the test.
func apart(t *testing.T) *Provider {
	t.Helper()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal("this test needs root:", err)
	}
	p, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// TestTicket: a transaction fails as a whole if its ticket has expired, for example because the process was frozen
// between its look at the clock and the call. It also fails if its ranges have expired.
func TestTicket(t *testing.T) {
	p := apart(t)
	s := edge.State{Ranges: []edge.Range{
		{From: netip.MustParseAddr("192.0.2.0"), To: netip.MustParseAddr("192.0.2.9"), OnCut: edge.Withdraw},
		{From: netip.MustParseAddr("2001:db8::"), To: netip.MustParseAddr("2001:db8::9"), OnCut: edge.Withdraw},
	}}
	err := p.Set(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	live := func() int {
		found, err := p.kernel.structure()
		if err != nil {
			t.Fatal(err)
		}
		all, err := p.readLive(found)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	until := func(d time.Duration) edge.BootTime {
		now, err := edge.Now()
		if err != nil {
			t.Fatal(err)
		}
		return now.Add(d)
	}
	ticket, err := p.takeTicket()
	time.Sleep(ticketTime + 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.spend(ticket, until(time.Minute), nil); !errors.Is(err, unix.ENOENT) {
		t.Errorf("with a ticket that is over: %v", err)
	}
	if n := live(); n != 0 || p.allowed.Load().ends != 0 {
		t.Errorf("%d sets have live elements all the same, until %d", n, p.allowed.Load().ends)
	}
	if err := p.extend(until(200*time.Millisecond), nil); err != nil {
		t.Fatal(err)
	}
	if n := live(); n != 4 {
		t.Errorf("%d sets have live elements, not 4", n)
	}
	time.Sleep(250 * time.Millisecond)
	if err := p.extend(until(time.Minute), p.live); !errors.Is(err, unix.ENOENT) {
		t.Errorf("in time, of ranges that have ended: %v", err)
	}
	if n := live(); n != 0 {
		t.Errorf("%d sets have live elements all the same", n)
	}
}
