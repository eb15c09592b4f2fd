package dns

import (
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// The server answers a limited number of questions at a time and keeps nothing of the others. The names are locked
// meanwhile, so that no answer ends.
func TestFlood(t *testing.T) {
	x := told(sample())
	s := run(t, Config{Index: x})
	q := question("web.home.lan.example.", dns.TypeA)
	exchange(t, s, "udp", q) // everything that it needs has begun
	packet, err := q.Pack()
	must(t, err)
	conn, err := net.Dial("udp", s.Addrs()[0].String())
	must(t, err)
	defer conn.Close()
	memory := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before, held := runtime.NumGoroutine(), memory()
	x.mu.Lock()
	most := 0
	for range 30_000 {
		_, _ = conn.Write(packet) // some do not fit
		most = max(most, runtime.NumGoroutine())
	}
	grown := int64(memory()) - int64(held)
	x.mu.Unlock()
	if most > before+readers {
		t.Errorf("there were %d goroutines more than %d", most-before, readers)
	}
	if grown > 8<<20 {
		t.Errorf("the memory in use grew by %d bytes", grown)
	}
	c := dns.Client{Timeout: time.Second}
	for tries := 1; ; tries++ { // the first may be dropped while earlier ones wait
		m, _, err := c.Exchange(q, s.Addrs()[0].String())
		if err == nil && summary(m) == "NOERROR | 192.0.2.10" {
			break
		}
		if tries == 30 {
			t.Fatalf("afterwards: %v, %v", m, err)
		}
	}
}

// The replies to raw packets.
func TestReply(t *testing.T) {
	wire := func(change func(*dns.Msg)) []byte {
		q := question("web.home.lan.example.", dns.TypeA)
		change(q)
		text, err := q.Pack()
		must(t, err)
		return text
	}
	plain := wire(func(*dns.Msg) {})
	member, stranger := netip.MustParseAddr("192.0.2.77"), netip.MustParseAddr("8.8.8.8")
	for name, c := range map[string]struct {
		from      netip.Addr
		packet    []byte
		want      string // the code and what follows
		questions int
	}{
		"a member":                 {member, plain, "NOERROR | 192.0.2.10", 1},
		"a stranger":               {stranger, plain, "REFUSED", 1},
		"a stranger's option":      {stranger, wire(func(q *dns.Msg) { q.SetEdns0(4096, true) }), "REFUSED", 1},
		"a stranger's update":      {stranger, wire(func(q *dns.Msg) { q.Opcode = dns.OpcodeUpdate }), "REFUSED", 1},
		"a stranger's answer":      {stranger, wire(func(q *dns.Msg) { q.Response = true }), "", 0},
		"a stranger's two":         {stranger, wire(func(q *dns.Msg) { q.Question = append(q.Question, q.Question[0]) }), "REFUSED", 0},
		"a stranger's pointer":     {stranger, append(slices.Clone(plain[:12]), 0xc0, 12, 0, 1, 0, 1), "REFUSED", 0},
		"a stranger's half":        {stranger, plain[:20], "REFUSED", 0},
		"a stranger's header":      {stranger, plain[:12], "REFUSED", 0},
		"less than a header":       {stranger, plain[:11], "", 0},
		"a member's answer":        {member, wire(func(q *dns.Msg) { q.Response = true }), "", 0},
		"a member's half":          {member, plain[:20], "FORMERR", 0},
		"a member's tail cut away": {member, wire(func(q *dns.Msg) { q.SetEdns0(4096, true) })[:len(plain)+3], "FORMERR", 1},
	} {
		s := over(told(sample()))
		got := s.reply(c.packet, c.from, netip.IPv4Unspecified())
		if got == nil {
			if c.want != "" {
				t.Errorf("%s is answered nothing", name)
			}
			continue
		}
		m := new(dns.Msg)
		must(t, m.Unpack(got))
		if summary(m) != c.want || len(m.Question) != c.questions || !m.Response || m.RecursionAvailable {
			t.Errorf("%s: %s, %+v", name, summary(m), m)
		}
		if m.Id != 0 && m.Id != uint16(c.packet[0])<<8|uint16(c.packet[1]) {
			t.Errorf("%s: another id", name)
		}
		if c.want != "NOERROR | 192.0.2.10" && len(got) > len(c.packet) {
			t.Errorf("%s: %d bytes are answered to %d", name, len(got), len(c.packet))
		}
	}
}

// In a second, one source gets a limited number of answers that are larger than its questions. Then it is sent to
// TCP, in no more bytes than it has sent. Others, and this host, are answered meanwhile; so is the source a second
// later.
func TestLimit(t *testing.T) {
	s := over(told(sample()))
	now := stopped()
	s.cfg.Now = func() time.Time { return now }
	packet, err := question("web.home.lan.example.", dns.TypeA).Pack()
	must(t, err)
	ask := func(from string) *dns.Msg {
		t.Helper()
		wire := s.reply(packet, netip.MustParseAddr(from), netip.IPv4Unspecified())
		m := new(dns.Msg)
		must(t, m.Unpack(wire))
		if m.Truncated && (len(wire) > len(packet) || len(m.Answer) > 0) {
			t.Errorf("%s is sent to TCP in %d bytes: %v", from, len(wire), m)
		}
		return m
	}
	const flooded, crowd, own = "192.0.2.77", "2001:db8:1::77", "192.168.9.9"
	for i := range mostLarger {
		if ask(flooded).Truncated {
			t.Fatalf("answer %d is cut", i)
		}
		ask(own)
		if ask("2001:db8:1::" + string("0123456789abcdef"[i%16])).Truncated {
			t.Fatalf("answer %d to a network is cut", i)
		}
	}
	if !ask(flooded).Truncated || !ask(crowd).Truncated {
		t.Error("there is no limit")
	}
	if ask("192.0.2.78").Truncated || ask(own).Truncated {
		t.Error("others are cut as well")
	}
	now = now.Add(time.Second)
	if ask(flooded).Truncated {
		t.Error("it is cut for longer than a second")
	}
}

// The host's addresses are read again after a second. If they cannot be read, the last ones stay in use.
func TestOwn(t *testing.T) {
	first, second := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	var o own
	now := stopped()
	read := func(a netip.Addr, err error) func() ([]netip.Addr, error) {
		return func() ([]netip.Addr, error) { return []netip.Addr{a}, err }
	}
	for i, c := range []struct {
		later time.Duration
		now   func() ([]netip.Addr, error)
		has   netip.Addr
	}{{0, read(first, nil), first}, {ownFor - 1, read(second, nil), first}, {1, read(second, nil), second},
		{ownFor, read(first, net.ErrClosed), second}} {
		now = now.Add(c.later)
		for _, a := range []netip.Addr{first, second} {
			if got := o.has(a, now, c.now); got != (a == c.has) {
				t.Errorf("%d: %s is this host's: %t", i, a, got)
			}
		}
	}
	all, err := hostAddrs()
	must(t, err)
	if !slices.Contains(all, netip.MustParseAddr("127.0.0.1")) {
		t.Errorf("this host has %v", all)
	}
}

// Strangers, even silent ones, take no TCP places from clients that may ask.
func TestStrangersByTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	b := &bounded{Listener: l, of: map[netip.Addr]int{}, allows: func(from, local netip.Addr) bool {
		return local.IsLoopback() && !strings.HasPrefix(from.String(), "127.9.")
	}}
	defer b.Close()
	come := func(from string) net.Conn {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.Dial("tcp", l.Addr().String())
		must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	for i := range mostConns {
		come("127.9.0." + string("12345678"[i%8]))
	}
	member := come("127.0.0.1")
	c, err := b.Accept() // in order of arrival
	must(t, err)
	defer c.Close()
	if c.RemoteAddr().String() != member.LocalAddr().String() {
		t.Errorf("%s is taken", c.RemoteAddr())
	}
	if b.all != 1 {
		t.Errorf("%d places are taken", b.all)
	}
}
