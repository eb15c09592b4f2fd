package allocator_test

import (
	"context"
	"errors"
	"fmt"
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

// lease returns the lease of an address and its DHCPInfo. What does not exist is zero.
func (l *onLAN) lease(addr netip.Addr) (ipam.LeaseInfo, ipam.DHCPInfo) {
	l.t.Helper()
	all := ipamtest.ListLeases(l.t, l.s, ipam.LeaseFilter{Address: addr, Remembered: true})
	switch {
	case len(all) == 0:
		return ipam.LeaseInfo{}, ipam.DHCPInfo{}
	case all[0].DHCP != nil:
		return all[0], *all[0].DHCP
	}
	return all[0], ipam.DHCPInfo{}
}

// run runs a script. Its steps are those of ipamtest, with the attachment A, and these:
//
//	pool CIDR|- [dhcp=] [id=] [range=] [six]   attaches A
//	reserve OWNER
//	lease ADDR     STATE NAME LANSTATE, CLIENT MAC HOSTNAME of SERVER, renews D, ends D[, because WHY]
//	server ADDR    who has it, by the server
//	asked          SUBNET true|false of each question to the server; true: IPv6
//	fail [HOW], forget, first ADDR, give ADDR CLIENT   change the server
//
// A refusal is "[KIND:]TEXT; TEXT". "..." ends the part of an answer that counts.
func (l *onLAN) run(script string) {
	l.t.Helper()
	stage := &ipamtest.Stage{T: l.t, Clock: l.clock, S: l.s, Pools: map[string]ipam.ID{"A": l.pool}}
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		step, want, _ := strings.Cut(line, " -> ")
		step, refusal, refused := strings.Cut(step, " ! ")
		got, err := l.step(stage, strings.Fields(step))
		kind, says, kinded := strings.Cut(refusal, ": ")
		if !kinded {
			says = refusal
		}
		want, part := strings.CutSuffix(want, "...")
		switch {
		case (err != nil) != refused, kind == "lan" && !errors.Is(err, ipam.ErrLAN),
			kind == "inuse" && !errors.Is(err, ipam.ErrInUse):
			l.t.Fatalf("%s\n\t%v", line, err)
		case want != "" && got != want && !(part && strings.HasPrefix(got, want)):
			l.t.Fatalf("%s\n\tgot %s", line, got)
		}
		for text := range strings.SplitSeq(says, "; ") {
			if refused && !strings.Contains(err.Error(), text) {
				l.t.Fatalf("%s\n\t%v", line, err)
			}
		}
	}
	if problems, err := l.s.Check(l.t.Context()); err != nil || len(problems) > 0 {
		l.t.Fatalf("%q, %v", problems, err)
	}
}

func (l *onLAN) step(stage *ipamtest.Stage, words []string) (got string, err error) {
	switch words[0] {
	case "pool":
		req := ipam.PoolRequest{Space: "local", IPv6: words[len(words)-1] == "six"}
		if words[1] != "-" {
			req.CIDR = netip.MustParsePrefix(words[1])
		}
		for _, word := range words[2:] {
			switch key, value, _ := strings.Cut(word, "="); key {
			case "dhcp":
				req.DHCPParent = value
			case "id":
				req.DHCPID = ipam.LANID(value)
			case "range":
				req.Range = ipamtest.MustRange(value)
			}
		}
		grant, err := l.s.RequestPool(l.t.Context(), req)
		stage.Pools["A"] = grant.ID
		return "", err
	case "reserve":
		network := ipamtest.ListLeases(l.t, l.s, ipam.LeaseFilter{})[0].Network
		return stage.Step([]string{"reserve", network, words[1]})
	case "lease":
		held, d := l.lease(stage.Addr(words[1]))
		if held.State == "" {
			return "none", nil
		}
		got = fmt.Sprintf("%s %s %s, %s %s %s of %s, renews %s, ends %s", held.State, held.Name, d.State, d.ClientID,
			d.MAC, d.Hostname, d.Server, d.Renews.Sub(l.clock.Time), d.Expires.Sub(l.clock.Time))
		if d.Why != "" {
			got += ", because " + d.Why
		}
	case "server":
		got = l.server.Has(stage.Addr(words[1]))
	case "asked":
		for _, ask := range l.server.Asked() {
			got += fmt.Sprint(ask.Subnet, " ", ask.IPv6, ";")
		}
	case "fail":
		l.server.Fail(ipam.LANFailure(strings.Join(words[1:], "")))
	case "forget":
		l.server.Forget(true)
	case "first":
		l.server.First = stage.Addr(words[1])
	case "give":
		l.server.Give(stage.Addr(words[1]), words[2])
	default:
		return stage.Step(words)
	}
	return got, nil
}

func TestLN15Taken(t *testing.T) {
	newOnLAN(t, eth0).run(`
		ask A shop-web-1 mac=1 -> 10.0.0.100
		lease 10.0.0.100 -> held shop-web-1 bound, berth:shop-web-1 02:00:00:00:00:01 shop-web-1 of 10.0.0.2, renews 1m0s, ends 2m0s
		server 10.0.0.100 -> berth:shop-web-1
		back A 10.0.0.100
		# not what another one had, while its time lasts
		ask A db mac=2 -> 10.0.0.101
		# recreated with another MAC, under Compose's temporary name for a container that is replaced
		ask A 0123456789ab_shop-web-1 mac=3 -> 10.0.0.100
	`)
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
	newOnLAN(t, eth0).run(`
		reserve shop/web/1
		ask A shop-web-1 mac=1 -> 10.0.0.100
		lease 10.0.0.100 -> held shop-web-1 bound, berth:shop/web/1 02:00:00:00:00:01 shop-web-1 of...
	`)
}

func TestLN15ByMAC(t *testing.T) {
	newOnLAN(t, ipam.LANTerms{DHCPParent: "eth0", DHCPID: ipam.LANByMAC}).run(`
		ask A web mac=1 -> 10.0.0.100
		server 10.0.0.100 -> 02:00:00:00:00:01
		ask A db ! --mac-socket
		# a network without MACs
		pool 10.0.0.0/24 dhcp=eth0 id=mac ! --mac-socket
	`)
}

// TestLN15SixToo tests that DHCPv6 is asked the same way. It gives no subnet, so the request must name one.
func TestLN15SixToo(t *testing.T) {
	newOnLAN(t, eth0).run(`
		pool - dhcp=eth0 six ! --subnet
		pool fd00:5::/64 dhcp=eth0 six
		# an engine that insists on a gateway
		gateway A ! --gateway
		gateway A ip=fd00:5::1 -> fd00:5::1
		first fd00:5::100
		asked
		ask A web mac=1 -> fd00:5::100
		asked -> fd00:5::/64 true;
		back A fd00:5::100
		ask A web mac=2 -> fd00:5::100
	`)
}

func TestLN15Refused(t *testing.T) {
	newOnLAN(t, eth0).run(`
		ask A web ip=10.0.0.50 ! reserve it on that server for the client identifier berth:web
		pool 10.0.0.0/24 dhcp=eth0 range=10.0.0.8/29 ! --ip-range
		pool 10.0.0.0/24 ! --ipam-opt dhcp=eth0
		pool 10.0.0.0/24 dhcp=eth1 ! dhcp=eth0
		pool 10.0.0.0/24 dhcp=a/b ! is not an interface
		pool 10.0.0.0/24 id=mac ! give both
	`)
}

// TestLN15Failures tests that a failure of a server or of the edge is reported with the interface and what to do.
func TestLN15Failures(t *testing.T) {
	newOnLAN(t, eth0).run(`
		fail silent
		ask A web ! lan: no DHCP server answered for web on eth0 (3 tries on eth0)
		fail no_edge
		ask A web ! lan: on eth0
		fail parent
		ask A web ! lan: name an interface of this host
		fail refused
		ask A web ! lan: has no address for web on eth0
		fail wrong
		ask A web ! lan: the DHCP offer for web on eth0 is unusable (3 tries on eth0)
		fail
		first 10.9.0.1
		ask A web ! 10.9.0.1; 10.0.0.0/24
		server 10.9.0.1 -> declined
	`)
}

func TestLN15Conflict(t *testing.T) {
	newOnLAN(t, eth0).run(`
		ask A web mac=1 -> 10.0.0.100
		forget
		ask A db mac=2 ! inuse: db; web
		server 10.0.0.100 -> declined
		lease 10.0.0.100 -> held web conflict, berth:web 02:00:00:00:00:01 web of 10.0.0.2, renews 1m0s, ends 2m0s, because the DHCP server 10.0.0.2 gave it to db, too
		ask A db mac=2 -> 10.0.0.101
	`)
}

// TestLN15Unconfirmed tests that a remembered address is given during its lease time while the server is down (RFC
// 2131, 3.2).
func TestLN15Unconfirmed(t *testing.T) {
	for _, failure := range []string{"silent", "no_edge", "parent"} {
		newOnLAN(t, eth0).run(strings.ReplaceAll(`
			ask A web mac=1 -> 10.0.0.100
			back A 10.0.0.100
			fail FAILURE
			wait 119s
			ask A web mac=2 -> 10.0.0.100
			lease 10.0.0.100 -> held web unconfirmed, berth:web 02:00:00:00:00:02 web of 10.0.0.2, renews -59s, ends 1s, because...
			back A 10.0.0.100
			wait 2s
			ask A web ! lan: web
			fail
			ask A web -> 10.0.0.100
		`, "FAILURE", failure))
	}
}

// TestLN15Short tests that a remembered address is not given after its lease has ended, even if it ended while the server
// was asked.
func TestLN15Short(t *testing.T) {
	l := newOnLAN(t, eth0)
	l.server.Lasts = time.Second
	web := l.take(ipam.AddressRequest{Name: "web", MAC: ipamtest.MAC(1)})
	l.back(web)
	var err error
	l.s, err = service.Open(t.Context(), service.Config{Store: l.s.Ledger.Store(), Host: "h1", Now: l.clock.Now,
		AskLAN: func(context.Context, ipam.LANAsk) (ipam.LANAnswer, error) {
			l.clock.Time = l.clock.Time.Add(time.Second)
			return ipam.LANAnswer{Failure: ipam.LANSilent, Error: "4 tries"}, nil
		}})
	must(t, err)
	if got, err := l.ask(ipam.AddressRequest{Name: "web", MAC: ipamtest.MAC(1)}); !errors.Is(err, ipam.ErrLAN) {
		t.Errorf("it has %s, whose lease is over (%v)", got, err)
	}
}

// TestLN15ServersOwn tests that the server's own address is declined, and not given.
func TestLN15ServersOwn(t *testing.T) {
	newOnLAN(t, eth0).run(`
		first 10.0.0.2
		ask A web ! lan: the DHCP server 10.0.0.2 gave its own address to web on eth0
		server 10.0.0.2 -> declined
		ask A web -> 10.0.0.3
	`)
}

// TestLN15HostsOwn tests that a container gets another address if the host itself has its former one.
func TestLN15HostsOwn(t *testing.T) {
	l := newOnLAN(t, eth0)
	web := l.take(ipam.AddressRequest{Name: "web", MAC: ipamtest.MAC(1)})
	l.back(web)
	var err error
	l.s, err = service.Open(t.Context(), service.Config{Store: l.s.Ledger.Store(), Host: "h1", Now: l.clock.Now,
		AskLAN: func(ctx context.Context, ask ipam.LANAsk) (ipam.LANAnswer, error) {
			if ask.Verb == ipam.LANConfirm {
				l.server.Give(ask.Address, "declined")
				return ipam.LANAnswer{Failure: ipam.LANWrong, Error: "this host has it",
					Lease: ipam.LANLease{Address: ask.Address}}, nil
			}
			return l.server.Ask(ctx, ask)
		}})
	must(t, err)
	if got := l.take(ipam.AddressRequest{Name: "web", MAC: ipamtest.MAC(1)}); got == web {
		t.Errorf("it has %s, which the host has", got)
	}
}

// TestLN15Moved tests that an endpoint gets another address if the server has given its former one to another
// client.
func TestLN15Moved(t *testing.T) {
	newOnLAN(t, eth0).run(`
		ask A web -> 10.0.0.100
		back A 10.0.0.100
		forget
		give 10.0.0.100 printer
		ask A web -> 10.0.0.101
		lease 10.0.0.100 -> none
	`)
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
