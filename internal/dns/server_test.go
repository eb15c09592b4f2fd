package dns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	"github.com/miekg/dns"
)

// run starts a server on the loopback, and ends it with the test.
func run(t testing.TB, cfg Config) *Server {
	t.Helper()
	if cfg.Service == nil {
		cfg.Service = &records{}
	}
	cfg.Log, cfg.Listen = quiet(), []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}
	s, err := Listen(t.Context(), cfg)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
	return s
}

// exchange asks a running server over a network, and waits for the answer.
func exchange(t *testing.T, s *Server, network string, q *dns.Msg) *dns.Msg {
	t.Helper()
	c := dns.Client{Net: network, Timeout: 30 * time.Second}
	m, _, err := c.Exchange(q, s.Addrs()[0].String())
	must(t, err)
	return m
}

// crowd is a service of n replicas.
func crowd(n int) ipam.NameNews {
	news := ipam.NameNews{Ranges: []ipam.NamedRange{network(8, "crowd", "10.1.0.0/16")}}
	for i := range n {
		news.Set = append(news.Set, of(8, fmt.Sprintf("10.1.%d.%d", i/200, i%200+1), fmt.Sprintf("shop/api/%d", i+1)))
	}
	return news
}

// BenchmarkAnswer asks for 10,000 names by UDP, one after the other. The processor time is that of both ends.
func BenchmarkAnswer(b *testing.B) {
	s := run(b, Config{Index: told(crowd(10_000))})
	c, err := dns.Dial("udp", s.Addrs()[0].String())
	must(b, err)
	defer c.Close()
	begun, i := processorTime(b), 0
	for b.Loop() {
		i++
		must(b, c.WriteMsg(question(fmt.Sprintf("%d.api.shop.crowd.lan.example.", i%10_000+1), dns.TypeA)))
		m, err := c.ReadMsg()
		must(b, err)
		if len(m.Answer) != 1 {
			b.Fatal(m)
		}
	}
	b.ReportMetric(float64(i)/(processorTime(b)-begun).Seconds(), "answers/core-s")
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// An answer that does not fit a packet is cut, with the bit that says so, and comes whole by TCP (RFC 1035, 4.2.1;
// RFC 6891).
func TestTruncation(t *testing.T) {
	s := run(t, Config{Index: told(crowd(300))})
	q := question("api.shop.crowd.lan.example.", dns.TypeA)
	for _, c := range []struct {
		network  string
		edns     uint16
		size, at int // the largest size, and the fewest answers
		cut      bool
	}{{"udp", 0, 512, 20, true}, {"udp", 1232, 1232, 60, true}, {"udp", 65535, 1232, 60, true},
		{"tcp", 0, 65535, 300, false}} {
		q := q.Copy()
		if c.edns > 0 {
			q.SetEdns0(c.edns, false)
		}
		m := exchange(t, s, c.network, q)
		m.Compress = true
		if m.Truncated != c.cut || m.Len() > c.size || len(m.Answer) < c.at {
			t.Errorf("%s, %d: %d answers of %d bytes, cut %t", c.network, c.edns, len(m.Answer), m.Len(), m.Truncated)
		}
		if (m.IsEdns0() != nil) != (c.edns > 0) {
			t.Errorf("%s, %d: the option is %v", c.network, c.edns, m.IsEdns0())
		}
	}
}

// Several addresses take turns in the first place.
func TestTurns(t *testing.T) {
	s := run(t, Config{Index: told(crowd(3))})
	firsts := map[string]int{}
	for range 9 {
		m := exchange(t, s, "udp", question("api.crowd.lan.example.", dns.TypeA))
		firsts[m.Answer[0].(*dns.A).A.String()]++
	}
	if len(firsts) != 3 {
		t.Errorf("the first ones: %v", firsts)
	}
}

// The server refuses strangers, whatever they ask. It answers clients in our networks, allowed clients, and this
// host.
func TestStrangers(t *testing.T) {
	s := over(told(sample()))
	s.cfg.Allow = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/25")}
	local := netip.MustParseAddr("192.168.7.1")
	for row := range ipamtest.Rows(2, `
		127.0.0.1 | yes
		127.8.8.8 | yes
		::1 | yes
		192.0.2.77 | yes
		2001:db8:1::ffff | yes
		10.20.15.255 | yes
		203.0.113.5 | yes
		198.51.100.1 | yes
		192.168.7.1 | yes
		192.168.9.9 | yes
		198.51.100.200
		10.20.16.0
		8.8.8.8
		2001:db8:2::1
		192.168.7.2
	`) {
		if got := s.allows(netip.MustParseAddr(row[0]), local); got != (row[1] != "") {
			t.Errorf("%s may ask: %t", row[0], got)
		}
	}
	if s.allows(netip.Addr{}, local) {
		t.Error("nobody may ask")
	}
	for _, name := range []string{"web.home.lan.example.", "nobody.home.lan.example.", "10.2.0.192.in-addr.arpa.",
		"lan.example."} {
		if got := summary(s.answer(question(name, dns.TypeA), asker{udp: true})); got != "REFUSED" {
			t.Errorf("%s: a stranger is answered %s", name, got)
		}
	}
	if s.allows(netip.MustParseAddr("8.8.8.8"), netip.IPv4Unspecified()) {
		t.Error("a stranger is taken for this host")
	}
}

// A question that is malformed or not supported gets the code that says so. An answer gets no reply.
func TestOddQuestions(t *testing.T) {
	s := over(told(sample()))
	for name, c := range map[string]struct {
		change func(*dns.Msg)
		want   string
	}{
		"an answer":            {func(q *dns.Msg) { q.Response = true }, ""},
		"a notification":       {func(q *dns.Msg) { q.Opcode = dns.OpcodeNotify }, "NOTIMP"},
		"an update":            {func(q *dns.Msg) { q.Opcode = dns.OpcodeUpdate }, "NOTIMP"},
		"no question":          {func(q *dns.Msg) { q.Question = nil }, "FORMERR"},
		"two questions":        {func(q *dns.Msg) { q.Question = append(q.Question, q.Question[0]) }, "FORMERR"},
		"another class":        {func(q *dns.Msg) { q.Question[0].Qclass = dns.ClassCHAOS }, "REFUSED"},
		"another EDNS version": {func(q *dns.Msg) { q.SetEdns0(1232, false); q.IsEdns0().SetVersion(9) }, "BADVERS"},
		"recursion":            {func(q *dns.Msg) { q.RecursionDesired = true }, "NOERROR | 192.0.2.10"},
	} {
		q := question("web.home.lan.example.", dns.TypeA)
		c.change(q)
		m := s.answer(q, loopback)
		if m == nil {
			if c.want != "" {
				t.Errorf("%s is answered nothing", name)
			}
			continue
		}
		wire, err := m.Pack()
		must(t, err)
		back := new(dns.Msg)
		must(t, back.Unpack(wire))
		if got := summary(back); got != c.want && !(c.want == "BADVERS" && back.Rcode == dns.RcodeBadVers) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		desired := q.RecursionDesired && q.Opcode == dns.OpcodeQuery
		if back.RecursionAvailable || back.Id != q.Id || back.RecursionDesired != desired {
			t.Errorf("%s: %+v", name, back.MsgHdr)
		}
	}
}

// The connections of a client are limited. One too many is cut off, and the others continue.
func TestConnections(t *testing.T) {
	s := run(t, Config{Index: told(sample())})
	q := question("web.home.lan.example.", dns.TypeA)
	var open []*dns.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for range mostOfOne {
		c, err := dns.DialTimeout("tcp", s.Addrs()[0].String(), 30*time.Second)
		must(t, err)
		open = append(open, c)
		must(t, c.WriteMsg(q)) // an answer shows that it is accepted
		_, err = c.ReadMsg()
		must(t, err)
	}
	more, err := net.Dial("tcp", s.Addrs()[0].String())
	must(t, err)
	defer more.Close()
	must(t, more.SetReadDeadline(time.Now().Add(30*time.Second)))
	if n, err := more.Read(make([]byte, 1)); err == nil || n > 0 {
		t.Error("one more is taken")
	}
	_ = open[0].Close()
	open = slices.Delete(open, 0, 1)
	for late := time.Now().Add(30 * time.Second); ; {
		c := dns.Client{Net: "tcp", Timeout: 30 * time.Second}
		if _, _, err := c.Exchange(q, s.Addrs()[0].String()); err == nil {
			break
		} else if time.Now().After(late) {
			t.Fatal(err)
		}
	}
}

// The server answers with news that came while it runs.
func TestFollows(t *testing.T) {
	from := &records{news: make(chan ipam.NameNews)}
	s := run(t, Config{Index: New("lan.example", stopped), Service: from})
	q := question("web.home.lan.example.", dns.TypeA)
	if got := summary(exchange(t, s, "udp", q)); got != "SERVFAIL" {
		t.Error("before anything is told:", got)
	}
	all := sample()
	all.Whole = true
	from.news <- all
	from.news <- ipam.NameNews{}
	from.news <- ipam.NameNews{} // the news before this one is in use now
	if got := summary(exchange(t, s, "udp", q)); got != "NOERROR | 192.0.2.10" {
		t.Error(got)
	}
}

// The server can bind an address that the host does not have yet. It cannot bind one that another server has, and
// says so.
func TestListen(t *testing.T) {
	listen := func(at string) (*Server, error) {
		return Listen(t.Context(), Config{Index: told(sample()), Service: &records{}, Log: quiet(),
			Listen: []netip.AddrPort{netip.MustParseAddrPort(at)}})
	}
	s, err := listen("192.0.2.53:0")
	must(t, err)
	s.Close()
	s, err = listen("127.0.0.1:0")
	must(t, err)
	defer s.Close()
	if _, err := listen(s.Addrs()[0].String()); err == nil || !strings.Contains(err.Error(), "another server uses it") {
		t.Errorf("bound twice: %v", err)
	}
}
