package view_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store"
)

// A lease that a replay moves to another attachment is one tenure, without a break (LN-12).
func TestWhoOverReplay(t *testing.T) {
	r := ipamtest.New(t)
	attach := func() ipam.ID {
		return ipamtest.MustPool(t, r.S, ipam.PoolRequest{Space: "global", Swarm: true,
			CIDR: netip.MustParsePrefix("10.0.9.0/24"), Network: ""}).ID
	}
	before := attach()
	gateway := ipamtest.MustTake(t, r.S, ipam.AddressRequest{Pool: before, Gateway: true})
	task := ipamtest.MustTake(t, r.S, ipam.AddressRequest{Pool: before})
	r.Clock.Time = r.Clock.Time.Add(time.Minute)
	after := attach()
	ipamtest.MustTake(t, r.S, ipam.AddressRequest{Pool: after, Preferred: gateway, Gateway: true})
	ipamtest.MustTake(t, r.S, ipam.AddressRequest{Pool: after, Preferred: task})
	who(r, task.String()+" -> lease automatic "+task.String()+" 0s-")
	r.Clock.Time = r.Clock.Time.Add(time.Minute)
	must(t, r.S.ReleaseAddress(ctx, after, task))
	who(r, task.String()+" -> lease automatic "+task.String()+" 0s-2m0s")
	who(r, gateway.String()+" -> lease gateway "+gateway.String()+" 0s-")
}

// A gateway that a replay moved to another attachment ends with that attachment.
func TestWhoOfMovedGateway(t *testing.T) {
	r := ipamtest.New(t)
	attach := func() ipam.ID {
		return ipamtest.MustPool(t, r.S, ipam.PoolRequest{Space: "global", Swarm: true,
			CIDR: netip.MustParsePrefix("10.0.9.0/24")}).ID
	}
	other := attach() // keeps the subnet
	ipamtest.MustTake(t, r.S, ipam.AddressRequest{Pool: other, Gateway: true})
	ipamtest.MustTake(t, r.S, ipam.AddressRequest{Pool: other, MAC: ipamtest.MAC(1)})
	own := ipam.AddressRequest{Pool: attach(), Preferred: netip.MustParseAddr("10.0.9.9"), Gateway: true}
	ipamtest.MustTake(t, r.S, own)
	r.Clock.Time = r.Clock.Time.Add(time.Minute)
	left := own.Pool
	own.Pool = attach()
	ipamtest.MustTake(t, r.S, own)
	ipamtest.MustTake(t, r.S, ipam.AddressRequest{Pool: other, MAC: ipamtest.MAC(2)})
	must(t, r.S.ReleasePool(ctx, left))
	who(r, "10.0.9.9 -> lease gateway 10.0.9.9 0s-")
	r.Clock.Time = r.Clock.Time.Add(time.Minute)
	must(t, r.S.ReleasePool(ctx, own.Pool))
	if subnets, err := r.S.Subnets(ctx, "global"); err != nil || len(subnets) != 1 {
		t.Fatalf("the subnet did not stay: %v, %v", subnets, err)
	}
	who(r, "10.0.9.9 -> lease gateway 10.0.9.9 0s-2m0s")
}

// An owner in a dynamic network has no address by its reservation (BO-8). A recorded address counts as any other.
func TestWhoInDynamicNetwork(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 type=dynamic subnet=192.0.2.0/24
		reserve net1 web
		take net1 web 192.0.2.7
		wait 1m
		unreserve net1 web`)
	who(r, "web -> lease external 192.0.2.7 web 0s-")
}

// Who reports who took an address and who ended it, on which host, and in which subnet.
func TestWhoSaysBy(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24,pool\nattach p net=net1")
	engine, person := ipam.WithActor(ctx, "engine"), ipam.WithActor(ctx, "uid 7")
	if _, err := r.S.RequestAddress(engine,
		ipam.AddressRequest{Pool: r.Pools["p"], MAC: ipamtest.MAC(1), Name: "web"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.S.Edit(person, ipam.EditOptions{}, &ipam.AddReservation{Network: "net1", Owner: "db"}); err != nil {
		t.Fatal(err)
	}
	must(t, r.S.ReleasePool(engine, r.Pools["p"]))
	if _, err := r.S.Edit(person, ipam.EditOptions{}, &ipam.RemoveNetwork{Network: "net1", Force: true}); err != nil {
		t.Fatal(err)
	}
	net1 := netip.MustParsePrefix("192.0.2.0/24")
	for name, want := range map[string]ipam.Tenure{
		"web": {Space: "local", Subnet: net1, Address: net1.Addr().Next(), What: ipam.LeaseTenure, Kind: "automatic",
			Name: "web", MAC: ipamtest.MAC(1), Host: "h1", By: "engine", EndedBy: "engine"},
		"db": {Space: "local", Subnet: net1, Address: net1.Addr().Next().Next(), What: ipam.ReservationTenure,
			Kind: "automatic", Name: "db", By: "uid 7", EndedBy: "uid 7"},
	} {
		all, err := r.S.Who(ctx, ipam.WhoFilter{Name: name})
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		got := all[0]
		if got.From.IsZero() || got.Until.IsZero() || (got.What == ipam.LeaseTenure) != (got.Lease != 0) {
			t.Errorf("%+v", got)
		}
		if got.Network != "net1" || got.NetworkID == (ipam.ID{}) { // from the events: the network is gone
			t.Errorf("%+v", got)
		}
		got.From, got.Until, got.Lease, got.Network, got.NetworkID = time.Time{}, time.Time{}, 0, "", ipam.ID{}
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// For tenures older than the kept events, the records tell which ones last. The id of a lease tells when it began.
func TestWhoAfterTrimming(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 subnet=192.0.2.0/24,pool,gw=192.0.2.200
		attach p net=net1
		ask p web mac=1
		ask p gone mac=2
		ask p db mac=3
		reserve net1 own 192.0.2.50
		reserve net1 ended 192.0.2.51
		wait 1m
		back p 192.0.2.2
		wait 1m`)
	last := ipamtest.LastEvent(t, r)
	keep := func(n int) {
		t.Helper()
		s, err := service.Open(ctx,
			service.Config{Store: r.Store, Host: "h1", Now: r.Clock.Now, Memories: ipamtest.Memories,
				Retention: ipam.Retention{Count: n}})
		must(t, err)
		must(t, s.Trim(ctx))
		r.S = s
	}
	keep(1)
	who(r, `
		192.0.2.1 -> lease automatic 192.0.2.1 web mac=1 ?0s-
		mac=2 -> lease automatic 192.0.2.2 gone mac=2 ?0s-1m0s
		own -> reservation static 192.0.2.50 own ?0s-
		192.0.2.200 -> lease gateway 192.0.2.200 ?0s-
		web at 1s -> lease automatic 192.0.2.1 web mac=1 ?0s-
		web at -1h ->
	`)
	r.Run("back p 192.0.2.3\nwait 1m\nunreserve net1 ended\nask p next mac=4 ip=192.0.2.3\nreserve net1 next " +
		"192.0.2.51")
	keep(len(ipamtest.EventsAfter(t, r, last)))
	who(r, `
		db -> lease 192.0.2.3 db mac=3 ?0s-2m0s
		mac=3 -> lease 192.0.2.3 db mac=3 ?0s-2m0s
		192.0.2.3 -> lease 192.0.2.3 db mac=3 ?0s-2m0s; lease static 192.0.2.3 next mac=4 3m0s-
		192.0.2.51 -> reservation static 192.0.2.51 ended ?2m0s-3m0s; reservation static 192.0.2.51 next 3m0s-
		ended at 1m ->
		own -> reservation static 192.0.2.50 own ?0s-
	`)
}

// Records of a removed subnet that a crash left end once, at the time when the subnet did (BO-12).
func TestWhoAfterCutOffSweep(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 subnet=192.0.2.0/24,pool,name=lan
		reserve net1 web 192.0.2.5
		attach p cidr=198.51.100.0/24
		ask p db mac=1 ip=198.51.100.5`)
	dying := &ipamtest.Failing{Store: r.Store, Left: 1000}
	s := ipamtest.OpenService(t, dying, r.Clock.Now)
	dying.Left = 1
	if _, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.RemoveNetwork{Network: "net1", Force: true}); err != nil {
		t.Fatal(err) // the sweep is left to the next start
	}
	dying.Left = 1
	if err := s.ReleasePool(ctx, r.Pools["p"]); !errors.Is(err, ipamtest.ErrDied) {
		t.Fatalf("the release was not cut off: %v", err)
	}
	if ipamtest.CountKeys(t, r.Store, 'l') < 2 {
		t.Fatal("nothing was left behind")
	}
	r.Clock.Time = r.Clock.Time.Add(time.Minute)
	r.Open()
	r.Run("network net1 subnet=192.0.2.0/24,pool\nreserve net1 web 192.0.2.5")
	who(r, `
		web -> reservation static 192.0.2.5 web 0s-0s; reservation static 192.0.2.5 web 1m0s-
		192.0.2.5 -> reservation static 192.0.2.5 web 0s-0s; reservation static 192.0.2.5 web 1m0s-
		db in local -> lease static 198.51.100.5 db mac=1 0s-0s
		198.51.100.5 -> lease static 198.51.100.5 db mac=1 0s-0s
	`)
}

// A late sweep of an old reservation ends no newer one at its address, though the old beginning is not kept.
func TestWhoAfterLateSweep(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24,pool\nreserve net1 web 192.0.2.5")
	net1 := netip.MustParsePrefix("192.0.2.0/24")
	late := ipam.Event{Verb: ipam.ReservationRemoved, Space: "local", Subnet: net1,
		Address: netip.MustParseAddr("192.0.2.5"), Name: "web", Detail: "its subnet is gone"}
	must(t, r.S.Note(ctx, late))
	who(r, "web -> reservation static 192.0.2.5 web 0s-")
	r.Run("wait 1m\nunreserve net1 web")
	who(r, "web -> reservation static 192.0.2.5 web 0s-1m0s")
}

// Who reads more than a page of events and records as a whole.
func TestWhoInPages(t *testing.T) {
	s := ipamtest.NewService(t, time.Now)
	pool := ipamtest.MustPool(t, s, ipam.PoolRequest{CIDR: netip.MustParsePrefix("10.1.0.0/16")})
	const turns, each = 30, 40
	for turn := range turns {
		for i := range each {
			req := ipam.AddressRequest{Pool: pool.ID, MAC: ipamtest.MAC(turn*each + i + 1), Name: fmt.Sprintf("c%d", i)}
			if i == 7 {
				req.Preferred = netip.MustParseAddr("10.1.200.1")
			}
			addr := ipamtest.MustTake(t, s, req)
			if i == 7 && turn < turns-1 {
				must(t, s.ReleaseAddress(ctx, pool.ID, addr))
			}
		}
	}
	for _, f := range []ipam.WhoFilter{{Name: "c7"}, {Address: netip.MustParseAddr("10.1.200.1")}, {Name: "c8"}} {
		all, err := s.Who(ctx, f)
		if err != nil || len(all) != turns {
			t.Fatalf("%+v: %d of %d, %v", f, len(all), turns, err)
		}
		for i, one := range all {
			if one.Early || i > 0 && one.From.Before(all[i-1].From) || f.Name != "c8" &&
				one.Until.IsZero() != (i == turns-1) {
				t.Errorf("%+v: %d is %+v", f, i, one)
			}
		}
	}
}

func TestWhoRefusals(t *testing.T) {
	r := ipamtest.New(t)
	addr := netip.MustParseAddr("192.0.2.1")
	for _, f := range []ipam.WhoFilter{{}, {Space: "local"}, {At: time.Now()}, {Address: addr, MAC: ipamtest.MAC(1)},
		{Address: addr, Name: "web"}, {MAC: ipamtest.MAC(1), Name: "web"},
		{Address: addr, MAC: ipamtest.MAC(1), Name: "web"}} {
		if all, err := r.S.Who(ctx, f); !errors.Is(err, ipam.ErrInvalid) {
			t.Errorf("%+v: %v, %v", f, all, err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for _, f := range []ipam.WhoFilter{{Name: "web"}, {Address: addr}} {
		if all, err := r.S.Who(ended, f); err == nil {
			t.Errorf("%+v: %v", f, all)
		}
	}
}

// A damaged record is an error, not a shorter history.
func TestWhoOfDamagedRecords(t *testing.T) {
	for _, key := range []byte("el") {
		t.Run(string(key), func(t *testing.T) {
			st := ipamtest.OpenStore(t, filepath.Join(t.TempDir(), "berth.db"))
			t.Cleanup(func() { st.Close() })
			s := ipamtest.OpenService(t, st, time.Now)
			pool := ipamtest.MustPool(t, s, ipam.PoolRequest{CIDR: netip.MustParsePrefix("10.1.0.0/24")})
			addr := ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: pool.ID, MAC: ipamtest.MAC(1), Name: "web"})
			err := st.Update(ctx, func(tx store.Tx) error {
				var last []byte
				for rec, err := range tx.Scan(store.Prefix([]byte{key})) {
					if err != nil {
						return err
					}
					last = append(last[:0], rec.Key...)
				}
				return tx.Put(last, []byte("garbage"))
			})
			must(t, err)
			for _, f := range []ipam.WhoFilter{{Name: "web"}, {Address: addr}} {
				if all, err := s.Who(ctx, f); !errors.Is(err, ipam.ErrDamaged) {
					t.Errorf("%+v: %v, %v", f, all, err)
				}
			}
		})
	}
}

// If Berth guessed a holder wrong, the corrected one had the address all the time, and nobody else.
func TestWhoWasGuessedWrong(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		attach A cidr=192.0.2.0/29
		idle web
		ask A mac=4 -> 192.0.2.1
		wait 1m
		seen 192.0.2.1 db`)
	who(r, `
		192.0.2.1 -> lease automatic 192.0.2.1 db mac=4 0s-
		db -> lease automatic 192.0.2.1 db mac=4 0s-
		mac=4 -> lease automatic 192.0.2.1 db mac=4 0s-
		web ->
	`)
	r.Run("wait 1m\nback A 192.0.2.1")
	who(r, `
		192.0.2.1 -> lease automatic 192.0.2.1 db mac=4 0s-2m0s
		db -> lease automatic 192.0.2.1 db mac=4 0s-2m0s
		web ->
	`)
}
