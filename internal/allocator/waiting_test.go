package allocator_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/store"
	"berth/store/storetest"
)

// storeFailures are the ways in which a host's own store cannot write.
var storeFailures = []struct {
	name  string
	fails func(*storetest.Faulty)
	heals func(*storetest.Faulty)
}{
	{name: "a full disk",
		fails: func(f *storetest.Faulty) { always(f, storetest.Fault{Before: store.ErrNoSpace}) }},
	{name: "a removed file",
		fails: func(f *storetest.Faulty) { always(f, storetest.Fault{Before: store.ErrAstray}) }},
	{name: "the release may be on the disk, and is not",
		fails: func(f *storetest.Faulty) { f.Next(storetest.Fault{Lost: errors.New("input/output error")}) }},
	{name: "the release may be on the disk, and is",
		fails: func(f *storetest.Faulty) { f.Next(storetest.Fault{After: errors.New("input/output error")}) }},
	{name: "an earlier write has failed, so that none is tried",
		fails: func(f *storetest.Faulty) {
			f.Next(storetest.Fault{Lost: errors.New("input/output error")})
			_ = f.Update(context.Background(), func(tx store.Tx) error { return tx.Put([]byte("zz"), nil) })
		}},
}

func always(f *storetest.Faulty, fault storetest.Fault) {
	f.Each(func(int) storetest.Fault { return fault })
}

// eachStoreFailure runs a test for each of them, on a stage with an address. heal makes the store work again.
func eachStoreFailure(t *testing.T, run func(r *ipamtest.Stage, heal func())) {
	for _, c := range storeFailures {
		t.Run(c.name, func(t *testing.T) {
			r := ipamtest.New(t)
			r.Line("attach A cidr=192.0.2.0/28")
			r.Line("ask A mac=1 ip=192.0.2.5 -> 192.0.2.5")
			c.fails(r.Store)
			run(r, func() {
				r.Store.Each(nil)
				r.Store.Heal()
			})
		})
	}
}

func wantWaiting(r *ipamtest.Stage, want int) {
	r.T.Helper()
	if got := r.S.Waiting(); got != want {
		r.T.Errorf("%d releases wait, want %d", got, want)
	}
}

// TestReleaseWaits: the release of an address succeeds while the store cannot write. It is made before the next
// request, so another container gets the address.
func TestReleaseWaits(t *testing.T) {
	eachStoreFailure(t, func(r *ipamtest.Stage, heal func()) {
		r.Line("back A 192.0.2.5")
		r.Line("back A 192.0.2.5")
		r.Line("back A 192.0.2.6") // nobody has it
		wantWaiting(r, 1)
		if err := r.S.MakeWaiting(ctx); err == nil {
			r.T.Error("a store that cannot write has made a release")
		}
		if _, err := r.S.RequestAddress(ctx, ipam.AddressRequest{Pool: r.Pools["A"], MAC: ipamtest.MAC(2),
			Preferred: netip.MustParseAddr("192.0.2.5")}); !allocator.CannotWrite(err) {
			r.T.Errorf("a request meanwhile: %v", err)
		}
		wantWaiting(r, 1)
		heal()
		r.Line("ask A mac=2 ip=192.0.2.5 -> 192.0.2.5")
		wantWaiting(r, 0)
		r.Line("told lease.release -> 1: 192.0.2.5  ()")
	})
}

// TestReleasePoolWaits: the release of a pool succeeds, too, also behind the release of an address.
func TestReleasePoolWaits(t *testing.T) {
	eachStoreFailure(t, func(r *ipamtest.Stage, heal func()) {
		r.Line("back A 192.0.2.5")
		r.Line("detach A")
		r.Line("detach A")
		wantWaiting(r, 2)
		heal()
		r.Line("attach B cidr=192.0.2.0/24") // it would overlap
		wantWaiting(r, 0)
		r.Line("ask A mac=1 ! notfound")
	})
}

// TestWaitingOfLaterLease: a release that waits does not end a later lease of the address.
func TestWaitingOfLaterLease(t *testing.T) {
	eachStoreFailure(t, func(r *ipamtest.Stage, heal func()) {
		held := ipamtest.ListLeases(r.T, r.S, ipam.LeaseFilter{})[0]
		r.Line("back A 192.0.2.5")
		heal()
		ref := ipam.LeaseRef{Space: held.Space, Address: held.Address, ID: held.ID}
		req := ipam.AddressRequest{Pool: r.Pools["A"], MAC: ipamtest.MAC(2), Preferred: held.Address}
		done, err := r.S.ReplaceLease(ctx, ref, req) // by the witness
		if err != nil {
			r.T.Fatal(err)
		}
		if !done { // the release was on the disk
			r.Line("ask A mac=2 ip=192.0.2.5 -> 192.0.2.5")
		}
		if err := r.S.MakeWaiting(ctx); err != nil {
			r.T.Error(err)
		}
		wantWaiting(r, 0)
		r.Line("has A mac=2 -> 192.0.2.5")
	})
}

// TestWaitingLost: a restart forgets the releases that wait, and the lease stays for the witness.
func TestWaitingLost(t *testing.T) {
	r := ipamtest.New(t)
	r.Line("attach A cidr=192.0.2.0/28")
	r.Line("ask A mac=1 ip=192.0.2.5 -> 192.0.2.5")
	always(r.Store, storetest.Fault{Before: store.ErrNoSpace})
	r.Line("back A 192.0.2.5")
	r.Store.Each(nil)
	r.Open()
	wantWaiting(r, 0)
	r.Line("has A mac=1 -> 192.0.2.5")
}
