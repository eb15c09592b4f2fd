package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
	"berth/store/mem"
)

// What is new is refused at once with the reason, and nothing of it is there afterwards; what runs goes on.
func TestAwayRefused(t *testing.T) {
	common, a, pool := newLan(t, 0)
	web := ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "web"}
	had := a.take(web)
	before := inStore(t, common)
	a.handle.Cut(errCut)

	a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(2)})
	a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(2), Preferred: addrs("99")[0]})
	a.refusedAway(ipam.AddressRequest{Pool: pool, Gateway: true, Preferred: addrs("98")[0]})
	if _, err := a.RequestPool(context.Background(), ipam.PoolRequest{Network: "lan", CIDR: lanCIDR}); !errors.Is(err,
		ipam.ErrAway) || !strings.Contains(err.Error(), errCut.Error()) {
		t.Fatal(err)
	}
	if _, err := a.Edit(context.Background(), ipam.EditOptions{}, &ipam.RemoveNetwork{Network: "lan"}); !errors.Is(err,
		ipam.ErrAway) {
		t.Fatal(err)
	}
	if st := a.State(); !errors.Is(st.Err, store.ErrAway) || st.Since.IsZero() || st.Fresh.IsZero() || st.Waiting != 0 {
		t.Fatalf("%+v", st)
	}
	if svc, err := a.service(); err != nil || svc == nil {
		t.Fatal("nothing can be read any more:", err)
	}
	// Invariant 3: what an endpoint has is given to no second one. What was given before the daemon's start is in
	// doubt, and its endpoint has it again, once.
	for _, again := range []ipam.AddressRequest{web, {Pool: pool, MAC: testMAC(1)},
		{Pool: pool, MAC: testMAC(1), Name: "web", Preferred: had}} {
		a.refusedAway(again)
		a.handle.Heal()
		a.boot()
		a.open()
		a.handle.Cut(errCut)
		if got := a.take(again); got != had {
			t.Fatalf("%+v got %s after %s", again, got, had)
		}
		a.refusedAway(again)
	}
	if got := a.take(ipam.AddressRequest{Pool: pool, Gateway: true}); got != lanCIDR.Addr().Next() {
		t.Fatal("the gateway is", got)
	}
	a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "db"})
	a.refusedAway(ipam.AddressRequest{Pool: pool, Preferred: had})

	a.handle.Heal()
	if after := inStore(t, common); strings.Join(after, ";") != strings.Join(before, ";") {
		t.Fatalf("%v became %v", before, after)
	}
	if st := a.State(); st.Err != nil || !st.Since.IsZero() {
		t.Fatalf("%+v", st)
	}
	a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(2)})
}

// The daemon is there before the store was ever reached. What is released is kept by the attachment alone.
func TestAwayFromTheStart(t *testing.T) {
	common, a, pool := newLan(t, 0)
	one, two := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)}),
		a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(2)})
	a.handle.Cut(errCut)
	a.boot()

	if svc, err := a.service(); svc != nil || !errors.Is(err, ipam.ErrAway) {
		t.Fatal(svc, err)
	}
	if st := a.State(); st.Err == nil || st.Since.IsZero() || !st.Fresh.IsZero() || st.Mark != sharedMark {
		t.Fatalf("%+v", st)
	}
	a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)}) // nobody knows of it here
	if _, err := a.RequestPool(context.Background(), ipam.PoolRequest{Network: "lan", CIDR: lanCIDR}); !errors.Is(err,
		ipam.ErrAway) {
		t.Fatal(err)
	}
	a.give(pool, one)
	a.give(pool, one)
	if got := a.outbox; len(got) != 1 || got[0].Lease != 0 || got[0].Address != one {
		t.Fatalf("%+v", got)
	}
	a.boot() // it is on disk
	if st := a.State(); st.Waiting != 1 || st.Oldest.IsZero() {
		t.Fatalf("%+v", st)
	}
	a.sound()
	a.handle.Heal()
	a.open()
	// Before anything else is asked for, the store hears of it.
	if got := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(3), Preferred: one}); got != one {
		t.Fatal(got)
	}
	isLease(t, common, one, ipam.Static, testMAC(3))
	isLease(t, common, two, ipam.Automatic, testMAC(2))
	if st := a.State(); st.Waiting != 0 {
		t.Fatalf("%+v", st)
	}
	a.mustLook()
	isLease(t, common, one, ipam.Static, testMAC(3))
}

// A release out of reach is kept with the lease's id, durably before the answer, and deletes only that lease.
func TestReleaseAway(t *testing.T) {
	common, a, pool := newLan(t, 0)
	addr := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
	lease := isLease(t, common, addr, ipam.Automatic, testMAC(1))
	a.handle.Cut(errCut)
	a.give(pool, addr)
	a.give(pool, addr)                  // again: it is kept once
	a.give(pool, addrs("200")[0])       // nobody has it
	a.give(ipam.NewID(), addr)          // not through that pool
	a.give(pool, lanCIDR.Addr().Next()) // the subnet's
	if got := a.outbox; len(got) != 1 || got[0].Lease != lease.ID || got[0].Pool != pool || got[0].Address != addr {
		t.Fatalf("%+v", got)
	}
	a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)}) // what it gave back is no repetition
	isLease(t, common, addr, ipam.Automatic, testMAC(1))
	a.boot()
	a.handle.Heal()
	a.mustLook()
	isFree(t, common, addr)
	if n, err := Undelivered(context.Background(), a.own); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	a.sound()
}

// A later lease of the same address, through the same attachment, is another one.
func TestReleaseFreesNoLaterLease(t *testing.T) {
	common, a, pool := newLan(t, 0)
	addr := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
	old := isLease(t, common, addr, ipam.Automatic, testMAC(1))
	a.give(pool, addr)
	a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(2), Preferred: addr})
	if err := a.queue(context.Background(), queuedRelease{Pool: pool, Address: addr, Lease: old.ID}); err != nil {
		t.Fatal(err)
	}
	a.mustLook()
	isLease(t, common, addr, ipam.Static, testMAC(2))
	if a.keeps() {
		t.Fatal("it still waits")
	}
}

func TestReleasePoolAway(t *testing.T) {
	common, a, pool := newLan(t, 2)
	other := a.pool()
	addr, stays := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)}),
		a.take(ipam.AddressRequest{Pool: other, MAC: testMAC(2)})
	a.mustLook()
	a.handle.Cut(errCut)
	a.give(pool, addr)
	if err := a.ReleasePool(context.Background(), pool); err != nil {
		t.Fatal(err)
	}
	if a.headroomOf(pool) != nil {
		t.Fatal("the pool has headroom still")
	}
	if _, err := a.ask(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)}); !errors.Is(err, ipam.ErrNotFound) {
		t.Fatal("a pool that was released:", err)
	}
	if err := a.ReleasePool(context.Background(), pool); err != nil || len(a.outbox) != 2 {
		t.Fatal(err, a.outbox)
	}
	a.give(pool, addr) // it ends with its pool
	if len(a.outbox) != 2 {
		t.Fatal(a.outbox)
	}
	a.boot()
	a.handle.Heal()
	a.mustLook()
	for _, l := range leasesIn(t, common) {
		if l.Attachment != other {
			t.Fatalf("left: %+v", l)
		}
	}
	isLease(t, common, stays, ipam.Automatic, testMAC(2))
	if _, err := a.ask(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)}); !errors.Is(err, ipam.ErrNotFound) {
		t.Fatal(err)
	}
	a.sound()
}

// A release of a lost answer is told again, and again.
func TestReleaseLost(t *testing.T) {
	for _, committed := range []bool{true, false} {
		common, a, pool := newLan(t, 0)
		addr := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
		a.handle.LoseNext(committed)
		a.give(pool, addr)
		if len(a.outbox) != 1 || a.outbox[0].Lease == 0 {
			t.Fatalf("committed %t: %+v", committed, a.outbox)
		}
		if !committed {
			a.handle.LoseNext(true)
			a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(2)}) // while it is being told
		}
		if got := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(2), Preferred: addr}); got != addr {
			t.Fatal(got)
		}
		a.mustLook()
		isLease(t, common, addr, ipam.Static, testMAC(2))
	}
}

// Whether an address was taken got lost: it is not given, and nothing of it stays. When the same endpoint asks first,
// it is told of the release first, and so gets a lease that no release is about.
func TestRequestLost(t *testing.T) {
	for _, committed := range []bool{true, false} {
		for _, first := range []string{"the same endpoint", "another one", "nobody", "nobody, after a restart",
			"the same, out of reach"} {
			common, a, pool := newLan(t, 0)
			web := ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "web"}
			if first == "the same, out of reach" {
				a.handle.CutNext(committed, errCut)
			} else {
				a.handle.LoseNext(committed)
			}
			if addr, err := a.ask(web); !errors.Is(err, store.ErrUnknown) || !strings.Contains(err.Error(), "unknown") {
				t.Fatal(addr, err)
			}
			if len(a.outbox) != 1 || a.outbox[0].Lease == 0 {
				t.Fatalf("%+v", a.outbox)
			}
			lost := a.outbox[0]
			if committed && first != "the same, out of reach" {
				if l := isLease(t, common, lost.Address, ipam.Automatic, testMAC(1)); l.ID != lost.Lease {
					t.Fatalf("%+v and %+v", l, lost)
				}
			}
			switch first {
			case "the same, out of reach":
				a.refusedAway(web)
				a.handle.Heal()
				a.refusedNot(web, lost)
			case "the same endpoint":
				a.refusedNot(web, lost)
			case "another one":
				a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(2)})
			case "nobody, after a restart":
				a.boot()
			}
			a.mustLook()
			want := 1
			if strings.HasPrefix(first, "nobody") {
				want = 0
			}
			if got := inStore(t, common); len(got) != want {
				t.Fatalf("%s, committed %t: %v", first, committed, got)
			}
			a.sound()
		}
	}
}

// refusedNot asks again for what was lost, and gets a lease that stays.
func (h *sharingHost) refusedNot(req ipam.AddressRequest, lost queuedRelease) {
	h.t.Helper()
	addr := h.take(req)
	l := isLease(h.t, h.common, addr, ipam.Automatic, req.MAC)
	if l.ID == lost.Lease {
		h.t.Fatal("the lease whose release waits was given")
	}
	h.mustLook()
	if again := isLease(h.t, h.common, addr, ipam.Automatic, req.MAC); again.ID != l.ID {
		h.t.Fatalf("%+v became %+v", l, again)
	}
}

// The same endpoint asks again while the first answer is being lost. It is not answered with the lease whose release is
// queued.
func TestRequestLostTwice(t *testing.T) {
	common, a, pool := newLan(t, 0)
	web := ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "web"}
	for range 200 {
		a.handle.LoseNext(true)
		type answer struct {
			addr string
			err  error
		}
		answers := make(chan answer, 2)
		for range 2 {
			go func() {
				addr, err := a.ask(web)
				answers <- answer{addr.String(), err}
			}()
		}
		for range 2 {
			if got := <-answers; got.err == nil {
				a.mustLook()
				if held := inStore(t, common); len(held) != 1 || !strings.HasPrefix(held[0], got.addr+" ") {
					t.Fatalf("%s was given, and there is %v", got.addr, held)
				}
				a.give(pool, mustAddr(got.addr))
			} else if !errors.Is(got.err, store.ErrUnknown) && !errors.Is(got.err, ipam.ErrAway) {
				t.Fatal(got.err)
			}
		}
		a.mustLook()
		if held := inStore(t, common); len(held) != 0 {
			t.Fatal(held)
		}
	}
}

// A network whose making got lost is not there.
func TestPoolLost(t *testing.T) {
	for _, committed := range []bool{true, false} {
		for _, restart := range []bool{true, false} {
			common := mem.New()
			a := newSharingHost(t, common, "a")
			svc := a.open()
			a.handle.LoseNext(committed)
			req := ipam.PoolRequest{Space: ipam.GlobalSpace, CIDR: lanCIDR}
			if _, err := a.RequestPool(context.Background(), req); !errors.Is(err, store.ErrUnknown) {
				t.Fatal(err)
			}
			if len(a.outbox) != 1 || a.outbox[0].Address.IsValid() {
				t.Fatalf("%+v", a.outbox)
			}
			if restart {
				a.boot()
				svc = a.open()
			}
			if grant, err := a.RequestPool(context.Background(), req); err != nil || grant.CIDR != lanCIDR {
				t.Fatal(grant, err)
			}
			a.mustLook()
			all, err := svc.Subnets(context.Background(), ipam.GlobalSpace)
			if err != nil || len(all) != 1 || len(all[0].Attachments) != 1 {
				t.Fatalf("%+v, %v", all, err)
			}
			a.sound()
		}
	}
}

// A request waits for what is being told, but not for long.
func TestTellingTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, pool := newLan(t, 0)
		addr := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
		a.handle.Cut(errCut)
		a.give(pool, addr)
		a.handle.Heal()
		a.telling <- struct{}{} // somebody tells, and does not come to an end
		a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(2)})
		a.give(pool, addr)
		<-a.telling
		a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(2)})
	})
}

// Without room on its own disk a host promises nothing.
func TestAwayWithoutADisk(t *testing.T) {
	common, a, pool := newLan(t, 2)
	addr := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
	a.handle.Cut(errCut)
	a.left = 0
	if err := a.ReleaseAddress(context.Background(), pool, addr); err == nil {
		t.Fatal("a release was taken that is kept nowhere")
	}
	if got, err := a.ask(ipam.AddressRequest{Pool: pool, MAC: testMAC(2)}); err == nil {
		t.Fatal("an address was given that is kept nowhere:", got)
	}
	a.boot()
	a.handle.Heal()
	a.mustLook()
	isLease(t, common, addr, ipam.Automatic, testMAC(1))
	if got := len(a.free(pool)); got != 2 {
		t.Fatal(got)
	}
}

// What cannot be taken in whatever the time is given up, and stops nothing.
func TestHopelessRelease(t *testing.T) {
	common, a, pool := newLan(t, 0)
	addr := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
	a.handle.Cut(errCut)
	a.give(pool, addr)
	a.handle.Heal()
	other := common.Join()
	bad := ipam.ID{1: 1}
	err := other.Update(context.Background(),
		func(tx store.Tx) error { return tx.Put(ledger.AttachmentKey(nil, bad), []byte("no record")) })
	if err != nil {
		t.Fatal(err)
	}
	if err := a.queue(context.Background(), queuedRelease{Pool: bad, Address: addr, Lease: 7}); err != nil {
		t.Fatal(err)
	}
	a.mustLook()
	isFree(t, common, addr)
	if len(a.warned) != 1 || !strings.Contains(a.warned[0], "given up") || a.keeps() {
		t.Fatal(a.warned, a.outbox)
	}
}
