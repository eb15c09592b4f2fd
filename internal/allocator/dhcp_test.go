package allocator_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

// onLAN is a service with a network whose addresses a DHCP server chooses.
type onLAN struct {
	t      testing.TB
	clock  *ipamtest.Clock
	server *ipamtest.LANServer
	s      *service.Service
	pool   ipam.ID
}

func newOnLAN(t testing.TB, terms ipam.LANTerms) *onLAN {
	t.Helper()
	l := &onLAN{t: t, clock: ipamtest.NewClock()}
	l.server = ipamtest.NewLANServer(l.clock.Now)
	st := mem.New()
	t.Cleanup(func() { st.Close() })
	var err error
	l.s, err = service.Open(t.Context(), service.Config{Store: st, Host: "h1", Now: l.clock.Now, AskLAN: l.server.Ask})
	must(t, err)
	grant := ipamtest.MustPool(t, l.s, ipam.PoolRequest{LANTerms: terms, AskedMAC: terms.DHCPID == ipam.LANByMAC})
	if grant.CIDR != l.server.Subnet || grant.Gateway.Addr() != l.server.Gateway {
		t.Fatalf("the network has %v with the gateway %v, and the server says otherwise", grant.CIDR, grant.Gateway)
	}
	l.pool = grant.ID
	return l
}

var eth0 = ipam.LANTerms{DHCPParent: "eth0"}

func (l *onLAN) ask(req ipam.AddressRequest) (netip.Addr, error) {
	req.Pool = l.pool
	p, err := l.s.RequestAddress(l.t.Context(), req)
	return p.Addr(), err
}

func (l *onLAN) take(req ipam.AddressRequest) netip.Addr {
	l.t.Helper()
	addr, err := l.ask(req)
	must(l.t, err)
	return addr
}

func (l *onLAN) back(addr netip.Addr) {
	l.t.Helper()
	must(l.t, l.s.ReleaseAddress(l.t.Context(), l.pool, addr))
}

// lease returns the lease of an address, and its DHCPInfo, which is zero if no server gave the address.
func (l *onLAN) lease(addr netip.Addr) (ipam.LeaseInfo, ipam.DHCPInfo) {
	l.t.Helper()
	all := ipamtest.ListLeases(l.t, l.s, ipam.LeaseFilter{Address: addr, Remembered: true})
	switch {
	case len(all) == 0:
		l.t.Fatalf("%s has no record", addr)
	case all[0].DHCP != nil:
		return all[0], *all[0].DHCP
	}
	return all[0], ipam.DHCPInfo{}
}

func TestLN15Taken(t *testing.T) {
	l := newOnLAN(t, eth0)
	web := l.take(ipam.AddressRequest{Name: "shop-web-1", MAC: ipamtest.MAC(1)})
	held, d := l.lease(web)
	if web != l.server.First || held.State != "held" || d.State != ipam.LANBound || d.Server != l.server.Server ||
		d.ClientID != "berth:shop-web-1" || d.Hostname != "shop-web-1" || d.MAC != ipamtest.MAC(1) ||
		!d.Expires.Equal(l.clock.Time.Add(2*time.Minute)) || !d.Renews.Equal(l.clock.Time.Add(time.Minute)) {
		t.Fatalf("%s is %+v with %+v", web, held, d)
	}
	if got := l.server.Has(web); got != "berth:shop-web-1" {
		t.Fatalf("the server gave it to %q", got)
	}
	l.back(web)
	other := l.take(ipam.AddressRequest{Name: "db", MAC: ipamtest.MAC(2)})
	if other == web {
		t.Fatal("what one container had was given to another while its time lasts")
	}
	// The container is recreated with another MAC, under Compose's temporary name for a container that is
	// replaced.
	if again := l.take(ipam.AddressRequest{Name: "0123456789ab_shop-web-1", MAC: ipamtest.MAC(3)}); again != web {
		t.Fatalf("recreated it has %s, and had %s", again, web)
	}
	if problems, err := l.s.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Fatalf("%q, %v", problems, err)
	}
}

func TestLN15WithoutName(t *testing.T) {
	l := newOnLAN(t, eth0)
	one, two := l.take(ipam.AddressRequest{}), l.take(ipam.AddressRequest{})
	_, a := l.lease(one)
	_, b := l.lease(two)
	if one == two || a.ClientID == b.ClientID || a.MAC == b.MAC || a.MAC[0]&3 != 2 || a.Hostname != "" {
		t.Fatalf("%s as %+v, %s as %+v", one, a, two, b)
	}
	l.back(one)
	if again := l.take(ipam.AddressRequest{}); again != one {
		t.Fatalf("restarted it has %s, and had %s", again, one)
	}
	if _, d := l.lease(one); d.ClientID != a.ClientID {
		t.Fatalf("the server was asked as %s, and as %s before", d.ClientID, a.ClientID)
	}
}

func TestLN15Owner(t *testing.T) {
	l := newOnLAN(t, eth0)
	network := ipamtest.ListLeases(t, l.s, ipam.LeaseFilter{})[0].Network
	edit := &ipam.AddReservation{Network: network, Owner: "shop/web/1"}
	if _, err := l.s.Edit(t.Context(), ipam.EditOptions{}, edit); err != nil {
		t.Fatal(err)
	}
	web := l.take(ipam.AddressRequest{Name: "shop-web-1", MAC: ipamtest.MAC(1)})
	if _, d := l.lease(web); d.ClientID != "berth:shop/web/1" || d.Hostname != "shop-web-1" {
		t.Fatalf("the server knows it as %+v", d)
	}
}

func TestLN15ByMAC(t *testing.T) {
	l := newOnLAN(t, ipam.LANTerms{DHCPParent: "eth0", DHCPID: ipam.LANByMAC})
	web := l.take(ipam.AddressRequest{Name: "web", MAC: ipamtest.MAC(1)})
	if got := l.server.Has(web); got != ipamtest.MAC(1).String() {
		t.Fatalf("the server gave it to %q", got)
	}
	if _, err := l.ask(ipam.AddressRequest{Name: "db"}); err == nil || !strings.Contains(err.Error(), "--mac-socket") {
		t.Fatalf("without a MAC: %v", err)
	}
	_, err := l.s.RequestPool(t.Context(), ipam.PoolRequest{Space: "local", CIDR: l.server.Subnet,
		LANTerms: ipam.LANTerms{DHCPParent: "eth0", DHCPID: ipam.LANByMAC}})
	if err == nil || !strings.Contains(err.Error(), "--mac-socket") {
		t.Fatalf("a network without MACs: %v", err)
	}
}

// TestLN15SixToo tests that DHCPv6 is asked the same way. It gives no subnet, so the request must name one.
func TestLN15SixToo(t *testing.T) {
	l := newOnLAN(t, eth0)
	six := ipam.PoolRequest{Space: "local", IPv6: true, LANTerms: eth0}
	if _, err := l.s.RequestPool(t.Context(), six); err == nil || !strings.Contains(err.Error(), "--subnet") {
		t.Fatalf("without a subnet: %v", err)
	}
	six.CIDR = netip.MustParsePrefix("fd00:5::/64")
	l.pool = ipamtest.MustPool(t, l.s, six).ID
	if _, err := l.ask(ipam.AddressRequest{Gateway: true}); err == nil || !strings.Contains(err.Error(), "--gateway") {
		t.Fatalf("an engine that insists on a gateway: %v", err)
	}
	if router := netip.MustParseAddr("fd00:5::1"); l.take(ipam.AddressRequest{Gateway: true, Preferred: router}) != router {
		t.Fatal("the gateway that is said is not taken")
	}
	l.server.First = netip.MustParseAddr("fd00:5::100")
	l.server.Asked()
	web := l.take(ipam.AddressRequest{Name: "web", MAC: ipamtest.MAC(1)})
	if asks := l.server.Asked(); web != l.server.First || len(asks) != 1 || !asks[0].IPv6 || asks[0].Subnet != six.CIDR {
		t.Fatalf("%s by %+v", web, asks)
	}
	l.back(web)
	if again := l.take(ipam.AddressRequest{Name: "web", MAC: ipamtest.MAC(2)}); again != web {
		t.Fatalf("it has %s, and had %s", again, web)
	}
}

func TestLN15Refused(t *testing.T) {
	l := newOnLAN(t, eth0)
	if _, err := l.ask(ipam.AddressRequest{Name: "web", Preferred: netip.MustParseAddr("10.0.0.50")}); err == nil ||
		!strings.Contains(err.Error(), "reserve it at that server for the client identifier berth:web") {
		t.Fatalf("by address: %v", err)
	}
	for _, req := range []struct {
		name string
		ipam.PoolRequest
		says string
	}{
		{"range", ipam.PoolRequest{Range: ipamtest.MustRange("10.0.0.8/29"), LANTerms: eth0}, "--ip-range"},
		{"without dhcp", ipam.PoolRequest{}, "--ipam-opt dhcp=eth0"},
		{"another", ipam.PoolRequest{LANTerms: ipam.LANTerms{DHCPParent: "eth1"}}, "dhcp=eth0"},
		{"a name that is none", ipam.PoolRequest{LANTerms: ipam.LANTerms{DHCPParent: "a b"}}, "is no interface"},
		{"id alone", ipam.PoolRequest{LANTerms: ipam.LANTerms{DHCPID: ipam.LANByMAC}}, "give both"},
	} {
		req.Space, req.CIDR = "local", l.server.Subnet
		_, err := l.s.RequestPool(t.Context(), req.PoolRequest)
		if err == nil || !strings.Contains(err.Error(), req.says) {
			t.Errorf("%s: %v", req.name, err)
		}
	}
}

// TestLN15Failures tests that a failure of a server or of the edge is reported with the interface and what to do.
func TestLN15Failures(t *testing.T) {
	l := newOnLAN(t, eth0)
	for failure, says := range map[ipam.LANFailure]string{
		ipam.LANSilent: "no DHCP server has answered for web by eth0 (3 tries on eth0)", ipam.LANNoEdge: "by eth0",
		ipam.LANParent: "name an interface of this host", ipam.LANRefused: "has no address for web by eth0",
	} {
		l.server.Fail(failure)
		if _, err := l.ask(ipam.AddressRequest{Name: "web"}); !errors.Is(err, ipam.ErrLAN) ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", failure, err)
		}
	}
	l.server.Fail("")
	l.server.First = netip.MustParseAddr("10.9.0.1")
	_, err := l.ask(ipam.AddressRequest{Name: "web"})
	if err == nil || !strings.Contains(err.Error(), "10.9.0.1") || !strings.Contains(err.Error(), "10.0.0.0/24") {
		t.Fatalf("outside the subnet: %v", err)
	}
	if got := l.server.Has(netip.MustParseAddr("10.9.0.1")); got != "declined" {
		t.Fatalf("the address outside was not declined: %q", got)
	}
}

func TestLN15Conflict(t *testing.T) {
	l := newOnLAN(t, eth0)
	web := l.take(ipam.AddressRequest{Name: "web", MAC: ipamtest.MAC(1)})
	l.server.Forget(true)
	_, err := l.ask(ipam.AddressRequest{Name: "db", MAC: ipamtest.MAC(2)})
	if !errors.Is(err, ipam.ErrInUse) || !strings.Contains(err.Error(), "db") || !strings.Contains(err.Error(), "web") {
		t.Fatalf("the address of another: %v", err)
	}
	if got := l.server.Has(web); got != "declined" {
		t.Fatalf("it was not declined: %q", got)
	}
	if held, d := l.lease(web); held.Name != "web" || d.State != ipam.LANConflict || !strings.Contains(d.Why, "db") {
		t.Fatalf("the holder has %+v with %+v", held, d)
	}
	if db := l.take(ipam.AddressRequest{Name: "db", MAC: ipamtest.MAC(2)}); db == web {
		t.Fatal("two have one address")
	}
}

// TestLN15Unconfirmed tests that a remembered address is given during its lease time while the server is down (RFC
// 2131, 3.2).
func TestLN15Unconfirmed(t *testing.T) {
	for _, failure := range []ipam.LANFailure{ipam.LANSilent, ipam.LANNoEdge, ipam.LANParent} {
		l := newOnLAN(t, eth0)
		web := l.take(ipam.AddressRequest{Name: "web", MAC: ipamtest.MAC(1)})
		l.back(web)
		l.server.Fail(failure)
		l.clock.Time = l.clock.Time.Add(119 * time.Second)
		if again := l.take(ipam.AddressRequest{Name: "web", MAC: ipamtest.MAC(2)}); again != web {
			t.Fatalf("%s: it has %s, and had %s", failure, again, web)
		}
		if _, d := l.lease(web); d.State != ipam.LANUnconfirmed || d.Why == "" || d.MAC != ipamtest.MAC(2) {
			t.Fatalf("%s: %+v", failure, d)
		}
		l.back(web)
		l.clock.Time = l.clock.Time.Add(2 * time.Second)
		if addr, err := l.ask(ipam.AddressRequest{Name: "web"}); err == nil {
			t.Fatalf("%s: %s is given, and its time is over", failure, addr)
		}
		l.server.Fail("")
		if addr := l.take(ipam.AddressRequest{Name: "web"}); addr != web {
			t.Fatalf("%s: it has %s, and had %s", failure, addr, web)
		}
	}
}

// TestLN15Moved tests that an endpoint gets another address if the server has given its former one to another
// client.
func TestLN15Moved(t *testing.T) {
	l := newOnLAN(t, eth0)
	web := l.take(ipam.AddressRequest{Name: "web"})
	l.back(web)
	l.server.Forget(true)
	l.server.Give(web, "a printer")
	if again := l.take(ipam.AddressRequest{Name: "web"}); again == web {
		t.Fatal("it has a printer's address")
	}
	for _, m := range ipamtest.ListLeases(t, l.s, ipam.LeaseFilter{Remembered: true}) {
		if m.Address == web {
			t.Fatalf("%s is remembered still: %+v", web, m)
		}
	}
}

// TestLN15NobodyWaits tests that other requests are answered while a server does not answer, and that a repeated
// request asks the server only once.
func TestLN15NobodyWaits(t *testing.T) {
	l := newOnLAN(t, eth0)
	plain := ipamtest.MustPool(t, l.s, ipam.PoolRequest{CIDR: netip.MustParsePrefix("10.1.0.0/24")})
	l.server.Asked()
	free := l.server.Block()
	defer free()
	var wg sync.WaitGroup
	got, errs := make([]netip.Addr, 2), make([]error, 2)
	for i := range got {
		wg.Go(func() { got[i], errs[i] = l.ask(ipam.AddressRequest{Name: "web", MAC: ipamtest.MAC(1)}) })
	}
	for i := range 20 {
		ipamtest.MustTake(t, l.s, ipam.AddressRequest{Pool: plain.ID, MAC: ipamtest.MAC(10 + i)})
	}
	free()
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("two of one name were given %v: %v", got, errs)
	}
}

func TestLN15Shared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newOnLAN(t, eth0)
		l.server.Asked()
		free := l.server.Block()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { _, _ = l.ask(ipam.AddressRequest{Name: "web", MAC: ipamtest.MAC(1)}) })
		}
		synctest.Wait()
		if asks := l.server.Asked(); len(asks) != 1 {
			t.Errorf("one question was asked as %+v", asks)
		}
		free()
		wg.Wait()
	})
}

// TestLN15NameSoon tests that a request without a known container waits for the engine's answer, but only as long as
// that may take. Without its name, a container would be another client, with another address.
func TestLN15NameSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newOnLAN(t, eth0)
		changed := make(chan struct{}, 1)
		var hint atomic.Pointer[ipam.Hint]
		known := ipam.Known{Ask: func(context.Context, ipam.Question) ipam.Hint { return *hint.Load() },
			Watch: func() (<-chan struct{}, func()) { return changed, func() {} }}
		var err error
		l.s, err = service.Open(t.Context(), service.Config{Store: l.s.Ledger.Store(), Host: "h1", Now: l.clock.Now,
			AskLAN: l.server.Ask, Known: known})
		must(t, err)
		web := l.take(ipam.AddressRequest{Name: "web", MAC: ipamtest.MAC(1)})
		l.back(web)
		for _, c := range []struct {
			name string
			hint ipam.Hint
			tell ipam.Hint // after one second
			same bool
			took time.Duration
		}{
			{"it comes", ipam.Hint{Live: true, Soon: true}, ipam.Hint{Live: true, Name: "web"}, true, time.Second},
			{"it is known", ipam.Hint{Live: true, Name: "web"}, ipam.Hint{}, true, 0},
			{"another word", ipam.Hint{Live: true, Soon: true}, ipam.Hint{Live: true, Soon: true}, false,
				2200 * time.Millisecond},
			{"two could be it", ipam.Hint{Live: true}, ipam.Hint{Live: true, Name: "web"}, false, 0},
		} {
			hint.Store(&c.hint)
			time.AfterFunc(time.Second, func() {
				hint.Store(&c.tell)
				changed <- struct{}{}
			})
			begun := time.Now()
			got := l.take(ipam.AddressRequest{MAC: ipamtest.MAC(10 + int(c.took/time.Millisecond) + len(c.name))})
			if took := time.Since(begun); (got == web) != c.same || took != c.took {
				t.Errorf("%s: it has %s after %s, and had %s", c.name, got, took, web)
			}
			l.back(got)
			time.Sleep(2 * time.Second)
			select {
			case <-changed:
			default:
			}
		}
	})
}

// TestLN15Bound tests that no request waits longer than ten seconds.
func TestLN15Bound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newOnLAN(t, eth0)
		var within time.Duration
		l.s, _ = service.Open(t.Context(), service.Config{Store: l.s.Ledger.Store(), Host: "h1", Now: l.clock.Now,
			AskLAN: func(ctx context.Context, ask ipam.LANAsk) (ipam.LANAnswer, error) {
				within = time.Duration(ask.Within)
				select {
				case <-time.After(within + time.Second): // as long as a hanging edge may take
				case <-ctx.Done():
					return ipam.LANAnswer{}, ctx.Err()
				}
				return ipam.LANAnswer{Failure: ipam.LANSilent, Error: "4 tries"}, nil
			}})
		begun := time.Now()
		_, err := l.ask(ipam.AddressRequest{Name: "web"})
		if took := time.Since(begun); !errors.Is(err, ipam.ErrLAN) || took > 10*time.Second {
			t.Fatalf("after %s: %v", took, err)
		}
	})
}
