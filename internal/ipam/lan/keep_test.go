package lan_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/lan"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/mem"

	"pgregory.net/rapid"
)

// harness is a daemon beside a DHCP server. Either may be killed.
type harness struct {
	t      rapid.TB
	clock  *ipamtest.Clock
	server *ipamtest.LANServer
	store  store.Store
	s      *service.Service
	keeper *lan.Schedule
	pool   ipam.ID
	net    string
}

func newHarness(t rapid.TB) *harness {
	t.Helper()
	h := &harness{t: t, clock: ipamtest.NewClock(), store: mem.New()}
	h.server = ipamtest.NewLANServer(h.clock.Now)
	h.start("h1")
	h.pool = ipamtest.MustPool(t, h.s, ipam.PoolRequest{LANTerms: ipam.LANTerms{DHCPParent: "eth0"}}).ID
	h.net = ipamtest.ListLeases(t, h.s, ipam.LeaseFilter{})[0].Network
	return h
}

// start restarts the daemon, which knows only the records.
func (h *harness) start(host string) {
	h.t.Helper()
	var err error
	h.s, err = service.Open(context.Background(), service.Config{Store: h.store, Host: host, Now: h.clock.Now,
		AskLAN: h.server.Ask})
	fine(h.t, err)
	h.keeper = lan.Of(h.s.Ledger).Schedule()
}

// wait lets time pass, a second at a time, with a round in each.
func (h *harness) wait(d time.Duration) {
	h.t.Helper()
	for end := h.clock.Time.Add(d); h.clock.Time.Before(end); {
		h.clock.Time = h.clock.Time.Add(time.Second)
		h.round()
	}
}

func (h *harness) round() {
	h.t.Helper()
	fine(h.t, h.keeper.Round(context.Background()))
}

func (h *harness) take(name string, mac int) netip.Addr {
	h.t.Helper()
	return ipamtest.MustTake(h.t, h.s, ipam.AddressRequest{Pool: h.pool, Name: name, MAC: ipamtest.MAC(mac)})
}

func (h *harness) back(addr netip.Addr) {
	h.t.Helper()
	fine(h.t, h.s.ReleaseAddress(context.Background(), h.pool, addr))
}

func (h *harness) edit(e ipam.Edit) {
	h.t.Helper()
	if _, err := h.s.Edit(context.Background(), ipam.EditOptions{}, e); err != nil {
		h.t.Fatal(err)
	}
}

// state returns the state of an address and its reason, or nothing if the address has no record.
func (h *harness) state(addr netip.Addr) (state, why string) {
	h.t.Helper()
	all := ipamtest.ListLeases(h.t, h.s, ipam.LeaseFilter{Address: addr, Remembered: true})
	switch {
	case len(all) == 0:
		return "", ""
	case all[0].DHCP == nil:
		return all[0].State, ""
	}
	return all[0].State + " " + all[0].DHCP.State.String(), all[0].DHCP.Why
}

func (h *harness) is(addr netip.Addr, want string) {
	h.t.Helper()
	if got, why := h.state(addr); got != want {
		h.t.Fatalf("%s is %q (%s), not %q", addr, got, why, want)
	}
}

// told returns the details of the events of a verb.
func (h *harness) told(verb ipam.Verb) (all []string) {
	h.t.Helper()
	events, err := h.s.Events(context.Background(), ipam.EventFilter{Verbs: []ipam.Verb{verb}})
	fine(h.t, err)
	for _, e := range events {
		all = append(all, e.Address.String()+" "+e.Name+": "+e.Detail)
	}
	return all
}

// TestLN15Renewed: a lease is kept for as long as its holder has it, over kills and absences of the daemon.
func TestLN15Renewed(t *testing.T) {
	h := newHarness(t)
	web := h.take("web", 1)
	h.wait(10 * time.Minute)
	h.is(web, "held bound")
	h.wait(58 * time.Second) // a second before T1, at the latest
	h.clock.Time = h.clock.Time.Add(40 * time.Second)
	h.start("h1")
	h.wait(2 * time.Second)
	h.is(web, "held bound")
	if left := h.server.Until(web).Sub(h.clock.Time); left < time.Minute {
		t.Fatalf("after the absence %s of the lease are left", left)
	}
	if lost := h.told(ipam.LeaseLost); len(lost) > 0 {
		t.Fatalf("it was lost: %v", lost)
	}
	h.server.Asked()
	h.wait(50 * time.Second)
	if asks := h.server.Asked(); len(asks) > 1 {
		t.Fatalf("a lease of two minutes is renewed %d times within its T1: %+v", len(asks), asks)
	}
}

// TestLN15Forgotten: a lease that nobody needs is not renewed. It is forgotten when it expires.
func TestLN15Forgotten(t *testing.T) {
	h := newHarness(t)
	web := h.take("web", 1)
	h.back(web)
	h.server.Asked()
	h.wait(119 * time.Second)
	h.is(web, "remembered bound")
	h.wait(2 * time.Second)
	h.is(web, "")
	if asks := h.server.Asked(); len(asks) > 0 {
		t.Fatalf("nobody needs it, and the server was asked %+v", asks)
	}
}

// TestLN15KeptForOwner: Berth renews an owner's lease while the owner is away, and gives it back when it ends.
func TestLN15KeptForOwner(t *testing.T) {
	h := newHarness(t)
	web := h.take("shop-web-1", 1)
	h.edit(&ipam.AddReservation{Network: h.net, Owner: "shop/web/1"})
	h.back(web)
	h.wait(10 * time.Minute)
	h.is(web, "remembered bound")
	if again := h.take("shop-web-1", 2); again != web {
		t.Fatalf("the owner has %s, and had %s", again, web)
	}
	h.back(web)
	h.server.Asked()
	h.server.Fail(ipam.LANNoEdge)
	h.edit(&ipam.ReleaseOwner{Owner: "shop/web/1"})
	h.wait(10 * time.Second)
	h.start("h1")
	h.server.Fail("")
	h.wait(5 * time.Second)
	h.is(web, "")
	if got := h.server.Has(web); got != "" {
		t.Fatalf("the server has it for %q still", got)
	}
	var released int
	for _, ask := range h.server.Asked() {
		if ask.Verb == ipam.LANRelease && ask.Address == web && ask.Server == h.server.Server {
			released++
		}
	}
	if released == 0 {
		t.Fatal("it was not given back")
	}
}

// An owner without a recorded address is shown with its address from the server, while its container has it and
// while it is kept for the owner.
func TestLN15ShownOfOwner(t *testing.T) {
	h := newHarness(t)
	h.edit(&ipam.AddReservation{Network: h.net, Owner: "shop/web/1"})
	shown := func() ipam.ReservationInfo {
		t.Helper()
		var all []ipam.ReservationInfo
		for one, err := range h.s.Reservations(context.Background(), ipam.AddressFilter{Network: h.net}) {
			fine(t, err)
			all = append(all, one)
		}
		if len(all) != 1 {
			t.Fatalf("the owners are %+v", all)
		}
		return all[0]
	}
	if got := shown(); got.Leased.IsValid() || got.InUse {
		t.Errorf("before there is a container: %+v", got)
	}
	h.take("other", 9)
	web := h.take("shop-web-1", 1)
	if got := shown(); got.Leased != web || !got.InUse || got.Endpoint != "shop-web-1" || got.Host != "h1" ||
		got.Address.IsValid() || !got.Subnet.Contains(web) {
		t.Errorf("while it runs with %s: %+v", web, got)
	}
	h.back(web)
	if got := shown(); got.Leased != web || got.InUse || got.Endpoint != "" {
		t.Errorf("while %s is kept: %+v", web, got)
	}
}

// A removed Docker network gives back the addresses that were kept there, and so does a planned one, even if only
// a later life of the daemon can tell the server. It gives back no address that its client has again.
func TestLN15GoneWithNetwork(t *testing.T) {
	h := newHarness(t)
	web, db, again := h.take("web", 1), h.take("db", 2), h.take("again", 3)
	for _, one := range []netip.Addr{web, db, again} {
		h.back(one)
	}
	h.server.Fail(ipam.LANSilent)
	fine(t, h.s.ReleasePool(context.Background(), h.pool))
	h.wait(5 * time.Second)
	h.start("h1")
	if got := h.server.Has(web); got == "" {
		t.Fatal("the server was told while it is silent")
	}
	h.server.Fail("")
	h.pool = ipamtest.MustPool(t, h.s, ipam.PoolRequest{LANTerms: ipam.LANTerms{DHCPParent: "eth0"}}).ID
	if got := h.take("again", 4); got != again {
		t.Fatalf("it has %s, and had %s by its server", got, again)
	}
	h.wait(goneWait)
	if one, two, three := h.server.Has(web), h.server.Has(db), h.server.Has(again); one+two != "" || three == "" {
		t.Fatalf("the server has %q, %q and %q", one, two, three)
	}

	h.back(again)
	fine(t, h.s.ReleasePool(context.Background(), h.pool))
	h.edit(&ipam.CreateNetwork{Name: "lan", Type: ipam.Dynamic.String(), Subnets: []ipam.SubnetSpec{{CIDR: h.server.Subnet,
		LANTerms: ipam.LANTerms{DHCPParent: "eth0"}}}})
	h.pool, h.net = ipamtest.MustPool(t, h.s, ipam.PoolRequest{Network: "lan"}).ID, "lan"
	if got := h.take("again", 5); got != again {
		t.Fatalf("it has %s, and had %s by its server", got, again)
	}
	h.edit(&ipam.AddReservation{Network: "lan", Owner: "again"})
	h.back(again)
	fine(t, h.s.ReleasePool(context.Background(), h.pool))
	h.wait(goneWait)
	if got := h.server.Has(again); got == "" {
		t.Fatal("what an owner keeps on a network that stays was given back")
	}
	h.edit(&ipam.RemoveNetwork{Network: "lan", Force: true})
	h.wait(goneWait)
	if got := h.server.Has(again); got != "" {
		t.Fatalf("the server has it for %q still", got)
	}
	h.server.Asked()
	h.wait(3 * time.Minute)
	if asks := h.server.Asked(); len(asks) > 0 {
		t.Fatalf("it is asked on: %+v", asks)
	}
}

// goneWait is enough time to tell a server.
const goneWait = 12 * time.Second

// A network keeps its DHCP server as long as somebody has an address from it. Who has none any more blocks
// nothing, nor does a lost address.
func TestLN15NoServerAnyMore(t *testing.T) {
	h := newHarness(t)
	web := h.take("web", 1)
	db := h.take("db", 2)
	none := func() error {
		_, err := h.s.Edit(context.Background(), ipam.EditOptions{}, &ipam.ModifyNetwork{Network: h.net, DHCPParent: new("")})
		return err
	}
	if err := none(); !errors.Is(err, ipam.ErrInUse) || !strings.Contains(err.Error(), "(and 1 more in use)") {
		t.Fatalf("it is asked no more, with two in use: %v", err)
	}
	h.edit(&ipam.ModifyNetwork{Network: h.net, DHCPParent: new("eth1")})
	h.back(db)
	if err := none(); !errors.Is(err, ipam.ErrInUse) ||
		!strings.Contains(err.Error(), "web has "+web.String()+" from the DHCP server") {
		t.Fatalf("it is asked no more, with one in use: %v", err)
	}
	h.back(web)
	fine(t, none())
}

// TestLN15HolderOutlivesOwner: when an owner ends, the holder of its lease keeps the lease.
func TestLN15HolderOutlivesOwner(t *testing.T) {
	h := newHarness(t)
	h.edit(&ipam.AddReservation{Network: h.net, Owner: "web"})
	web := h.take("web", 1)
	h.edit(&ipam.ReleaseOwner{Owner: "web"})
	h.wait(5 * time.Minute)
	h.is(web, "held bound")
	h.back(web)
	h.wait(121 * time.Second)
	h.is(web, "")
}

// TestLN15NAK: a lease that the server refuses is lost at once, reported once, and bound when the server gives it.
func TestLN15NAK(t *testing.T) {
	h := newHarness(t)
	web := h.take("web", 1)
	h.server.Forget(true)
	h.server.Give(web, "a printer")
	h.wait(61 * time.Second)
	h.is(web, "held lost")
	lost := h.told(ipam.LeaseLost)
	if len(lost) != 1 || !strings.Contains(lost[0], "web: its DHCP server refused it: wrong address") {
		t.Fatalf("the events are %q", lost)
	}
	h.wait(2 * time.Minute)
	if lost = h.told(ipam.LeaseLost); len(lost) != 1 {
		t.Fatalf("it was said %d times", len(lost))
	}
	h.server.Forget(true) // the printer is gone
	h.wait(time.Minute)
	h.is(web, "held bound")
	if back := h.told(ipam.LeaseConfirmed); len(back) != 1 {
		t.Fatalf("the events are %q", back)
	}
}

// TestLN15SilentServer: a lease lasts until it expires. Berth asks for it until then, and has it again as soon as
// the server is back, also if the server has forgotten it and is not alone.
func TestLN15SilentServer(t *testing.T) {
	for _, forgot := range []bool{false, true} {
		h := newHarness(t)
		web := h.take("web", 1)
		h.wait(50 * time.Second)
		h.server.Fail(ipam.LANSilent)
		h.wait(60 * time.Second)
		h.is(web, "held bound")
		h.wait(12 * time.Second)
		h.is(web, "held lost")
		if lost := h.told(ipam.LeaseLost); len(lost) != 1 || !strings.Contains(lost[0], "it expired") {
			t.Fatalf("the events are %q", lost)
		}
		h.server.Fail("")
		if forgot {
			h.server.Forget(false)
		}
		h.wait(2 * time.Minute)
		h.is(web, "held bound")
	}
}

// TestLN15Short: a lease of a second lasts while the server renews it, and no longer. Without an answer it ends in time,
// also if the server keeps the question waiting.
func TestLN15Short(t *testing.T) {
	for _, c := range []struct {
		name string
		stop func(*ipamtest.LANServer) (goOn func())
	}{
		{"refused", func(s *ipamtest.LANServer) func() { s.Fail(ipam.LANRefused); return func() { s.Fail("") } }},
		{"silent", func(s *ipamtest.LANServer) func() { s.Fail(ipam.LANSilent); return func() { s.Fail("") } }},
		{"wrong", func(s *ipamtest.LANServer) func() { s.Fail(ipam.LANWrong); return func() { s.Fail("") } }},
		{"it waits", (*ipamtest.LANServer).Block},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t)
				h.server.Lasts = time.Second
				web, gone := h.take("web", 1), h.take("gone", 2)
				h.back(gone)
				h.wait(10 * time.Second)
				h.is(web, "held bound")
				h.is(gone, "")
				goOn := c.stop(h.server)
				var rounds sync.WaitGroup
				for range 3 { // a second each, without waiting for the server
					h.clock.Time = h.clock.Time.Add(time.Second)
					rounds.Go(h.round)
					synctest.Wait()
				}
				h.is(web, "held lost")
				goOn()
				rounds.Wait()
				h.wait(time.Minute)
				h.is(web, "held bound")
				if lost := h.told(ipam.LeaseLost); len(lost) != 1 {
					t.Errorf("the events are %q", lost)
				}
			})
		})
	}
}

// TestLN15Forever: a lease that never ends is kept.
func TestLN15Forever(t *testing.T) {
	h := newHarness(t)
	h.server.Lasts = (1<<32 - 1) * time.Second
	web := h.take("web", 1)
	h.server.Asked()
	h.clock.Time = h.clock.Time.AddDate(10, 0, 0)
	h.wait(10 * time.Second)
	h.is(web, "held bound")
	if asks := h.server.Asked(); len(asks) > 0 {
		t.Fatalf("it is asked for: %+v", asks)
	}
}

// TestLN15ServerBack: all unconfirmed leases are confirmed within five seconds of the server's return, however
// many there are.
func TestLN15ServerBack(t *testing.T) {
	h := newHarness(t)
	h.server.Size = 60
	var all []netip.Addr
	for i := range 50 {
		all = append(all, h.take("web"+string(rune('A'+i)), i))
	}
	for _, addr := range all {
		h.back(addr)
	}
	h.server.Fail(ipam.LANSilent)
	h.start("h1")
	for i := range all {
		h.take("web"+string(rune('A'+i)), 100+i)
	}
	h.wait(20 * time.Second)
	h.server.Asked()
	h.wait(10 * time.Second)
	if asks := h.server.Asked(); len(asks) > 30 {
		t.Fatalf("a silent server is asked %d times in ten seconds", len(asks))
	}
	h.server.Fail("")
	h.wait(5 * time.Second)
	for _, addr := range all {
		h.is(addr, "held bound")
	}
	if n := len(h.told(ipam.LeaseUnconfirmed)); n != len(all) {
		t.Fatalf("%d events", n)
	}
}

// TestLN15OtherHost: the host that has the container renews the lease. The other host does nothing.
func TestLN15OtherHost(t *testing.T) {
	h := newHarness(t)
	web := h.take("web", 1)
	h.server.Asked()
	h.start("h2")
	h.wait(5 * time.Minute)
	if asks := h.server.Asked(); len(asks) > 0 {
		t.Fatalf("another host asked %+v", asks)
	}
	h.is(web, "held bound")
}
