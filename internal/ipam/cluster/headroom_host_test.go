package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

// A draining or leaving host claims no headroom, and releases the headroom that is not in use.
func TestHeadroomOfALeavingHost(t *testing.T) {
	st := plays(t, `
		lan 2
		b: pool theirs
		b: look
		take mac=1 -> .4
		b: drain a
		look
		size -> 3
		free ->
		state -> reached waiting 0 lan 0-0+0 draining
		cut
		take mac=2 ! away
		give .4
		heal
		look
		lease .4 -> none
		b: undrain a
		look
		cut
		take mac=3 -> .2
		heal
		# it gives everything back, and says so
		here
		b: remove a
		look
		store -> .127 headroom b -; .128 headroom b -
		look ! host
		take mac=3 ! host
		cut
		take mac=4 ! notfound
	`)
	if left := st.host("a").headroom[st.pool("")]; len(left.addrs) != 0 {
		t.Fatalf("%+v", left)
	}
}

// A host that was removed while it was out of reach loses its headroom as soon as it learns of it. Once admitted
// again, it claims new headroom.
func TestHeadroomOfARemovedHost(t *testing.T) {
	eachWay(t, `
		lan 2
		b: open
		cut
		take mac=1 -> .2
		give .2
		b: remove a off
		size -> 0
		[
		boot
		heal
		run ! host
		state -> refused never waiting 0 lan 2-0+0
		read ! host
		|
		heal
		run ! host
		state -> refused waiting 0 lan 2-0+0
		]
		free ->
		take mac=1 ! host
		b: admit a
		look
		pool again
		look
		free again -> .2 .3
		free ->
	`)
}

// A host whose own store is restored from an older state must not give out the headroom recorded there.
func TestDropHeadroom(t *testing.T) {
	plays(t, `
		lan 2
		cut
		take mac=1 -> .2
		drop
		boot
		take mac=2 ! away
		heal
		look
		size -> 2
		free -> .2 .3
	`)
}

// The first request after the store went away has an unknown outcome. The host still answers it from the
// headroom, and releases what the request may have taken. A request for a given address gets that address or is
// refused.
func TestHeadroomOfALostRequest(t *testing.T) {
	eachWay(t, `
		lan 2
		cutnext [committed|lost]
		take mac=1 web -> .2
		queued -> .4
		take mac=1 ip=.2 ! away
		[
		later
		take mac=1 web -> .2
		take mac=1 ip=.2 ! away
		|]
		heal
		# the use is told, and then the connection breaks before the release is
		open
		tell
		cut
		take mac=1 ip=.2 ! away
		heal
		look
		lease .2 -> automatic 1 a web
		size -> 3
		spare -> 2
		take mac=1 ip=.2 ! inuse
		sound
		cutnext [committed|lost]
		take mac=2 ip=.99 ! unknown
		heal
		look
		lease .99 -> none
	`)
}

// The store has recorded a use, and its answer got lost with the daemon. The next daemon, out of reach, gives
// the address again to the same endpoint, and only once, even if the host is just reporting the use.
func TestHeadroomAgainOnce(t *testing.T) {
	eachWay(t, `
		lan 1
		cut
		take mac=1 web -> .2
		heal
		cutnext committed
		look ! unknown
		later
		[
		heal
		telling
		cut
		wait 1s
		|]
		take mac=1 web -> .2
		heal
		told
		look
		lease .2 -> automatic 1 a web
		take mac=1 web -> .4
		# from now on it is in doubt again
		later
		open
		take mac=1 web ip=.2 -> .2
		sound
	`)
}

// If the store has recorded a use and the host did not hear of it, the host knows more than the store, also out
// of reach: an endpoint that got the address again keeps it, and an endpoint that released it does not.
func TestHeadroomToldUnheard(t *testing.T) {
	for what, then := range map[string]string{"take mac=1 web -> .2": "automatic 1 a web", "give .2": "none"} {
		plays(t, `
			lan 1
			cut
			take mac=1 web -> .2
			heal
			losenext committed
			look ! unknown
			later
			open
			cut
			`+what+`
			take mac=1 web ! away
			heal
			look
			lease .2 -> `+then)
	}
}

// A swarm's manager requests everything again through other attachments: Berth claims no headroom for it.
func TestHeadroomOfASwarm(t *testing.T) {
	common, a, _ := newLan(t, 2)
	grant, err := a.RequestPool(context.Background(),
		ipam.PoolRequest{Network: "lan", Space: ipam.GlobalSpace, CIDR: lanCIDR, Swarm: true})
	fine(t, err)
	a.mustLook()
	if got := inStore(t, common); len(got) != 2 || a.headroom[grant.ID] != nil {
		t.Fatal(got)
	}
}

// The witness does not count headroom as live and gives it no name. Only its host releases it.
func TestHeadroomAndTheWitness(t *testing.T) {
	common, a, pool := newLan(t, 2)
	all, err := a.svc.Attachments(context.Background())
	if err != nil || len(all) != 1 || all[0].Live != 0 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, addr := range a.free(pool) {
		ref := ipam.LeaseRef{Space: ipam.GlobalSpace, Address: addr, ID: heldAt(t, common, addr).ID}
		if done, err := a.svc.ReleaseLease(context.Background(), ref); done || err != nil {
			t.Fatal(done, err)
		}
		fine(t, a.svc.NameLeases(context.Background(), []ipam.LeaseName{{LeaseRef: ref, Name: "web"}}))
		fine(t, a.svc.ReleaseAddress(context.Background(), pool, addr))
		if l := isLease(t, common, addr, ipam.Headroom, ipam.MAC{}); l.Name != "" {
			t.Fatalf("%+v", l)
		}
	}
	a.free(pool)
	var shown []string
	for l, err := range a.svc.Leases(context.Background(), ipam.LeaseFilter{}) {
		fine(t, err)
		shown = append(shown, fmt.Sprint(l.Kind, " ", l.State, " ", l.Host))
	}
	if !slices.Contains(shown, "headroom held a") {
		t.Fatal(shown)
	}
}

// Claims may exceed one transaction, and the addresses may be IPv6.
func TestLargeHeadroom(t *testing.T) {
	common := mem.New()
	a := newSharingHost(t, common, "a")
	a.open()
	cidr := netip.MustParsePrefix("fd00:77::/64")
	a.edit(&ipam.CreateNetwork{Name: "lan", Space: ipam.GlobalSpace, Headroom: 100,
		Subnets: []ipam.SubnetSpec{{CIDR: cidr, Pool: true}}})
	grant, err := a.RequestPool(context.Background(), ipam.PoolRequest{Network: "lan", CIDR: cidr})
	fine(t, err)
	a.mustLook()
	if got := a.free(grant.ID); len(got) != 100 {
		t.Fatal(len(got))
	}
	a.handle.Cut(errCut)
	for i := range 100 {
		if _, err := a.RequestAddress(context.Background(),
			ipam.AddressRequest{Pool: grant.ID, MAC: testMAC(i + 1)}); err != nil {
			t.Fatal(err)
		}
	}
	a.boot()
	a.sound()
	a.handle.Heal()
	a.mustLook()
	if got := inStore(t, common); len(got) != 200 {
		t.Fatal(len(got))
	}
	a.sound()
}

// tellsUses makes the store record the current uses of headroom. The caller calls told once the host knows that.
func (h *sharingHost) tellsUses(svc *service.Service) (told func()) {
	h.t.Helper()
	ctx := context.Background()
	page, err := h.markReported(ctx, h.usesPage())
	if err != nil || len(page) == 0 {
		h.t.Fatal(page, err)
	}
	if lost, err := allocator.SettleUses(ctx, svc.Ledger, page); err != nil || len(lost) > 0 {
		h.t.Fatal(lost, err)
	}
	return func() {
		fine(h.t, h.forgetUses(ctx, page))
	}
}
