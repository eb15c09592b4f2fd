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
)

// New requests are refused at once, with the reason, and leave nothing. What runs keeps running. An endpoint's
// address is given to no second endpoint (invariant 3). An address given before the daemon's start is in doubt,
// and its endpoint gets it again, once.
func TestAwayRefused(t *testing.T) {
	plays(t, `
		lan 0
		take mac=1 web -> .2
		cut
		take mac=2 ! away
		take mac=2 ip=.99 ! away
		take gateway ip=.98 ! away
		pool q ! away; no route to etcd
		network.rm ! away
		state -> away waiting 0
		read
		take mac=1 web ! away
		heal
		boot
		open
		cut
		take mac=1 web -> .2
		take mac=1 web ! away
		take mac=1 ! away
		heal
		boot
		open
		cut
		take mac=1 -> .2
		take mac=1 ! away
		take mac=1 web ip=.2 ! away
		heal
		boot
		open
		cut
		take mac=1 web ip=.2 -> .2
		take mac=1 web ip=.2 ! away
		take gateway -> .1
		take mac=1 db ! away
		take ip=.2 ! away
		heal
		store -> .2 automatic a 02:00:00:00:00:01
		state -> reached waiting 0
		take mac=2 -> .3
	`)
}

// The daemon starts before it ever reached the store. A release is kept on disk, with only its attachment. The
// host reports it to the store before it requests anything else.
func TestAwayFromTheStart(t *testing.T) {
	plays(t, `
		lan 0
		take mac=1 -> .2
		take mac=2 -> .3
		cut
		boot
		read ! away
		state -> away never waiting 0
		# nobody knows of it here
		take mac=1 ! away
		pool q ! away
		give .2
		give .2
		queued -> .2 unknown
		boot
		state -> away never waiting 1
		sound
		heal
		open
		take mac=3 ip=.2 -> .2
		lease .2 -> static 3 a
		lease .3 -> automatic 2 a
		state -> reached waiting 0
		look
		lease .2 -> static 3 a
	`)
}

// A release out of reach is kept once, with the lease's id, durably before the answer, and deletes only that
// lease. A release of an unused address, through another pool, or of the subnet's gateway is not kept.
func TestReleaseAway(t *testing.T) {
	st := plays(t, `
		lan 0
		take mac=1 -> .2
		cut
		give .2
		give .2
		give .200
		give .2 nowhere
		give .1
		queued -> .2
		# what it gave back is no repetition
		take mac=1 ! away
		lease .2 -> automatic 1 a
		boot
		heal
		look
		lease .2 -> none
		sound
	`)
	if n, err := Undelivered(t.Context(), st.host("a").own); n != 0 || err != nil {
		t.Fatal(n, err)
	}
}

func TestReleasePoolAway(t *testing.T) {
	plays(t, `
		lan 2
		pool other
		take mac=1 -> .4
		take mac=2 pool=other -> .5
		look
		cut
		give .4
		unpool
		free ->
		take mac=1 ! notfound
		unpool
		# it ends with its pool
		give .4
		queued -> .4 pool
		boot
		heal
		look
		store -> .5 automatic a 02:00:00:00:00:02; .6 headroom a -; .7 headroom a -
		take mac=1 ! notfound
		sound
	`)
}

// A host repeats a release whose answer got lost, until the answer comes.
func TestReleaseLost(t *testing.T) {
	for committed, lostAgain := range map[string]string{"committed": "", "lost": `
		losenext committed
		take mac=2 ! away`} {
		plays(t, `
			lan 0
			take mac=1 -> .2
			losenext `+committed+`
			give .2
			queued -> .2`+lostAgain+`
			take mac=2 ip=.2 -> .2
			look
			lease .2 -> static 2 a`)
	}
}

// With a full disk a host promises nothing.
func TestAwayWithoutADisk(t *testing.T) {
	plays(t, `
		lan 2
		take mac=1 -> .4
		cut
		full
		give .4 ! other
		take mac=2 ! other
		boot
		heal
		look
		lease .4 -> automatic 1 a
		free -> .2 .3
	`)
}

// A later lease of the same address, through the same attachment, is a different lease.
func TestReleaseFreesNoLaterLease(t *testing.T) {
	common, a, pool := newLan(t, 0)
	addr := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
	old := isLease(t, common, addr, ipam.Automatic, testMAC(1))
	a.give(pool, addr)
	a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(2), Preferred: addr})
	fine(t, a.queue(context.Background(), queuedRelease{Pool: pool, Address: addr, Lease: old.ID}))
	a.mustLook()
	isLease(t, common, addr, ipam.Static, testMAC(2))
	if a.keeps() {
		t.Fatal("it still waits")
	}
}

// If the outcome of a request got lost, the address is not given, and nothing of it stays. When the same
// endpoint asks again, the host first reports the release to the store. So the endpoint gets a lease that no
// release can end.
func TestRequestLost(t *testing.T) {
	const again = `
		take mac=1 web -> .2
		queued ->
		look
		lease .2 -> automatic 1 a web
		size -> 1
		sound
	`
	eachWay(t, `
		lan 0
		[losenext committed
		take mac=1 web ! unknown; unknown
		lease .2 -> automatic 1 a web|losenext lost
		take mac=1 web ! unknown; unknown
		lease .2 -> none]
		queued -> .2
		[`+again+`|take mac=2
		look
		size -> 1|look
		size -> 0|boot
		look
		size -> 0]
		sound
	`)
	eachWay(t, `
		lan 0
		cutnext [committed|lost]
		take mac=1 web ! unknown
		queued -> .2
		take mac=1 web ! away
		heal
	`+again)
}

// The same endpoint asks again while the first answer is being lost. It does not get the lease whose release is
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

// A pool whose request got lost does not exist.
func TestPoolLost(t *testing.T) {
	eachWay(t, `
		open
		losenext [committed|lost]
		own p 10.77.0.0/24 ! unknown
		queued -> pool
		[boot|]
		open
		own p 10.77.0.0/24 -> 10.77.0.0/24
		look
		subnets -> 10.77.0.0/24 1
		sound
	`)
}

// A request waits for a report that is under way, but not for long.
func TestTellingTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, pool := newLan(t, 0)
		addr := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
		a.handle.Cut(errCut)
		a.give(pool, addr)
		a.handle.Heal()
		a.telling <- struct{}{} // one telling does not end
		a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(2)})
		a.give(pool, addr)
		<-a.telling
		a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(2)})
	})
}

// A release that the store can never record is given up, and does not block the others.
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
	fine(t, err)
	fine(t, a.queue(context.Background(), queuedRelease{Pool: bad, Address: addr, Lease: 7}))
	a.mustLook()
	isFree(t, common, addr)
	if len(a.warned) != 1 || !strings.Contains(a.warned[0], "gave up") || a.keeps() {
		t.Fatal(a.warned, a.outbox)
	}
}
