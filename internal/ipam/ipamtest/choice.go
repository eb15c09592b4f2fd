package ipamtest

import (
	"net/netip"
	"time"

	"go4.org/netipx"
)

// SlowChoice chooses an address in the slowest and plainest way, for every model that chooses. It walks one subnet
// from end to end.
type SlowChoice struct {
	cidr netip.Prefix
	now  time.Time
	all  map[netip.Addr]SlowRecord // what is known of an address; no entry: nobody ever had it
}

// SlowRecord is the part of a model's record that the choice needs.
type SlowRecord struct {
	Taken bool // held, or reserved
	Until time.Time
	Used  int // greater if later
}

// SlowOf returns the choice among the records of a model.
func SlowOf[R any](cidr netip.Prefix, now time.Time, records map[netip.Addr]R, as func(R) SlowRecord) SlowChoice {
	c := SlowChoice{cidr: cidr, now: now, all: map[netip.Addr]SlowRecord{}}
	for a, rec := range records {
		c.all[a] = as(rec)
	}
	return c
}

// Next returns the next address for an owner without a remembered one: per pool the lowest never used, then the
// one released longest ago that is past its quarantine.
func (c SlowChoice) Next(pools []func(netip.Addr) bool) netip.Addr {
	for _, open := range pools {
		var oldest netip.Addr
		for _, a := range Hosts(c.cidr) {
			rec, known := c.all[a]
			switch {
			case !open(a):
			case !known:
				return a
			case !rec.Taken && !rec.Until.After(c.now) && (!oldest.IsValid() || rec.Used < c.all[oldest].Used):
				oldest = a
			}
		}
		if oldest.IsValid() {
			return oldest
		}
	}
	return netip.Addr{}
}

// Last returns the address that was used last, of those that match.
func (c SlowChoice) Last(is func(netip.Addr) bool) (last netip.Addr) {
	for a, rec := range c.all {
		if is(a) && (!last.IsValid() || rec.Used > c.all[last].Used) {
			last = a
		}
	}
	return last
}

// Hosts lists the addresses that a subnet allows, by RFC 950, 3021, 4291 and 6164.
func Hosts(p netip.Prefix) (all []netip.Addr) {
	last := netipx.RangeOfPrefix(p).To()
	for a := p.Addr(); p.Contains(a); a = a.Next() {
		spare := p.Addr().BitLen() - p.Bits()
		if spare > 1 && (a == p.Addr() || a == last && a.Is4()) {
			continue
		}
		all = append(all, a)
	}
	return all
}
