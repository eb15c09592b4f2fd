package allocator_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"go4.org/netipx"
	"pgregory.net/rapid"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store"
)

var (
	modelSpaces = []string{"local", "global", "lab"}
	modelCIDRs  = ipamtest.Prefixes("10.0.0.0/29", "10.0.0.0/28", "10.0.0.8/29", "10.0.0.16/30", "10.0.0.20/31",
		"10.0.0.22/32",
		"fd00::/125", "fd00::8/127")
	modelNames = []string{"", "", "web", "db"}
)

// machine runs the service and the model together, over a store that is sometimes closed and opened again. A store in
// memory stays open, and a new service uses it.
type machine struct {
	path  string
	clock *ipamtest.Clock
	store store.Store
	s     *service.Service
	m     *model
}

func TestModel(t *testing.T) { // GA-22, LN-3 to LN-10
	ipamtest.EachStore(t, "berth-model", func(t *rapid.T, path string) {
		c := ipamtest.NewClock()
		mc := &machine{path: path, clock: c, m: newModel(c.Time)}
		mc.store = ipamtest.Rerunning(ipamtest.OpenStore(t, mc.path))
		defer func() { mc.store.Close() }()
		mc.s = ipamtest.OpenService(t, mc.store, c.Now)
		t.Repeat(map[string]func(*rapid.T){
			"requestPool":    mc.requestPool,
			"releasePool":    mc.releasePool,
			"requestAny":     mc.requestAny,
			"requestAny2":    mc.requestAny, // makes this step more frequent
			"requestThis":    mc.requestThis,
			"requestGateway": mc.requestGateway,
			"releaseAddress": mc.releaseAddress,
			"wait":           mc.wait,
			"reopen":         mc.reopen,
			"":               mc.check,
		})
	})
}

func (mc *machine) requestPool(t *rapid.T) {
	req := ipam.PoolRequest{Space: rapid.SampledFrom(modelSpaces).Draw(t, "space"),
		CIDR: rapid.SampledFrom(modelCIDRs).Draw(t, "cidr")}
	req.Swarm = req.Space == ipam.GlobalSpace
	req.NoGateway = rapid.IntRange(0, 3).Draw(t, "noGateway") == 0
	if all := ipamtest.Hosts(req.CIDR); rapid.Bool().Draw(t, "ranged") {
		from := rapid.IntRange(0, len(all)-1).Draw(t, "from")
		to := rapid.IntRange(from, len(all)-1).Draw(t, "to")
		r, err := alloc.ParseRange(all[from].String() + "-" + all[to].String())
		must(t, err)
		req.Range = ipam.Range{IPRange: r}
	}
	if rapid.IntRange(0, 3).Draw(t, "policy") == 0 {
		wait := rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour}).Draw(t, "quarantine")
		forget := rapid.Bool().Draw(t, "forget")
		req.Quarantine, req.Forget = &wait, &forget
	}
	grant, err := mc.s.RequestPool(context.Background(), req)
	if fits := mc.m.poolFits(req.Space, req.CIDR, req.Range); fits != (err == nil) {
		t.Fatalf("RequestPool(%+v) = %v; the model grants it: %t", req, err, fits)
	}
	if err != nil {
		if !errors.Is(err, ipam.ErrOverlap) {
			t.Fatalf("RequestPool(%+v): %v is no overlap", req, err)
		}
		return
	}
	if req.Range == (ipam.Range{IPRange: netipx.RangeOfPrefix(req.CIDR)}) {
		req.Range = ipam.Range{}
	}
	mc.m.addPool(grant.ID, req)
}

// pool draws one of the live attachments, in an order that does not depend on their random ids.
func (mc *machine) pool(t *rapid.T) ipam.ID {
	if len(mc.m.pools) == 0 {
		t.Skip("no pool")
	}
	byPlace := func(a, b ipam.ID) int {
		x, y := mc.m.pools[a], mc.m.pools[b]
		return slices.Compare([]string{x.sub.space, x.sub.cidr.String(), x.r.String()},
			[]string{y.sub.space, y.sub.cidr.String(), y.r.String()})
	}
	ids := slices.SortedFunc(maps.Keys(mc.m.pools), byPlace)
	return rapid.SampledFrom(ids).Draw(t, "pool")
}

func (mc *machine) releasePool(t *rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "really") > 0 {
		t.Skip("pools are released seldom")
	}
	id := mc.pool(t)
	if mc.m.pools[id].swarm {
		t.Skip("what a replay leaves behind is tested by itself")
	}
	must(t, mc.s.ReleasePool(context.Background(), id))
	mc.m.removePool(id)
	if err := mc.s.ReleasePool(context.Background(), id); err != nil {
		t.Fatalf("releasing it again: %v", err)
	}
}

func drawOwner(t *rapid.T, req *ipam.AddressRequest) {
	req.MAC = rapid.SampledFrom(ipamtest.MACs).Draw(t, "mac")
	if req.MAC != (ipam.MAC{}) {
		req.Name = rapid.SampledFrom(modelNames).Draw(t, "name")
	}
}

func (mc *machine) requestAny(t *rapid.T) {
	req := ipam.AddressRequest{Pool: mc.pool(t)}
	drawOwner(t, &req)
	want := mc.m.any(req.Pool, req)
	got, err := mc.s.RequestAddress(context.Background(), req)
	if got.Addr() != want || (err == nil) != want.IsValid() {
		t.Fatalf("RequestAddress(%+v) = %v, %v; the model gives %v", req, got, err, want)
	}
	if err != nil {
		if !errors.Is(err, ipam.ErrExhausted) {
			t.Fatalf("%v is no exhaustion", err)
		}
		mc.m.leaveBehind(req.Pool, req)
		return
	}
	if got.Bits() != mc.m.pools[req.Pool].sub.cidr.Bits() {
		t.Fatalf("%v does not have the subnet's length", got)
	}
	req.Name = cmp.Or(req.Name, mc.m.guessed)
	mc.m.taken(req.Pool, req, got.Addr(), ipam.Automatic)
}

func (mc *machine) requestThis(t *rapid.T) {
	req := ipam.AddressRequest{Pool: mc.pool(t)}
	drawOwner(t, &req)
	req.Preferred = mc.address(t, req.Pool)
	got, err := mc.s.RequestAddress(context.Background(), req)
	if given := mc.m.preferred(req.Pool, req); given != (err == nil) {
		t.Fatalf("RequestAddress(%+v) = %v, %v; the model gives it: %t", req, got, err, given)
	}
	if err != nil {
		mc.m.leaveBehind(req.Pool, req)
		return
	}
	if got.Addr() != req.Preferred {
		t.Fatalf("asked for %v, got %v", req.Preferred, got)
	}
	mc.m.taken(req.Pool, req, req.Preferred, ipam.Static)
}

// address draws an address in or near the subnet.
func (mc *machine) address(t *rapid.T, pool ipam.ID) netip.Addr {
	p := mc.m.pools[pool].sub.cidr
	a := p.Addr()
	for range rapid.IntRange(0, 1<<(p.Addr().BitLen()-p.Bits())).Draw(t, "offset") {
		a = a.Next()
	}
	return a
}

func (mc *machine) requestGateway(t *rapid.T) {
	req := ipam.AddressRequest{Pool: mc.pool(t), Gateway: true}
	sub := mc.m.pools[req.Pool].sub
	if rapid.Bool().Draw(t, "this") {
		req.Preferred = mc.address(t, req.Pool)
	}
	got, err := mc.s.RequestAddress(context.Background(), req)
	if err != nil {
		mc.gatewayRefused(t, req, err)
		return
	}
	a := got.Addr()
	if req.Preferred.IsValid() && a != req.Preferred || !slices.Contains(ipamtest.Hosts(sub.cidr), a) {
		t.Fatalf("the gateway %v for %+v", got, req)
	}
	mc.m.pools[req.Pool].successor = ipam.ID{}
	if a == sub.gateway {
		if sub.gatewayBy != req.Pool {
			sub.gatewayBy = ipam.ID{}
		}
		if req.Preferred.IsValid() {
			mc.m.inherit(req.Pool)
		}
		return
	}
	if rec := sub.records[a]; rec != nil && rec.held {
		at, other := mc.m.pools[req.Pool], mc.m.pools[rec.pool]
		if !rec.gateway || at != other && (!at.swarm || other.made > at.made) {
			t.Fatalf("the gateway %v is in use", got)
		}
		if at != other {
			mc.m.inherit(req.Pool)
		}
		rec.pool = req.Pool
		return
	}
	rec := &modelRecord{held: true, gateway: true, kind: ipam.Gateway, used: mc.m.tick()}
	if sub.gateway.IsValid() || sub.noGateway {
		rec.pool = req.Pool
		mc.m.pools[req.Pool].back = nil
	} else {
		sub.gateway, sub.gatewayBy = a, req.Pool
	}
	sub.records[a] = rec
}

// gatewayRefused checks that a gateway was refused for a reason: it is in use, is no host address, or would leave no
// address.
func (mc *machine) gatewayRefused(t *rapid.T, req ipam.AddressRequest, err error) {
	at := mc.m.pools[req.Pool]
	rec := at.sub.records[req.Preferred]
	ranges := at.sub.pools
	if !at.r.IsZero() {
		ranges = []ipam.Range{at.r}
	}
	var room []netip.Addr
	free := 0
	for _, a := range ipamtest.Hosts(at.sub.cidr) {
		if inside(ranges, a) {
			room = append(room, a)
		}
		if r := at.sub.records[a]; r == nil || !r.held && !r.until.After(mc.m.now) {
			free++
		}
	}
	switch {
	case errors.Is(err, ipam.ErrInUse) && rec != nil && rec.held:
	case errors.Is(err, ipam.ErrInvalid) && !slices.Contains(ipamtest.Hosts(at.sub.cidr), req.Preferred):
	case errors.Is(err, ipam.ErrExhausted) && !req.Preferred.IsValid() && free == 0:
	case errors.Is(err, ipam.ErrExhausted) && len(room) == 1:
	default:
		t.Fatalf("RequestAddress(%+v): %v", req, err)
	}
}

func (mc *machine) releaseAddress(t *rapid.T) {
	pool := mc.pool(t)
	a := mc.address(t, pool)
	must(t, mc.s.ReleaseAddress(context.Background(), pool, a))
	mc.m.pools[pool].successor = ipam.ID{}
	sub := mc.m.pools[pool].sub
	if rec := sub.records[a]; rec != nil && rec.held && rec.pool == pool {
		mc.m.release(sub, rec)
	}
}

// forget drops the oldest memory beyond the limit, unless a quarantine keeps it.
func (m *model) forget(sub *modelSubnet, limit int) {
	var oldest netip.Addr
	n := 0
	for a, rec := range sub.records {
		if rec.held {
			continue
		}
		n++
		if !oldest.IsValid() || rec.used < sub.records[oldest].used {
			oldest = a
		}
	}
	if n > limit && !sub.records[oldest].until.After(m.now) {
		delete(sub.records, oldest)
	}
}

func (mc *machine) wait(t *rapid.T) {
	mc.clock.Time = mc.clock.Time.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour,
		-time.Second}).Draw(t, "wait"))
	mc.m.now = mc.clock.Time
}

func (mc *machine) reopen(t *rapid.T) {
	mc.m.reopen()
	mc.store = ipamtest.Reopen(t, mc.store, mc.path)
	mc.s = ipamtest.OpenService(t, mc.store, mc.clock.Now)
	for _, at := range mc.m.pools {
		at.back = nil // the restarted daemon does not know which endpoint left last
	}
}

// check compares the records with the model after each step.
func (mc *machine) check(t *rapid.T) {
	problems, err := mc.s.Check(context.Background())
	if err != nil || len(problems) > 0 {
		t.Fatalf("check: %q, %v", problems, err)
	}
	leases := ipamtest.ListLeases(t, mc.s, ipam.LeaseFilter{Remembered: true})
	n := 0
	for _, sub := range mc.m.subnets {
		n += len(sub.records)
	}
	if n != len(leases) {
		t.Fatalf("%d records, the model has %d", len(leases), n)
	}
	for _, l := range leases {
		rec := mc.m.subnets[l.Space+" "+l.Subnet.String()].records[l.Address]
		if rec == nil || rec.held != (l.State == "held") || rec.mac != l.MAC || rec.name != l.Name ||
			rec.pool != l.Pool || rec.kind != l.Kind {
			t.Fatalf("the lease %+v is %+v in the model", l, rec)
		}
	}
}
