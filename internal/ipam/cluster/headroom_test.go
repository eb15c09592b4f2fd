package cluster

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
	"berth/store/mem"
)

// For each attachment of a network with headroom, that many addresses are claimed in advance, first in the store
// and then on the host. Within reach they are not used.
func TestHeadroomIsKept(t *testing.T) {
	st := plays(t, `
		lan 3
		free -> .2 .3 .4
		store -> .2 headroom a -; .3 headroom a -; .4 headroom a -
		take mac=1 -> .5
		pool second
		b: pool theirs
		look
		b: look
		free second -> .6 .7 .8
		b: free theirs -> .127 .128 .129
		unpool second
		b: headroom 0
		look
		b: look
		size -> 1
		free ->
		b: headroom 5
		look
		free -> .2 .3 .4 .6 .7
		b: headroom 2
		look
		free -> .2 .3
		state -> reached waiting 0 lan 2-0+2
		b: exclude .2
		look
		free -> .3 .4
		sound
	`)
	n, err := st.host("a").svc.Network(t.Context(), "lan")
	if err != nil || n.Headroom != 2 {
		t.Fatal(n.Headroom, err)
	}
}

// Out of reach the host gives out its headroom, durably, each address once. An address given before the daemon's
// start is in doubt, and its endpoint gets it again, once.
func TestHeadroomAway(t *testing.T) {
	const again = `
		take mac=1 ip=.2 ! away
		later
		# it never reaches the store
		take mac=1 web -> .2
		take mac=1 ip=.2 ! away
		later
		take mac=1 -> .2
		take mac=1 ip=.2 ! away
		later
		take mac=1 ip=.2 -> .2
		take mac=1 ip=.2 ! away
		take mac=2 ip=.4 -> .4
		take mac=2 ip=.4 ! away
		take mac=9 ip=.4 ! away
		take mac=9 ip=.77 ! away
		take gateway ip=.3 ! away
	`
	st := plays(t, `
		lan 4
		cut
		take mac=1 web -> .2
		take mac=2 ip=.4 -> .4
	`+again+again+`
		take mac=3 -> .3
		take ip=.5 telling -> .5
		take mac=4 ! away
		state -> away never waiting 4 lan 4-4+0
		sound
	`)
	if n, err := Undelivered(t.Context(), st.host("a").own); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	ids := map[netip.Addr]uint64{}
	for _, l := range leasesIn(t, st.common) {
		ids[l.Address] = l.ID
	}
	// The host reports the uses to the store first.
	st.run(`
		heal
		open
		take mac=4 -> .6
		lease .2 -> automatic 1 a web
		lease .4 -> static 2 a
		lease .3 -> automatic 3 a
		lease .5 -> auxiliary 0 a
		take mac=2 ip=.4 ! inuse
	`)
	for addr, id := range ids {
		if l := heldAt(t, st.common, addr); l.ID != id || l.Attachment != st.pool("") {
			t.Fatalf("%+v", l)
		}
	}
	st.run(`
		look
		free -> .7 .8 .9 .10
		warned -> 0
		state -> reached waiting 0 lan 4-0+4
	`)
	one := addrs("2")[0]
	svc := st.host("a").svc
	who, err := svc.Who(t.Context(), ipam.WhoFilter{Address: one})
	if err != nil || len(who) != 1 || who[0].Name != "web" || who[0].Kind != "automatic" || who[0].Lease != ids[one] ||
		who[0].By != heldActor {
		t.Fatalf("%+v, %v", who, err)
	}
	st.run("give .2")
	if who, err = svc.Who(t.Context(), ipam.WhoFilter{Name: "web"}); err != nil || len(who) != 1 ||
		who[0].Until.IsZero() || who[0].From.Before(ipam.EventTime(ids[one]).Add(time.Microsecond)) {
		t.Fatalf("%+v, %v", who, err)
	}
}

// If an address is released before the store learns of its use, it becomes headroom again: its last holder gets it
// first, and others after the quarantine. The store knows nothing of that quarantine.
func TestHeadroomAgain(t *testing.T) {
	plays(t, `
		lan 2
		quarantine 1h
		look
		cut
		take mac=1 web -> .2
		take mac=2 db -> .3
		give .2
		give .2
		give .3
		queued ->
		kept -> false
		boot
		take mac=3 new ! away
		take mac=2 db -> .3
		# the engine draws another MAC with each start
		take mac=7 web -> .2
		give .2
		wait 2h
		take mac=3 new -> .2
		give .3
		heal
		look
		lease .2 -> automatic 3 a new
		lease .3 -> headroom 0 a
		headroom 0
		look
		lease .3 -> headroom 0 a
		wait 2h
		look
		lease .3 -> none
	`)
}

// The store may have recorded a reported use, whatever its answer. The release is then that of a lease.
func TestHeadroomTold(t *testing.T) {
	eachWay(t, `
		lan 1
		cut
		take mac=1 -> .2
		heal
		cutnext [committed|lost]
		look ! unknown
		tell ! bare
		take mac=1 ! away
		[
		later
		take mac=1 -> .2
		|]
		give .2
		take mac=2 ! away
		take mac=1 ! away
		heal
		look
		size -> 1
		spare -> 1
		warned -> 0
		sound
	`)
}

// If nothing else is free, or if the request names a headroom address, a host gives from its own headroom within
// reach, too, but not from another host's.
func TestHeadroomIsTheLast(t *testing.T) {
	plays(t, `
		b: open
		lan 2 .10-.15
		b: pool theirs
		b: look
		free -> .12 .13
		take mac=1 ip=.13 -> .13
		lease .13 -> static 1 a
		b: free theirs -> .10 .11
		take mac=9 ip=.10 ! inuse; the headroom of host b
		# two that are free, and what is left of the headroom
		take mac=10
		take mac=11
		take mac=12 -> .12
		lease .12 -> automatic 12 a
		take mac=20 ! exhausted; including headroom: 2 of host b
		b: free theirs -> .10 .11
		give .13
		look
		# there is no more
		state -> reached waiting 0 lan 2-0+1
		sound
	`)
}

// Local networks, and networks in which Berth chooses no address, have no headroom.
func TestHeadroomRefused(t *testing.T) {
	common := mem.New()
	a := newSharingHost(t, common, "a")
	a.open()
	for _, e := range []ipam.Edit{
		&ipam.CreateNetwork{Name: "n", Space: ipam.LocalSpace, Headroom: 1},
		&ipam.CreateNetwork{Name: "n", Space: ipam.GlobalSpace, Headroom: -1},
		&ipam.CreateNetwork{Name: "n", Space: ipam.GlobalSpace, Headroom: ipam.MaxHeadroom + 1},
		&ipam.CreateNetwork{Name: "n", Space: ipam.GlobalSpace, Headroom: 1, Type: "vip"},
		&ipam.CreateNetwork{Name: "n", Space: ipam.GlobalSpace, Headroom: 1, Type: "dynamic"},
	} {
		if _, err := a.Edit(context.Background(), ipam.EditOptions{}, e); !errors.Is(err, ipam.ErrInvalid) {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

// If a use ends while the host reports it to the store, the host reports again.
func TestHeadroomReleasedMeanwhile(t *testing.T) {
	plays(t, `
		lan 1
		cut
		take mac=1 -> .2
		heal
		telling
		give .2
		lease .2 -> automatic 1 a
		told
		look
		spare -> 1
		size -> 1
		kept -> false
	`)
}

// While the release of a pool waits, no headroom is taken over or claimed for it.
func TestHeadroomOfAPoolThatWaits(t *testing.T) {
	plays(t, `
		lan 2
		cut
		unpool
		heal
		b: headroom 3
		review
		state -> reached waiting 1
		size -> 2
		look
		state -> reached waiting 0
		size -> 0
	`)
}

func mustRange(t testing.TB, text string) ipam.Range {
	t.Helper()
	var r ipam.Range
	fine(t, r.UnmarshalText([]byte(text)))
	return r
}

// A headroom address does not replace an address that is reserved for the owner.
func TestHeadroomOfOwners(t *testing.T) {
	_, a, pool := newLan(t, 2)
	a.edit(&ipam.AddReservation{Network: "lan", Owner: "web", Wishes: []ipam.Wish{{Address: addrs("50")[0]}}},
		&ipam.RemovePool{Network: "lan", Pool: "10.77.0.0/24"},
		&ipam.AddPool{Network: "lan", Range: mustRange(t, "10.77.0.2-10.77.0.99")},
		&ipam.AddPool{Network: "lan", Range: mustRange(t, "10.77.0.100-10.77.0.150"), Name: "db"},
		&ipam.ModifyNetwork{Network: "lan", OwnerRules: []ipam.OwnerRule{{Pattern: "db-*", Pool: "db"}}})
	a.handle.Cut(errCut)
	if _, err := a.ask(ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "web"}); !errors.Is(err, ipam.ErrAway) ||
		!strings.Contains(err.Error(), "reserved for web") {
		t.Fatal(err)
	}
	a.refusedAway(ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "db-1"}) // a rule gives db-* the pool db
	a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "app"})
}

// If the store does not have a headroom address for this host, the host logs a warning and forgets the address.
func TestHeadroomLost(t *testing.T) {
	for what, replace := range map[string]func(*ipam.Lease) *ipam.Lease{
		"it is gone":              func(*ipam.Lease) *ipam.Lease { return nil },
		"it was claimed again":    func(l *ipam.Lease) *ipam.Lease { l.ID++; return l },
		"it is another network's": func(l *ipam.Lease) *ipam.Lease { l.Attachment = ipam.NewID(); return l },
		"it is somebody's, and else": func(l *ipam.Lease) *ipam.Lease {
			l.ID, l.Kind, l.MAC = l.ID+1, ipam.Automatic,
				testMAC(9)
			return l
		},
	} {
		common, a, pool := newLan(t, 2)
		a.handle.Cut(errCut)
		addr := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "web"})
		other := common.Join()
		key := ledger.LeaseKey(nil, a.svc.Ledger.Attachment(pool).Subnet, addr)
		after := replace(heldAt(t, common, addr))
		err := other.Update(context.Background(), func(tx store.Tx) error {
			if after == nil {
				return tx.Delete(key)
			}
			return tx.Put(key, ipam.EncodeLease(nil, after))
		})
		fine(t, err)
		a.handle.Heal()
		a.mustLook()
		if len(a.warned) != 1 || !strings.Contains(a.warned[0], addr.String()) ||
			!strings.Contains(a.warned[0], "web") || a.keeps() {
			t.Fatal(what, a.warned)
		}
		if l := heldAt(t, common, addr); after != nil && l != nil && l.MAC == testMAC(1) {
			t.Fatalf("%s: the store has it as %+v", what, l)
		}
	}
}
