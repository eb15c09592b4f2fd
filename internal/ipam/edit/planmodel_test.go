package edit_test

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"go4.org/netipx"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// planModel is the slow, obvious model of one network. It walks all addresses for every question. It refuses an edit
// with all kinds of errors that apply.
type planModel struct {
	subnets []*planSubnet
	docker  map[ipam.ID]*planDocker
	forget  bool
	wait    time.Duration
	now     time.Time
	clock   int
	hint    []netip.Addr // what the service gave, if the model has a choice
}

type planSubnet struct {
	cidr       netip.Prefix
	gateway    netip.Addr
	pools      []planPool
	exclusions []planExclusion
	records    map[netip.Addr]planRecord
}

type planPool struct {
	name string
	r    ipam.Range
}

type planExclusion struct {
	note string
	r    ipam.Range
}

// planDocker is a Docker network on a subnet.
type planDocker struct {
	sub  *planSubnet
	pool string
}

// planRecord is what is known of an address. The zero kind has only a reservation.
type planRecord struct {
	held  bool
	old   bool // held since before the daemon's start, so its holder is in doubt
	kind  ipam.Kind
	name  string
	mac   ipam.MAC
	pool  ipam.ID
	nic   int // of an external address
	slot  int
	used  int
	until time.Time

	owner string // "": none
}

// refusals are the kinds of errors that apply. None means success.
type refusals []error

func newPlanModel(now time.Time) *planModel {
	return &planModel{docker: map[ipam.ID]*planDocker{}, now: now}
}

func (m *planModel) tick() int {
	m.clock++
	return m.clock
}

// clone copies the model for an edit that may be refused. The Docker networks of the copy use its subnets.
func (m *planModel) clone() *planModel {
	c := *m
	c.subnets, c.docker = nil, map[ipam.ID]*planDocker{}
	copies := map[*planSubnet]*planSubnet{}
	for _, sub := range m.subnets {
		other := *sub
		other.pools, other.exclusions, other.records = slices.Clone(sub.pools), slices.Clone(sub.exclusions),
			maps.Clone(sub.records)
		c.subnets = append(c.subnets, &other)
		copies[sub] = &other
	}
	for id, d := range m.docker {
		c.docker[id] = &planDocker{copies[d.sub], d.pool}
	}
	return &c
}

// at returns the subnet that contains an address, or nil.
func (m *planModel) at(a netip.Addr) *planSubnet {
	for _, sub := range m.subnets {
		if sub.cidr.Contains(a) {
			return sub
		}
	}
	return nil
}

// holding returns the subnet that contains all of a range, or nil.
func (m *planModel) holding(r ipam.Range) *planSubnet {
	if sub := m.at(r.From()); sub != nil && sub.cidr.Contains(r.To()) {
		return sub
	}
	return nil
}

func (m *planModel) attached(sub *planSubnet) bool {
	for _, d := range m.docker {
		if d.sub == sub {
			return true
		}
	}
	return false
}

func (sub *planSubnet) host(a netip.Addr) bool { return slices.Contains(ipamtest.Hosts(sub.cidr), a) }

func (sub *planSubnet) excluded(a netip.Addr) bool {
	return slices.ContainsFunc(sub.exclusions, func(x planExclusion) bool { return x.r.Contains(a) })
}

// open reports whether Berth may choose an address from a pool.
func (sub *planSubnet) open(p planPool, a netip.Addr) bool {
	return p.r.Contains(a) && sub.host(a) && !sub.excluded(a)
}

// inPools reports whether Berth may choose an address from the pools of a name, or from any with "".
func (sub *planSubnet) inPools(name string, a netip.Addr) bool {
	return slices.ContainsFunc(sub.pools,
		func(p planPool) bool { return (name == "" || p.name == name) && sub.open(p, a) })
}

// free returns the next free address of the pools of a name, for an owner without a remembered one.
func (m *planModel) free(sub *planSubnet, name string) netip.Addr {
	var pools []func(netip.Addr) bool
	for _, p := range sub.pools {
		if name == "" || p.name == name {
			pools = append(pools, func(a netip.Addr) bool { return sub.open(p, a) })
		}
	}
	return m.choice(sub).Next(pools)
}

// remembered returns the last address of an owner in a subnet, if it may get that again.
func (m *planModel) remembered(sub *planSubnet, pool string, is func(planRecord) bool) netip.Addr {
	if m.forget {
		return netip.Addr{}
	}
	return m.choice(sub).Last(func(a netip.Addr) bool {
		rec := sub.records[a]
		may := sub.inPools(pool, a) || pool == "" && rec.kind == ipam.Static && !sub.excluded(a)
		return rec.kind != 0 && !rec.held && is(rec) && may
	})
}

func (m *planModel) choice(sub *planSubnet) ipamtest.SlowChoice {
	return ipamtest.SlowOf(sub.cidr, m.now, sub.records, func(rec planRecord) ipamtest.SlowRecord {
		return ipamtest.SlowRecord{Taken: rec.held || rec.owner != "", Until: rec.until, Used: rec.used}
	})
}

// reserved returns the address that an owner has reserved in a subnet.
func (sub *planSubnet) reserved(owner string) netip.Addr {
	for a, rec := range sub.records {
		if rec.owner == owner && owner != "" {
			return a
		}
	}
	return netip.Addr{}
}

// pick returns the address for a wish of a pool.
func (m *planModel) pick(owner, pool string) (*planSubnet, netip.Addr, refusals) {
	for _, sub := range m.subnets {
		if a := sub.reserved(owner); a.IsValid() && !sub.records[a].held && (pool == "" || sub.inPools(pool, a)) {
			return sub, a, nil
		}
	}
	for _, sub := range m.subnets {
		if a := m.remembered(sub, pool, func(rec planRecord) bool { return rec.by(owner) }); a.IsValid() &&
			owner != "" {
			return sub, a, nil
		}
	}
	named := pool == ""
	for _, sub := range m.subnets {
		if a := m.free(sub, pool); a.IsValid() {
			return sub, a, nil
		}
		named = named || slices.ContainsFunc(sub.pools, func(p planPool) bool { return p.name == pool })
	}
	if !named {
		return nil, netip.Addr{}, refusals{ipam.ErrNotFound}
	}
	return nil, netip.Addr{}, refusals{ipam.ErrExhausted}
}

// may checks whether an owner may have a given address, held or not.
func (m *planModel) may(owner string, a netip.Addr, force bool) (sub *planSubnet, no refusals) {
	if sub = m.at(a); sub == nil || !sub.host(a) {
		return nil, refusals{ipam.ErrInvalid}
	}
	rec := sub.records[a]
	if rec.owner != "" && rec.owner != owner || sub.excluded(a) && !force && rec.owner != owner {
		no = append(no, ipam.ErrInUse)
	}
	return sub, no
}

// release gives an address back: to its owner if it is reserved, otherwise it is remembered.
func (m *planModel) release(sub *planSubnet, a netip.Addr) {
	rec := sub.records[a]
	used := m.tick()
	if rec.owner != "" {
		sub.records[a] = planRecord{owner: rec.owner}
		return
	}
	rec.held, rec.used, rec.until = false, used, time.Time{}
	if m.wait > 0 {
		rec.until = m.now.Add(m.wait)
	}
	sub.records[a] = rec
	m.forgetOldest(sub)
}

// bringNearer shortens each quarantine to one that would begin now.
func (m *planModel) bringNearer() {
	for _, sub := range m.subnets {
		for a, rec := range sub.records {
			if end := m.now.Add(m.wait); rec.until.After(end.Add(time.Second)) {
				rec.until = end
				sub.records[a] = rec
			}
		}
	}
}

// forgetOldest drops the oldest remembered address beyond the limit, unless it is in quarantine.
func (m *planModel) forgetOldest(sub *planSubnet) {
	var oldest netip.Addr
	n := 0
	for a, rec := range sub.records {
		if rec.held || rec.kind == 0 {
			continue
		}
		n++
		if !oldest.IsValid() || rec.used < sub.records[oldest].used {
			oldest = a
		}
	}
	if n > ipamtest.Memories && !sub.records[oldest].until.After(m.now) {
		delete(sub.records, oldest)
	}
}

// hold records a holder of an address. Its owner stays.
func (m *planModel) hold(sub *planSubnet, a netip.Addr, rec planRecord) {
	rec.held, rec.used, rec.owner = true, m.tick(), sub.records[a].owner
	sub.records[a] = rec
}

// without returns the parts of a range outside another one.
func (m *planModel) without(r, hole ipam.Range) (left []ipam.Range) {
	var b netipx.IPSetBuilder
	b.AddRange(r.IPRange)
	b.RemoveRange(hole.IPRange)
	set, err := b.IPSet()
	if err != nil {
		panic(err)
	}
	for _, part := range set.Ranges() {
		left = append(left, ipam.Range{IPRange: part})
	}
	return left
}

// taken returns an owner's external addresses by interface and slot.
func (m *planModel) taken(owner string) map[[2]int]netip.Addr {
	all := map[[2]int]netip.Addr{}
	for _, sub := range m.subnets {
		for a, rec := range sub.records {
			if rec.held && rec.kind == ipam.External && rec.name == owner {
				all[[2]int{rec.nic, rec.slot}] = a
			}
		}
	}
	return all
}

// meets reports whether an address satisfies a wish.
func (m *planModel) meets(w ipam.Wish, a netip.Addr) bool {
	if w.Address.IsValid() || w.Pool == "" {
		return !w.Address.IsValid() || w.Address == a
	}
	return slices.ContainsFunc(m.at(a).pools, func(p planPool) bool { return p.name == w.Pool && p.r.Contains(a) })
}
