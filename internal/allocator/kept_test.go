package allocator_test

import (
	"fmt"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// An address that a container requests by its own configuration is not lent to others.
func TestWantedIsKept(t *testing.T) {
	runGuesses(t, []ipamtest.Script{
		{"never used", `
			attach A cidr=192.0.2.0/29
			want 192.0.2.1 db
			want 192.0.2.3 db
			want 192.0.2.6 db
			ask A -> 192.0.2.2
			ask A web -> 192.0.2.4
			ask A mac=3 -> 192.0.2.5
			ask A ! exhausted; all 6 of; requested by containers themselves (192.0.2.1 by db, 192.0.2.3 by db, 192.0.2.6 by db)
			ask A ip=192.0.2.3 -> 192.0.2.3
			want 192.0.2.1
			ask A -> 192.0.2.1
			ask A ! exhausted; requested by containers themselves (192.0.2.6 by db)
		`},
		{"released", `
			attach A cidr=192.0.2.0/30
			ask A mac=1 -> 192.0.2.1
			ask A mac=2 -> 192.0.2.2
			back A 192.0.2.1
			wait 1h
			back A 192.0.2.2
			wait 1h
			want 192.0.2.1 db
			ask A mac=3 -> 192.0.2.2
			ask A mac=4 ! exhausted; 192.0.2.1 by db
			want 192.0.2.1
			ask A mac=4 -> 192.0.2.1
		`},
		{"in quarantine, which is over for nobody else", `
			network net1 subnet=192.0.2.0/30,pool
			network.set net1 quarantine=1m
			attach A net=net1
			ask A mac=1 -> 192.0.2.1
			ask A mac=2 -> 192.0.2.2
			back A 192.0.2.1
			want 192.0.2.1 db
			ask A mac=3 ! exhausted; 192.0.2.1 by db
		`},
		{"remembered for another one", `
			attach A cidr=192.0.2.0/29
			ask A web -> 192.0.2.1
			ask A mac=2 -> 192.0.2.2
			back A 192.0.2.1
			back A 192.0.2.2
			want 192.0.2.1 db
			want 192.0.2.2 db
			wait 1h
			ask A web -> 192.0.2.3
			ask A mac=2 -> 192.0.2.4
			idle web
			back A 192.0.2.3
			want 192.0.2.3 db
			ask A -> 192.0.2.5
		`},
		{"remembered for whoever asks for it himself", `
			attach A cidr=192.0.2.0/29
			ask A web -> 192.0.2.1
			back A 192.0.2.1
			want 192.0.2.1 web
			ask A web -> 192.0.2.1
			back A 192.0.2.1
			want 192.0.2.1 0123456789ab_web
			ask A web -> 192.0.2.1
		`},
		{"by one that never ran, from strangers only", `
			attach A cidr=192.0.2.0/29
			ask A web -> 192.0.2.1
			ask A db -> 192.0.2.2
			want 192.0.2.1 thief new
			want 192.0.2.2 thief new
			want 192.0.2.3 thief new
			back A 192.0.2.1
			ask A other -> 192.0.2.4
			ask A web -> 192.0.2.1
			# a restart that nobody saw
			idle lost
			wait 1h
			back A 192.0.2.2
			ask A -> 192.0.2.2
			# those that start together, of whom nobody knows which is which
			back A 192.0.2.1
			back A 192.0.2.2
			idle /web,db
			ask A -> 192.0.2.1
			ask A -> 192.0.2.2
			# and when the engine starts
			back A 192.0.2.1
			idle boots
			ask A -> 192.0.2.1
			back A 192.0.2.1
			wait 1h
			idle none
			ask A -> 192.0.2.5
			ask A -> 192.0.2.6
			ask A ! exhausted; 192.0.2.1 by thief, 192.0.2.3 by thief
			ask A thief ip=192.0.2.1 -> 192.0.2.1
			ask A web ! exhausted
		`},
		{"a reservation is its owner's all the same", `
			network net1 subnet=192.0.2.0/24,pool
			reserve net1 web 192.0.2.9
			attach A net=net1
			want 192.0.2.9 db
			ask A web -> 192.0.2.9
		`},
		{"a gateway", `
			attach A cidr=192.0.2.0/29
			want 192.0.2.1 db
			gateway A -> 192.0.2.2
		`},
		{"by hand", `
			network net1 subnet=192.0.2.0/29,gw=192.0.2.1,pool
			want 192.0.2.2 db
			want 192.0.2.4 db
			free net1 9 -> 192.0.2.3 192.0.2.5 192.0.2.6
			free net1 2 -> 192.0.2.3 192.0.2.5
			take net1 rtr pool -> 192.0.2.3
			reserve net1 web pool -> 192.0.2.5
			take net1 vm pool -> 192.0.2.6
			take net1 vm2 pool ! exhausted; requested by containers themselves (192.0.2.2 by db, 192.0.2.4 by db)
			reserve net1 other pool ! exhausted; 192.0.2.2 by db
			free net1 9 ->
			want 192.0.2.4
			free net1 9 -> 192.0.2.4
			take net1 vm2 pool -> 192.0.2.4
		`},
		{"what was released, by hand", `
			network net1 subnet=192.0.2.0/29,gw=192.0.2.1,pool
			take net1 a pool -> 192.0.2.2
			take net1 b pool -> 192.0.2.3
			release net1 a
			release net1 b
			want 192.0.2.2 db
			free net1 9 -> 192.0.2.3 192.0.2.4 192.0.2.5 192.0.2.6
			take net1 a pool -> 192.0.2.4
		`},
		{"at the end of a pool", `
			attach A cidr=192.0.2.0/31
			want 192.0.2.1 db
			ask A -> 192.0.2.0
			ask A ! exhausted; 192.0.2.1 by db
		`},
	})
}

// A refusal names at most four wanted addresses.
func TestManyKept(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("attach A cidr=192.0.2.0/28")
	for i := 1; i < 15; i++ {
		r.Line(fmt.Sprintf("want 192.0.2.%d c%d", i, i))
	}
	r.Run("ask A ! exhausted; themselves (192.0.2.1 by c1, 192.0.2.2 by c2, 192.0.2.3 by c3, 192.0.2.4 by c4, and " +
		"10 more)")
}

// The engine decides whose a lease is.
func TestNameLeases(t *testing.T) {
	runGuesses(t, []ipamtest.Script{
		{"no name", `
			attach A cidr=192.0.2.0/29
			ask A mac=1 -> 192.0.2.1
			seen2 192.0.2.1 web
			lease 192.0.2.1 -> automatic web
			told lease.name -> 1: 192.0.2.1 web ()
			seen 192.0.2.1 db
			lease 192.0.2.1 -> automatic web
			guesses -> made 0 wrong 0
		`},
		{"a guess that was right", `
			attach A cidr=192.0.2.0/29
			idle web
			ask A -> 192.0.2.1
			seen2 192.0.2.1 web
			lease 192.0.2.1 -> automatic web
			told lease.name -> 1: 192.0.2.1 web ()
			told lease.guessed_wrong -> 0
			seen 192.0.2.1 db
			lease 192.0.2.1 -> automatic web
			guesses -> made 1 wrong 0
		`},
		{"a guess that was wrong", `
			attach A cidr=192.0.2.0/29
			idle web
			ask A -> 192.0.2.1
			seen2 192.0.2.1 db
			lease 192.0.2.1 -> automatic db
			told lease.guessed_wrong -> 1: 192.0.2.1 db (it was mistaken for web)
			told lease.name -> 0
			seen 192.0.2.1 web
			lease 192.0.2.1 -> automatic db
			guesses -> made 1 wrong 1
			had db -> 192.0.2.1*
			back A 192.0.2.1
			lease 192.0.2.1 -> automatic db remembered
			ask A web -> 192.0.2.2
			ask A db -> 192.0.2.1
			had db -> 192.0.2.1 192.0.2.1*
			had web -> 192.0.2.2*
		`},
		{"the name that Compose gives and takes while it recreates", `
			attach A cidr=192.0.2.0/29
			idle 0123456789ab_shop_web_1
			ask A -> 192.0.2.1
			seen 192.0.2.1 shop_web_1
			lease 192.0.2.1 -> automatic shop_web_1
			told lease.name -> 1: 192.0.2.1 shop_web_1 ()
			guesses -> made 1 wrong 0
		`},
		{"what was sent", `
			attach A cidr=192.0.2.0/29
			ask A web -> 192.0.2.1
			seen 192.0.2.1 db
			lease 192.0.2.1 -> automatic web
			told lease.name -> 0
		`},
		{"what was taken for the network's own", `
			attach A cidr=192.0.2.0/29
			idle none
			ask A ip=192.0.2.5 -> 192.0.2.5
			lease 192.0.2.5 -> auxiliary -
			seen 192.0.2.5 web
			lease 192.0.2.5 -> static web
			back A 192.0.2.5
			lease 192.0.2.5 -> static web remembered
		`},
		{"a gateway, a memory, and what a person took, are nobody's", `
			network net1 subnet=192.0.2.0/28,pool
			attach A net=net1
			gateway A -> 192.0.2.1
			gateway A ip=192.0.2.9 -> 192.0.2.9
			seen 192.0.2.9 web
			lease 192.0.2.9 -> gateway -
			ask A mac=1 -> 192.0.2.2
			back A 192.0.2.2
			take net1 rtr 192.0.2.8
			seen 192.0.2.1 web
			seen 192.0.2.2 web
			seen 192.0.2.8 web
			lease 192.0.2.1 -> gateway -
			lease 192.0.2.2 -> automatic - remembered
			lease 192.0.2.8 -> external rtr
			told lease.name -> 0
		`},
		{"a reserved one that was guessed for another", `
			network net1 subnet=192.0.2.0/28,pool
			reserve net1 web 192.0.2.9
			attach A net=net1
			idle web
			ask A -> 192.0.2.9
			seen 192.0.2.9 db
			lease 192.0.2.9 -> automatic db
			owned net1 -> web=192.0.2.9*
			back A 192.0.2.9
			ask A web -> 192.0.2.9
		`},
	})
}

// The name of a lease is not changed if the lease was replaced meanwhile, or if the new name is invalid.
func TestNameOfAnother(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		attach A cidr=192.0.2.0/29
		idle web
		ask A -> 192.0.2.1`)
	old := r.RefOf(r.Addr("192.0.2.1"))
	r.Run(`
		back A 192.0.2.1
		idle none
		wait 1h
		idle web
		ask A -> 192.0.2.1`)
	now := r.RefOf(r.Addr("192.0.2.1"))
	long := make([]byte, 256)
	for i := range long {
		long[i] = 'x'
	}
	for _, name := range []ipam.LeaseName{{LeaseRef: old, Name: "db"}, {LeaseRef: now},
		{LeaseRef: now, Name: string(long)},
		{LeaseRef: ipam.LeaseRef{Space: "lab", Address: now.Address, ID: now.ID}, Name: "db"},
		{LeaseRef: ipam.LeaseRef{Space: "local", Address: r.Addr("198.51.100.1"), ID: now.ID}, Name: "db"}} {
		must(t, r.S.NameLeases(ctx, []ipam.LeaseName{name}))
	}
	r.Run(`
		lease 192.0.2.1 -> automatic web?
		guesses -> made 0 wrong 0
		told lease.guessed_wrong -> 0`)
}

// Many leases are named in pages, and each lease counts once.
func TestManyNames(t *testing.T) {
	r := ipamtest.New(t)
	r.Store.Each(ipamtest.EveryThirdTwice)
	r.Run("attach A cidr=10.0.0.0/16\nidle web")
	var names []ipam.LeaseName
	const many = ipam.MaxEdits + 5
	for range many {
		got, err := r.S.RequestAddress(ctx, ipam.AddressRequest{Pool: r.Pools["A"]})
		must(t, err)
		names = append(names, ipam.LeaseName{LeaseRef: ipam.LeaseRef{Space: "local", Address: got.Addr()}, Name: "db"})
	}
	for _, l := range ipamtest.ListLeases(t, r.S, ipam.LeaseFilter{}) {
		for i := range names {
			if names[i].Address == l.Address {
				names[i].ID = l.ID
			}
		}
	}
	must(t, r.S.NameLeases(ctx, names))
	if n := r.S.Guesses(); n.Made != many || n.Wrong != many {
		t.Errorf("%+v, want %d of each", n, many)
	}
}
