package dns

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// ttl is how long others may keep an answer, in seconds; negativeTTL how long they may keep it that there is none: a
// name that is asked for before it is there is there soon.
const (
	ttl         = 5
	negativeTTL = 1
)

// The timers of the zone, in seconds, for those who would copy it; nobody may.
const (
	refresh = 5
	retry   = 5
	expire  = 60
)

// mostUDP is how long an answer by UDP is at most: what is longer might arrive in parts, or not at all (RFC 9715).
const mostUDP = 1232

// asker is who asks.
type asker struct {
	allowed bool
	udp     bool
	server  func() netip.Addr // of this host, as the asker can reach it; the zero Addr: it is not known
}

// answer is what is answered to a message; nil: nothing is.
func (s *Server) answer(q *dns.Msg, by asker) *dns.Msg {
	if q.Response {
		return nil
	}
	m := new(dns.Msg)
	m.SetReply(q)
	m.RecursionAvailable, m.AuthenticatedData, m.CheckingDisabled = false, false, false
	size := dns.MaxMsgSize
	opt := q.IsEdns0()
	if by.udp {
		size = dns.MinMsgSize
	}
	if opt != nil {
		m.SetEdns0(mostUDP, false)
		if by.udp {
			size = min(max(int(opt.UDPSize()), dns.MinMsgSize), mostUDP)
		}
	}
	switch {
	case q.Opcode != dns.OpcodeQuery:
		m.Rcode = dns.RcodeNotImplemented
	case len(q.Question) != 1 || len(q.Answer) > 0 || len(q.Ns) > 1:
		m.Rcode = dns.RcodeFormatError
	case opt != nil && opt.Version() != 0:
		m.Rcode = dns.RcodeBadVers
	case !by.allowed || q.Question[0].Qclass != dns.ClassINET:
		m.Rcode = dns.RcodeRefused
	default:
		s.resolve(m, q.Question[0], by)
	}
	if m.Rcode == dns.RcodeBadVers { // its upper bits are in the option
		m.IsEdns0().SetVersion(0)
	}
	m.Compress = true
	m.Truncate(size)
	return m
}

// resolve answers a question of one who may ask.
func (s *Server) resolve(m *dns.Msg, q dns.Question, by asker) {
	name := strings.TrimSuffix(dns.CanonicalName(q.Name), ".")
	switch q.Qtype {
	case dns.TypeAXFR, dns.TypeIXFR, dns.TypeMAILA, dns.TypeMAILB, dns.TypeOPT, dns.TypeTSIG, dns.TypeTKEY:
		m.Rcode = dns.RcodeRefused
		return
	}
	known := s.cfg.Index.reply(m, q, name, by)
	if !known && m.Authoritative && s.cfg.Partial() != nil { // it may be in the store that was not reached
		m.Authoritative, m.Ns, m.Rcode = false, nil, dns.RcodeServerFailure
	}
	if n := len(m.Answer); n > 1 && q.Qtype != dns.TypeANY { // each is the first in its turn
		at := int(s.turn.Add(1) % uint64(n))
		m.Answer = slices.Concat(m.Answer[at:], m.Answer[:at])
	}
}

// reply answers a question for a name, which is without a dot at its end and in lower case. known tells that somebody
// has it, or that nobody can: no store that was not reached makes another answer of it. An address of the other family
// is none such, since a network is in one store.
func (x *Index) reply(m *dns.Msg, q dns.Question, name string, by asker) (known bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	a := reply{index: x, m: m, q: q, by: by}
	switch {
	case len(x.told) == 0:
		m.Rcode = dns.RcodeServerFailure // nothing is known yet
	case name == x.zone:
		a.forward("")
	case strings.HasSuffix(name, "."+x.zone) && dns.IsSubDomain(dns.Fqdn(x.zone), dns.Fqdn(name)):
		a.forward(strings.TrimSuffix(name, "."+x.zone))
	default:
		a.backward(name)
	}
	return m.Rcode != dns.RcodeNameError && !a.unclaimed
}

// reply is an answer that is being made. The index is locked.
type reply struct {
	index *Index
	m     *dns.Msg
	q     dns.Question
	by    asker

	unclaimed bool // nobody has the name, and somebody could
}

// forward answers for a name below the zone.
func (a *reply) forward(name string) {
	a.m.Authoritative = true
	zone := dns.Fqdn(a.index.zone)
	var claims []claim
	there := true
	switch name {
	case "":
		if a.apex(zone) {
			return
		}
	case nameServer:
		if a.q.Qtype == dns.TypeANY {
			a.any()
			return
		}
		if addr := a.by.server(); addr.IsValid() && (a.q.Qtype == dns.TypeAAAA) == addr.Is6() &&
			(a.q.Qtype == dns.TypeA || a.q.Qtype == dns.TypeAAAA) {
			a.put(addr)
		}
	default:
		claims, there = a.index.named(name)
		a.unclaimed = len(claims) == 0
	}
	if len(claims) > 0 {
		switch a.q.Qtype {
		case dns.TypeA, dns.TypeAAAA:
			for _, addr := range addresses(claims, a.q.Qtype == dns.TypeAAAA) {
				a.put(addr)
			}
		case dns.TypeANY:
			a.any()
		}
	}
	a.none(zone, there)
}

// apex answers for the beginning of a zone, and tells whether there was anything to be said.
func (a *reply) apex(zone string) bool {
	switch a.q.Qtype {
	case dns.TypeSOA:
		a.m.Answer = append(a.m.Answer, a.index.soa(zone, ttl))
	case dns.TypeNS:
		a.m.Answer = append(a.m.Answer, a.index.ns(zone))
		if addr := a.by.server(); addr.IsValid() {
			a.m.Extra = append([]dns.RR{address(a.index.server(), addr)}, a.m.Extra...)
		}
	case dns.TypeANY:
		a.any()
	default:
		return false
	}
	return true
}

// any answers to who asks for anything with as little as there is to be said (RFC 8482).
func (a *reply) any() {
	a.m.Answer = append(a.m.Answer, &dns.HINFO{Hdr: header(a.q.Name, dns.TypeHINFO, ttl), Cpu: "RFC8482"})
}

func (a *reply) put(addr netip.Addr) { a.m.Answer = append(a.m.Answer, address(a.q.Name, addr)) }

// none says that there is no such name, or nothing of what was asked for, unless something was found (RFC 2308).
func (a *reply) none(zone string, there bool) {
	if len(a.m.Answer) > 0 {
		return
	}
	if !there {
		a.m.Rcode = dns.RcodeNameError
	}
	a.m.Ns = append(a.m.Ns, a.index.soa(zone, negativeTTL))
}

// backward answers for the name of an address, where it is one of ours.
func (a *reply) backward(name string) {
	p, valid, ok := parseReverse(name)
	if !ok {
		a.m.Rcode = dns.RcodeRefused
		return
	}
	ours, ok := a.index.reverse.longest(p.Addr(), p.Bits())
	if !ok {
		a.m.Rcode = dns.RcodeRefused
		return
	}
	top := apex(ours, p.Addr())
	if p.Bits() < top.Bits() {
		a.m.Rcode = dns.RcodeRefused // it is above what is ours
		return
	}
	a.m.Authoritative = true
	zone := dns.Fqdn(reverseName(top))
	switch {
	case !valid:
		a.none(zone, false)
		return
	case p == top && a.apex(zone):
		return
	case !p.IsSingleIP():
		a.none(zone, true) // addresses are beneath it
		return
	}
	all := a.index.at[p.Addr()]
	switch a.q.Qtype {
	case dns.TypePTR:
		for _, e := range all {
			a.m.Answer = append(a.m.Answer, &dns.PTR{Hdr: header(a.q.Name, dns.TypePTR, ttl),
				Ptr: dns.Fqdn(a.index.nameOf(e) + "." + a.index.zone)})
		}
	case dns.TypeANY:
		if len(all) > 0 {
			a.any()
		}
	}
	a.none(zone, len(all) > 0)
}

func header(name string, kind uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}

func address(name string, addr netip.Addr) dns.RR {
	if addr.Is6() {
		return &dns.AAAA{Hdr: header(name, dns.TypeAAAA, ttl), AAAA: addr.AsSlice()}
	}
	return &dns.A{Hdr: header(name, dns.TypeA, ttl), A: addr.AsSlice()}
}

// server is the name of who answers for the zone.
func (x *Index) server() string { return dns.Fqdn(nameServer + "." + x.zone) }

func (x *Index) soa(zone string, ttl uint32) dns.RR {
	return &dns.SOA{Hdr: header(zone, dns.TypeSOA, ttl), Ns: x.server(), Mbox: dns.Fqdn("hostmaster." + x.zone),
		Serial: x.serial, Refresh: refresh, Retry: retry, Expire: expire, Minttl: negativeTTL}
}

func (x *Index) ns(zone string) dns.RR {
	return &dns.NS{Hdr: header(zone, dns.TypeNS, ttl), Ns: x.server()}
}
