package allocator_test

import (
	"net/netip"
	"slices"
	"time"

	"go4.org/netipx"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// model is a slow and simple allocator that the service is compared with. It searches whole lists.
type model struct {
	subnets map[string]*modelSubnet // by space and CIDR
	pools   map[ipam.ID]*modelPool
	now     time.Time
	clock   int    // the order of the steps
	guessed string // the name of the guessed container of the last request for any address
}

type modelPool struct {
	sub       *modelSubnet
	r         ipam.Range
	swarm     bool
	made      int
	since     time.Time
	successor ipam.ID
	back      []modelBack // addresses released since the last request
}

type modelBack struct {
	addr netip.Addr
	at   time.Time
}

type modelSubnet struct {
	space     string
	cidr      netip.Prefix
	gateway   netip.Addr
	gatewayBy ipam.ID // the only pool that requested it
	noGateway bool
	forget    bool
	wait      time.Duration
	pools     []ipam.Range
	records   map[netip.Addr]*modelRecord
}

type modelRecord struct {
	held    bool
	old     bool // from before the daemon's start, or of a start that failed, so its holder is in doubt
	since   time.Time
	gateway bool
	kind    ipam.Kind
	pool    ipam.ID
	mac     ipam.MAC
	name    string
	used    int // the time of its last request or release
	until   time.Time
}

func newModel(now time.Time) *model {
	return &model{subnets: map[string]*modelSubnet{}, pools: map[ipam.ID]*modelPool{}, now: now}
}

func (m *model) tick() int {
	m.clock++
	return m.clock
}

// poolFits reports whether a request for a pool can be granted.
func (m *model) poolFits(space string, p netip.Prefix, r ipam.Range) bool {
	want := r
	if want.IsZero() {
		want = ipam.Range{IPRange: netipx.RangeOfPrefix(p)}
	}
	for _, sub := range m.subnets {
		if sub.space != space || !sub.cidr.Overlaps(p) {
			continue
		}
		if sub.cidr != p {
			return false
		}
		for _, have := range sub.pools {
			if have != want && have.Overlaps(want.IPRange) {
				return false
			}
		}
	}
	return true
}

func (m *model) addPool(id ipam.ID, req ipam.PoolRequest) {
	key := req.Space + " " + req.CIDR.String()
	sub := m.subnets[key]
	if sub == nil {
		sub = &modelSubnet{space: req.Space, cidr: req.CIDR, noGateway: req.NoGateway,
			records: map[netip.Addr]*modelRecord{}}
		m.subnets[key] = sub
	}
	if req.Forget != nil {
		sub.forget = *req.Forget
	}
	if req.Quarantine != nil {
		sub.wait = *req.Quarantine
	}
	r := req.Range
	if r.IsZero() {
		r = ipam.Range{IPRange: netipx.RangeOfPrefix(req.CIDR)}
	}
	if !slices.Contains(sub.pools, r) {
		sub.pools = append(sub.pools, r)
	}
	m.pools[id] = &modelPool{sub: sub, r: req.Range, swarm: req.Swarm, made: m.tick(), since: m.now}
}

func (m *model) removePool(id ipam.ID) {
	at := m.pools[id]
	delete(m.pools, id)
	others, sameRange := 0, false
	for _, other := range m.pools {
		if other.sub == at.sub {
			others++
			sameRange = sameRange || other.r == at.r
		}
	}
	if others == 0 {
		delete(m.subnets, at.sub.space+" "+at.sub.cidr.String())
		return
	}
	if at.sub.gatewayBy == id {
		delete(at.sub.records, at.sub.gateway)
		at.sub.gateway, at.sub.gatewayBy = netip.Addr{}, ipam.ID{}
	}
	if !sameRange {
		gone := at.r
		if gone.IsZero() {
			gone = ipam.Range{IPRange: netipx.RangeOfPrefix(at.sub.cidr)}
		}
		at.sub.pools = slices.DeleteFunc(at.sub.pools, func(r ipam.Range) bool { return r == gone })
	}
	for _, a := range ipamtest.Hosts(at.sub.cidr) {
		if rec := at.sub.records[a]; rec != nil && rec.held && rec.pool == id {
			if rec.kind == ipam.Gateway {
				delete(at.sub.records, a)
			} else {
				m.release(at.sub, rec)
			}
		}
	}
}

func (m *model) release(sub *modelSubnet, rec *modelRecord) {
	if at := m.pools[rec.pool]; at != nil && (rec.kind == ipam.Automatic || rec.kind == ipam.Static) {
		at.back = append(at.back, modelBack{m.addressOf(sub, rec), m.now})
	}
	rec.held, rec.used = false, m.tick()
	rec.until = time.Time{}
	if sub.wait > 0 {
		rec.until = m.now.Add(sub.wait)
	}
	m.forget(sub, ipamtest.Memories)
}

// any returns the answer to a request for any address, or the zero Addr for a refusal.
func (m *model) any(id ipam.ID, req ipam.AddressRequest) netip.Addr {
	at := m.pools[id]
	sub := at.sub
	m.guessed = ""
	if same := m.latest(sub, func(a netip.Addr, rec *modelRecord) bool {
		return rec.repeatedBy(id, req)
	}); same.IsValid() {
		return same
	}
	ranges := sub.pools
	if !at.r.IsZero() {
		ranges = []ipam.Range{at.r}
	}
	if !sub.forget {
		mine := func(a netip.Addr, rec *modelRecord) bool {
			return !rec.held && (rec.kind == ipam.Static || inside(ranges, a))
		}
		for _, is := range []func(*modelRecord) bool{
			func(rec *modelRecord) bool { return req.Name != "" && rec.name == req.Name },
			func(rec *modelRecord) bool { return req.MAC != (ipam.MAC{}) && rec.mac == req.MAC },
		} {
			if a := m.latest(sub, func(a netip.Addr, rec *modelRecord) bool {
				return is(rec) &&
					mine(a, rec)
			}); a.IsValid() {
				return a
			}
		}
	}
	if a := m.restart(at, req, ranges); a.IsValid() {
		m.guessed = sub.records[a].name
		return a
	}
	return m.next(sub, ranges)
}

// repeatedBy reports whether a request is the next start of the endpoint that has or has lost the address.
func (rec *modelRecord) repeatedBy(id ipam.ID, req ipam.AddressRequest) bool {
	return req.MAC != (ipam.MAC{}) && rec.mac == req.MAC && rec.held && rec.old && rec.pool == id &&
		(req.Name == "" || rec.name == req.Name)
}

// leaveBehind doubts the latest IPv4 address of an endpoint whose IPv6 address was refused a moment later.
func (m *model) leaveBehind(id ipam.ID, req ipam.AddressRequest) {
	const moment = 10 * time.Second
	at := m.pools[id]
	if req.MAC == (ipam.MAC{}) || at.sub.cidr.Addr().Is4() {
		return
	}
	var last *modelRecord
	for _, sub := range m.subnets {
		for a, rec := range sub.records {
			other := m.pools[rec.pool]
			same := rec.held && rec.mac == req.MAC && (req.Name == "" || rec.name == req.Name)
			if same && a.Is4() && sub.space == at.sub.space && m.now.Sub(rec.since) <= moment &&
				other != nil && at.since.Sub(other.since).Abs() <= moment && (last == nil || last.used < rec.used) {
				last = rec
			}
		}
	}
	if last != nil {
		last.old = true
	}
}

// reopen restarts the daemon.
func (m *model) reopen() {
	for _, sub := range m.subnets {
		for _, rec := range sub.records {
			rec.old = rec.held
		}
	}
}

// restart returns the address of an unknown endpoint that comes back through the attachment within a second after the
// only one that left.
func (m *model) restart(at *modelPool, req ipam.AddressRequest, ranges []ipam.Range) netip.Addr {
	if req.Name != "" || req.MAC != (ipam.MAC{}) || at.swarm || at.sub.forget || len(at.back) == 0 {
		return netip.Addr{}
	}
	last := at.back[len(at.back)-1]
	if n := len(at.back); n > 1 && last.at.Sub(at.back[n-2].at) <= time.Second || m.now.Sub(last.at) > time.Second ||
		m.now.Before(last.at) {
		return netip.Addr{}
	}
	rec := at.sub.records[last.addr]
	switch {
	case rec == nil || rec.held || m.pools[rec.pool] != at || rec.until.After(m.now):
		return netip.Addr{}
	case rec.kind != ipam.Automatic || !inside(ranges, last.addr):
		return netip.Addr{}
	}
	return last.addr
}

func (m *model) addressOf(sub *modelSubnet, rec *modelRecord) netip.Addr {
	for a, other := range sub.records {
		if other == rec {
			return a
		}
	}
	return netip.Addr{}
}

func inside(ranges []ipam.Range, a netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(r ipam.Range) bool { return r.Contains(a) })
}

// latest returns the address whose record of this kind was used last.
func (m *model) latest(sub *modelSubnet, is func(netip.Addr, *modelRecord) bool) (latest netip.Addr) {
	return m.choice(sub).Last(func(a netip.Addr) bool { return is(a, sub.records[a]) })
}

// next returns the address in the ranges for an endpoint that owns none in them.
func (m *model) next(sub *modelSubnet, ranges []ipam.Range) netip.Addr {
	var pools []func(netip.Addr) bool
	for _, r := range ranges {
		pools = append(pools, r.Contains)
	}
	return m.choice(sub).Next(pools)
}

func (m *model) choice(sub *modelSubnet) ipamtest.SlowChoice {
	return ipamtest.SlowOf(sub.cidr, m.now, sub.records, func(rec *modelRecord) ipamtest.SlowRecord {
		return ipamtest.SlowRecord{Taken: rec.held, Until: rec.until, Used: rec.used}
	})
}

// preferred reports whether a requested address is given.
func (m *model) preferred(id ipam.ID, req ipam.AddressRequest) bool {
	at := m.pools[id]
	if !slices.Contains(ipamtest.Hosts(at.sub.cidr), req.Preferred) {
		return false
	}
	rec := at.sub.records[req.Preferred]
	switch {
	case rec == nil || !rec.held:
		return true
	case rec.repeatedBy(id, req):
		return true
	default:
		return at.swarm && req.MAC == (ipam.MAC{}) && rec.mac == (ipam.MAC{}) && !rec.gateway &&
			m.pools[rec.pool].successor == id
	}
}

// inherit makes a pool the successor of the older pools of its subnet's swarm.
func (m *model) inherit(id ipam.ID) {
	at := m.pools[id]
	for _, other := range m.pools {
		if at.swarm && other.swarm && other.sub == at.sub && other.made < at.made {
			other.successor = id
		}
	}
}

// taken records an address that was given.
func (m *model) taken(id ipam.ID, req ipam.AddressRequest, a netip.Addr, kind ipam.Kind) {
	sub := m.pools[id].sub
	m.pools[id].successor = ipam.ID{}
	if rec := sub.records[a]; rec != nil && rec.held {
		if rec.mac == (ipam.MAC{}) {
			rec.pool = id // a replay moves the lease
			return
		}
		rec.old, rec.name, rec.used, rec.since = false, req.Name, m.tick(), m.now
		m.pools[id].back = nil
		return
	}
	m.pools[id].back = nil
	young := m.now.Sub(m.pools[id].since) <= time.Second
	if kind == ipam.Static && req.MAC == (ipam.MAC{}) && req.Name == "" && !m.pools[id].swarm && young {
		kind = ipam.Auxiliary
	}
	sub.records[a] = &modelRecord{held: true, kind: kind, pool: id, mac: req.MAC, name: req.Name, used: m.tick(),
		since: m.now}
}
