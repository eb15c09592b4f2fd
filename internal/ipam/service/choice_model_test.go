package service_test

import (
	"net/netip"
	"time"
)

// slowChoice is the choice of an address at its slowest and plainest, for every model that chooses: one subnet, whose
// addresses are walked from end to end.
type slowChoice struct {
	cidr netip.Prefix
	now  time.Time
	all  map[netip.Addr]slowRecord // what is known of an address; none: nobody ever had it
}

// slowRecord is as much of a model's record as the choice goes by.
type slowRecord struct {
	taken bool // held, or reserved
	until time.Time
	used  int // the later the more
}

// slowOf is the choice among records of a model.
func slowOf[R any](cidr netip.Prefix, now time.Time, records map[netip.Addr]R, as func(R) slowRecord) slowChoice {
	c := slowChoice{cidr: cidr, now: now, all: map[netip.Addr]slowRecord{}}
	for a, rec := range records {
		c.all[a] = as(rec)
	}
	return c
}

// next is the order without any memory of the owner: per pool the lowest never used, then the one released longest ago
// that is past its quarantine.
func (c slowChoice) next(pools []func(netip.Addr) bool) netip.Addr {
	for _, open := range pools {
		var oldest netip.Addr
		for _, a := range hosts(c.cidr) {
			rec, known := c.all[a]
			switch {
			case !open(a):
			case !known:
				return a
			case !rec.taken && !rec.until.After(c.now) && (!oldest.IsValid() || rec.used < c.all[oldest].used):
				oldest = a
			}
		}
		if oldest.IsValid() {
			return oldest
		}
	}
	return netip.Addr{}
}

// last is the address that was in use last, of those that are looked for.
func (c slowChoice) last(is func(netip.Addr) bool) (last netip.Addr) {
	for a, rec := range c.all {
		if is(a) && (!last.IsValid() || rec.used > c.all[last].used) {
			last = a
		}
	}
	return last
}
