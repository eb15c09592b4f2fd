package ipamtest

import (
	"net/netip"
	"time"

	"go4.org/netipx"
)

// SlowChoice is the choice of an address at its slowest and plainest, for every model that chooses: one subnet, whose
// addresses are walked from end to end.
type SlowChoice struct {
	cidr netip.Prefix
	now  time.Time
	all  map[netip.Addr]SlowRecord // what is known of an address; none: nobody ever had it
}

// SlowRecord is as much of a model's record as the choice goes by.
type SlowRecord struct {
	Taken bool // held, or reserved
	Until time.Time
	Used  int // the later the more
}

// SlowOf is the choice among records of a model.
func SlowOf[R any](cidr netip.Prefix, now time.Time, records map[netip.Addr]R, as func(R) SlowRecord) SlowChoice {
	c := SlowChoice{cidr: cidr, now: now, all: map[netip.Addr]SlowRecord{}}
	for a, rec := range records {
		c.all[a] = as(rec)
	}
	return c
}

// Next is the order without any memory of the owner: per pool the lowest never used, then the one released longest ago
// that is past its quarantine.
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

// Last is the address that was in use last, of those that are looked for.
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
