package dns

import (
	"net/netip"
	"testing"

	"github.com/miekg/dns"
)

// FuzzPacket: a packet with any content gets no answer, or a well-formed one that fits and is not a question. A
// stranger learns nothing.
func FuzzPacket(f *testing.F) {
	for _, name := range []string{"web.home.lan.example.", "api.shop.home.lan.example.", "lan.example.", "ns.lan.example.",
		"10.2.0.192.in-addr.arpa.", "0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.", ".",
		`\000.lan.example.`, `a\.b.lan.example.`, "db-12345678.back.lan.example."} {
		for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypePTR, dns.TypeANY, dns.TypeSOA, dns.TypeNS,
			dns.TypeAXFR} {
			q := question(name, kind)
			q.Id = 7
			for _, size := range []uint16{0, 512, 4096} {
				if size > 0 {
					q.SetEdns0(size, size > 512)
				}
				wire, err := q.Pack()
				must(f, err)
				f.Add(wire, true)
				f.Add(wire[:len(wire)-1], false)
			}
		}
	}
	f.Add([]byte{}, true)
	s := over(told(sample(), crowd(40)))
	f.Fuzz(func(t *testing.T, wire []byte, udp bool) {
		for _, from := range []string{"8.8.8.8", "192.0.2.77"} {
			got := s.reply(wire, netip.MustParseAddr(from), netip.IPv4Unspecified())
			if m := new(dns.Msg); got != nil && (m.Unpack(got) != nil || !m.Response) {
				t.Fatalf("%s is answered %x", from, got)
			}
			if from == "8.8.8.8" && len(got) > len(wire) {
				t.Fatalf("a stranger is answered %x", got)
			}
		}
		q := new(dns.Msg)
		if q.Unpack(wire) != nil {
			return
		}
		for _, allowed := range []bool{true, false} {
			m := s.answer(q, asker{allowed: allowed, udp: udp, server: loopback.server})
			if m == nil {
				if !q.Response {
					t.Fatal("it is answered nothing")
				}
				continue
			}
			packed, err := m.Pack()
			if err != nil {
				t.Fatalf("%v: %s", m, err)
			}
			if udp && len(packed) > mostUDP || udp && q.IsEdns0() == nil && len(packed) > dns.MinMsgSize {
				t.Fatalf("an answer of %d bytes: %v", len(packed), m)
			}
			back := new(dns.Msg)
			if err := back.Unpack(packed); err != nil || !back.Response || back.Id != q.Id {
				t.Fatalf("%v: %v", m, err)
			}
			tells := len(back.Answer) > 0 || len(back.Ns) > 0
			if !allowed && (tells || back.Rcode == dns.RcodeNameError || back.Rcode == dns.RcodeSuccess) {
				t.Fatalf("a stranger is told %v", back)
			}
		}
	})
}

// FuzzReverse: the prefix that is read from a name is written as that name.
func FuzzReverse(f *testing.F) {
	f.Add("10.2.0.192.in-addr.arpa")
	f.Add("0.192.in-addr.arpa")
	f.Add("f.8.b.d.0.1.0.0.2.ip6.arpa")
	f.Add("x.1.in-addr.arpa")
	f.Fuzz(func(t *testing.T, name string) {
		p, valid, ok := parseReverse(name)
		if ok && valid && p.Bits() > 0 && reverseName(p) != name {
			t.Errorf("%q is read as %s, which is written %q", name, p, reverseName(p))
		}
	})
}
