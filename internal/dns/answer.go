package dns

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// ttl is how long resolvers may cache an answer, in seconds. negativeTTL is the time for a negative answer. It is
// short, because a name that is queried early may exist soon after.
const (
	ttl         = 5
	negativeTTL = 1
)

// The timers of the zone for secondary servers, in seconds. None are allowed.
const (
	refresh = 5
	retry   = 5
	expire  = 60
)

// mostUDP is the maximum size of a UDP answer in bytes. A larger one might be fragmented or lost (RFC 9715).
const mostUDP = 1232

// asker is the client of a query.
type asker struct {
	allowed bool
	udp     bool
	server  func() netip.Addr // this host's address as the client reaches it; the zero Addr: unknown
}

// answer returns the answer to a message; nil: none.
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
	if m.Rcode == dns.RcodeBadVers { // the OPT record has its upper bits
		m.IsEdns0().SetVersion(0)
	}
	m.Compress = true
	m.Truncate(size)
	return m
}

// resolve answers a question of an allowed client.
func (s *Server) resolve(m *dns.Msg, q dns.Question, by asker) {
	name := strings.TrimSuffix(dns.CanonicalName(q.Name), ".")
	switch q.Qtype {
	case dns.TypeAXFR, dns.TypeIXFR, dns.TypeMAILA, dns.TypeMAILB, dns.TypeOPT, dns.TypeTSIG, dns.TypeTKEY:
		m.Rcode = dns.RcodeRefused
		return
	}
	known := s.cfg.Index.reply(m, q, name, by)
	if !known && m.Authoritative && s.cfg.Partial() != nil { // the name may be in the unreachable store
		m.Authoritative, m.Ns, m.Rcode = false, nil, dns.RcodeServerFailure
	}
	if n := len(m.Answer); n > 1 && q.Qtype != dns.TypeANY { // each comes first in turn
		at := int(s.turn.Add(1) % uint64(n))
		m.Answer = slices.Concat(m.Answer[at:], m.Answer[:at])
	}
}

// reply answers a question for a name in lower case, without the final dot. known reports that the name is held, or
// that it cannot exist. Then an unreachable store would not change the answer. An address of the other family does not
// change it either, because a network is in one store.
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

// reply is an answer in the making. The index is locked.
type reply struct {
	index *Index
	m     *dns.Msg
	q     dns.Question
	by    asker

	unclaimed bool // nobody has the name, although somebody could
}

// forward answers for a name in the zone.
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

// apex answers for the apex of a zone, and reports whether there was an answer.
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

// any gives the minimal answer to a query for ANY (RFC 8482).
func (a *reply) any() {
	a.m.Answer = append(a.m.Answer, &dns.HINFO{Hdr: header(a.q.Name, dns.TypeHINFO, ttl), Cpu: "RFC8482"})
}

func (a *reply) put(addr netip.Addr) { a.m.Answer = append(a.m.Answer, address(a.q.Name, addr)) }

// none makes a negative answer, unless something was found: no such name, or no data (RFC 2308).
func (a *reply) none(zone string, there bool) {
	if len(a.m.Answer) > 0 {
		return
	}
	if !there {
		a.m.Rcode = dns.RcodeNameError
	}
	a.m.Ns = append(a.m.Ns, a.index.soa(zone, negativeTTL))
}

// backward answers for the reverse name of an address, if it is one of ours.
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
		a.m.Rcode = dns.RcodeRefused // it is above our zones
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
		a.none(zone, true) // there are addresses below it
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

// server returns the name of the zone's server.
func (x *Index) server() string { return dns.Fqdn(nameServer + "." + x.zone) }

func (x *Index) soa(zone string, ttl uint32) dns.RR {
	return &dns.SOA{Hdr: header(zone, dns.TypeSOA, ttl), Ns: x.server(), Mbox: dns.Fqdn("hostmaster." + x.zone),
		Serial: x.serial, Refresh: refresh, Retry: retry, Expire: expire, Minttl: negativeTTL}
}

func (x *Index) ns(zone string) dns.RR {
	return &dns.NS{Hdr: header(zone, dns.TypeNS, ttl), Ns: x.server()}
}
