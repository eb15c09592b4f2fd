package edit_test

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/storetest"
)

// ownerMachine drives the service and the model of owners. The store runs functions again, refuses writes, loses or
// hides the outcome of some, and is reopened now and then.
type ownerMachine struct {
	path   string
	clock  *ipamtest.Clock
	store  *storetest.Faulty
	s      *service.Service
	m      *ownerModel
	docker []dockerNet

	ended map[toldOf]bool // expired; the next change writes the event
	last  uint64          // the last event that was read
	told  map[toldOf]bool // reserved or held, by the events
}

// dockerNet is a Docker network on one of the networks.
type dockerNet struct {
	id  ipam.ID
	net string
}

// toldOf is a reservation or a lease in events.
type toldOf struct {
	network, owner string // "" for a lease
	lease          uint64
	addr           netip.Addr
}

// BO-1 to BO-15 without BO-4, in any order.
func TestOwnerModel(all *testing.T) {
	rapid.Check(all, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "berth-owners")
		fine(t, err)
		defer os.RemoveAll(dir)
		mc := &ownerMachine{path: filepath.Join(dir, "berth.db"), clock: ipamtest.NewClock(), told: map[toldOf]bool{},
			ended: map[toldOf]bool{}}
		mc.store = ipamtest.Rerunning(ipamtest.OpenStore(t, mc.path)).(*storetest.Faulty)
		defer func() { mc.store.Close() }()
		mc.s = ipamtest.OpenService(t, mc.store, mc.clock.Now)
		_, err = mc.s.Edit(ctx, ipam.EditOptions{}, ipamtest.Edits(all, ownerNets)...)
		fine(t, err)
		mc.m = newOwnerModel(mc.clock.Time)
		t.Repeat(map[string]func(*rapid.T){
			"reserve": mc.reserve, "reserve2": mc.reserve, "replace": mc.replace, "bind": mc.bind,
			"unreserve": mc.unreserve,
			"end":       mc.end, "endReplaced": mc.endReplaced,
			"ask": mc.ask, "ask2": mc.ask, "ask3": mc.ask, "back": mc.back, "back2": mc.back, "attach": mc.attach,
			"detach": mc.detach,
			"bands":  mc.bands, "rules": mc.rules, "wait": mc.wait, "reopen": mc.reopen,
			"": mc.check,
		})
	})
}

// ownerNets has two manual networks and a vip one. The first has a named pool and addresses outside its pools.
const ownerNets = `
	network n subnet=10.0.0.0/28 sticky=off
	pool n 10.0.0.1-10.0.0.5
	pool n 10.0.0.8-10.0.0.9 name=web
	network m subnet=10.0.1.0/29,pool sticky=off
	network v subnet=10.0.2.0/29,pool sticky=off type=vip
`

func newOwnerModel(now time.Time) *ownerModel {
	net := func(kind, cidr string, pools map[string]ipam.Range) *ownedNet {
		p := netip.MustParsePrefix(cidr)
		return &ownedNet{kind: kind, cidr: p, hosts: ipamtest.Hosts(p), pools: pools,
			records: map[netip.Addr]ownedRecord{}}
	}
	return &ownerModel{now: now, nets: map[string]*ownedNet{
		"n": net("manual", "10.0.0.0/28", map[string]ipam.Range{"": ipamtest.MustRange("10.0.0.1-10.0.0.5"),
			"web": ipamtest.MustRange("10.0.0.8-10.0.0.9")}),
		"m": net("manual", "10.0.1.0/29", map[string]ipam.Range{"": ipamtest.MustRange("10.0.1.0/29")}),
		"v": net("vip", "10.0.2.0/29", map[string]ipam.Range{"": ipamtest.MustRange("10.0.2.0/29")})}}
}

var (
	ownerMACs  = []ipam.MAC{ipamtest.MAC(1), ipamtest.MAC(2), ipamtest.MAC(3)}
	ownerNames = []string{"web", "shop/web/1", "shop/db/1", "prod/api/1", ownerMACs[0].String()}
	askNames   = []string{"", "web", "shop-web-1", "shop_web_1", "0123456789ab_shop-web-1", "api-1", "sharp_knuth"}
)

// run makes one step in both: do in the service, judge in the model with the resulting addresses. A refusal changes
// no record. If the store hid the outcome of a step, the step is repeated after a restart.
func (mc *ownerMachine) run(t *rapid.T, what any, do func() ([]netip.Addr, error),
	judge func(m *ownerModel, got []netip.Addr) verdict) {
	fault := mc.fault(t)
	if fault != (storetest.Fault{}) {
		mc.settle(t)
		mc.store.Next(fault)
	}
	before := ipamtest.Dump(t, mc.store)
	got, err := do()
	again := errors.Is(err, store.ErrUnknown)
	switch {
	case errors.Is(err, store.ErrUnknown): // the daemon learns no outcome: it restarts, and the step is repeated
		mc.store.Heal()
		mc.reopen(t)
		got, err = do()
	case errors.Is(err, store.ErrNoSpace):
		mc.unchanged(t, what, err, before)
		got, err = do()
	}
	mc.expire()
	next := mc.m.clone()
	for _, n := range next.nets {
		n.again = again
	}
	v := judge(next, got)
	switch {
	case v.wrong != "":
		t.Fatalf("%T%+v: %v: %s", what, what, got, v.wrong)
	case err != nil && next.unsure: // a later wish may depend on an earlier choice
		mc.unchanged(t, what, err, before)
	case (err != nil) != v.refused():
		t.Fatalf("%T%+v: %v, %v; the model refuses it as %q", what, what, got, err, v.codes)
	case err != nil && !slices.Contains(v.codes, ipam.CodeOf(err)):
		t.Fatalf("%T%+v: %v; the model refuses it as %q", what, what, err, v.codes)
	case err != nil:
		mc.unchanged(t, what, err, before)
	default:
		mc.m = next
	}
}

// expire ends the reservations of expired owners in the model.
func (mc *ownerMachine) expire() {
	for name, n := range mc.m.nets {
		for a, rec := range n.records {
			if rec.owner != "" && !rec.until.IsZero() && !rec.until.After(mc.m.now) {
				mc.ended[toldOf{network: name, owner: rec.owner, addr: a}] = true
				n.put(a, rec.unowned())
			}
		}
	}
}

// fault draws a fault of the next update, rarely one.
func (mc *ownerMachine) fault(t *rapid.T) storetest.Fault {
	switch rapid.IntRange(0, 11).Draw(t, "fault") {
	case 0:
		return storetest.Fault{Reruns: 1, Before: store.ErrNoSpace}
	case 1:
		return storetest.Fault{Lost: context.DeadlineExceeded}
	case 2:
		return storetest.Fault{After: context.DeadlineExceeded}
	}
	return storetest.Fault{}
}

// settle ends expired owners, which the first update of the next step would do otherwise.
func (mc *ownerMachine) settle(t *rapid.T) {
	fine(t, mc.s.Trim(ctx))
}

// unchanged fails the test if a refused step changed anything except for the ends of expired owners.
func (mc *ownerMachine) unchanged(t *rapid.T, what any, refused error, before map[string]string) {
	after := ipamtest.Dump(t, mc.store)
	if maps.Equal(before, after) {
		return
	}
	events, err := mc.s.Events(ctx, ipam.EventFilter{After: mc.last})
	if err != nil || len(events) == 0 || len(after)-len(before) > len(events) {
		t.Fatalf("%T%+v was refused (%v) and changed records", what, what, refused)
	}
	for _, e := range events {
		if e.Verb != ipam.ReservationRemoved || e.Detail != "its owner expired" {
			t.Fatalf("%T%+v was refused (%v) and wrote %+v", what, what, refused, e)
		}
	}
}

// edit makes one edit.
func (mc *ownerMachine) edit(t *rapid.T, e ipam.Edit, judge func(m *ownerModel, got []netip.Addr) verdict) {
	mc.run(t, e, func() ([]netip.Addr, error) {
		out, err := mc.s.Edit(ctx, ipam.EditOptions{}, e)
		if err != nil {
			return nil, err
		}
		return out.Results[0].Addresses, nil
	}, judge)
}

func (mc *ownerMachine) drawNet(t *rapid.T) string {
	return rapid.SampledFrom([]string{"n", "n", "n", "m", "m", "v"}).Draw(t, "net")
}

// drawAddr draws an address of a network, often one with a record, rarely one outside.
func (mc *ownerMachine) drawAddr(t *rapid.T, net string) netip.Addr {
	n := mc.m.nets[net]
	known := slices.SortedFunc(maps.Keys(n.records), netip.Addr.Compare)
	switch i := rapid.IntRange(0, 15).Draw(t, "address"); {
	case i == 0:
		return netip.MustParseAddr("10.9.9.9")
	case i < 8 && len(known) > 0:
		return rapid.SampledFrom(known).Draw(t, "known")
	}
	return rapid.SampledFrom(n.hosts).Draw(t, "host")
}

// drawWishes draws an owner's wishes, now and then for an address that it has.
func (mc *ownerMachine) drawWishes(t *rapid.T, net, owner string) (wishes []ipam.Wish) {
	n := mc.m.nets[net]
	own := slices.DeleteFunc(slices.Clone(n.hosts), func(a netip.Addr) bool { return n.records[a].owner != owner })
	for slot := range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "slots") {
		w := ipam.Wish{Slot: slot}
		switch rapid.IntRange(0, 4).Draw(t, "wish") {
		case 0:
			w.Address = mc.drawAddr(t, net)
		case 1:
			w.Address = rapid.SampledFrom(append(own, n.hosts[0])).Draw(t, "own")
		case 2:
			if net == "n" {
				w.Pool = "web"
			}
		}
		wishes = append(wishes, w)
	}
	return wishes
}

func (mc *ownerMachine) drawReservation(t *rapid.T) *ipam.AddReservation {
	e := &ipam.AddReservation{Network: mc.drawNet(t), Owner: rapid.SampledFrom(ownerNames).Draw(t, "owner"),
		Force: rapid.IntRange(0, 5).Draw(t, "force") == 0, Automatic: rapid.IntRange(0, 5).Draw(t, "automatic") == 0}
	e.Wishes = mc.drawWishes(t, e.Network, e.Owner)
	if rapid.IntRange(0, 7).Draw(t, "nic") == 0 {
		e.Number = 1
	}
	if rapid.IntRange(0, 4).Draw(t, "for") == 0 {
		e.For = ipam.Duration(rapid.SampledFrom([]time.Duration{time.Minute, time.Hour}).Draw(t, "life"))
	}
	return e
}

func (mc *ownerMachine) addReservation(t *rapid.T, e *ipam.AddReservation) {
	asked := *e
	mc.edit(t, e, func(m *ownerModel, got []netip.Addr) verdict {
		return m.reserve(&asked, got, func(ipam.Wish) bool { return true })
	})
}

func (mc *ownerMachine) reserve(t *rapid.T) { mc.addReservation(t, mc.drawReservation(t)) }

func (mc *ownerMachine) replace(t *rapid.T) {
	e := mc.drawReservation(t)
	e.Replace = true
	mc.addReservation(t, e)
}

func (mc *ownerMachine) bind(t *rapid.T) {
	e := &ipam.BindReservations{}
	for range rapid.IntRange(1, 3).Draw(t, "wanted") {
		one := mc.drawReservation(t)
		one.Replace = false
		e.Wanted = append(e.Wanted, *one)
	}
	if rapid.IntRange(0, 3).Draw(t, "places") == 0 {
		mc.rotate(e.Wanted)
	}
	mc.edit(t, e, func(m *ownerModel, got []netip.Addr) verdict { return m.bind(e, got) })
}

// rotate makes each owner wish for an address of the next one, so that they swap.
func (mc *ownerMachine) rotate(wanted []ipam.AddReservation) {
	for i := range wanted {
		next := wanted[(i+1)%len(wanted)].Owner
		n := mc.m.nets[wanted[i].Network]
		for _, a := range n.hosts {
			if n.records[a].owner == next {
				wanted[i].Wishes = []ipam.Wish{{Address: a}}
				break
			}
		}
	}
}

func (mc *ownerMachine) unreserve(t *rapid.T) {
	e := &ipam.RemoveReservation{Network: mc.drawNet(t), Owner: rapid.SampledFrom(ownerNames).Draw(t, "owner")}
	if rapid.Bool().Draw(t, "one") {
		e.Address = mc.drawAddr(t, e.Network)
	}
	before, hidden := mc.m.clone(), false
	judge := func(m *ownerModel, _ []netip.Addr) verdict {
		return m.unreserve(e, func(a netip.Addr) bool {
			return !mc.isReplaced(t, e.Network, a) && before.nets[e.Network].records[a].replaced
		})
	}
	mc.run(t, e, func() ([]netip.Addr, error) {
		_, err := mc.s.Edit(ctx, ipam.EditOptions{}, e)
		if hidden && ipam.CodeOf(err) == ipam.IPMissing {
			mc.expire() // the hidden change may also have ended expired reservations
			if v := judge(mc.m.clone(), nil); !v.refused() {
				return nil, nil // the first call was the one that counted
			}
		}
		hidden = errors.Is(err, store.ErrUnknown)
		return nil, err
	}, judge)
}

func (mc *ownerMachine) isReplaced(t *rapid.T, net string, a netip.Addr) bool {
	for res, err := range mc.s.Reservations(ctx, ipam.AddressFilter{Network: net}) {
		fine(t, err)
		if res.Address == a {
			return res.Replaced
		}
	}
	return false
}

func (mc *ownerMachine) drawEnd(t *rapid.T) *ipam.ReleaseOwner {
	return &ipam.ReleaseOwner{Owner: rapid.SampledFrom(append(ownerNames, "shop", "shop/web", "nobody")).Draw(t,
		"owner"), Under: rapid.Bool().Draw(t, "under")}
}

func (mc *ownerMachine) releaseOwner(t *rapid.T, e *ipam.ReleaseOwner) {
	asked := *e
	mc.edit(t, e, func(m *ownerModel, _ []netip.Addr) verdict {
		m.endOwner(&asked)
		return verdict{}
	})
}

func (mc *ownerMachine) end(t *rapid.T) { mc.releaseOwner(t, mc.drawEnd(t)) }

func (mc *ownerMachine) endReplaced(t *rapid.T) {
	e := mc.drawEnd(t)
	e.Replaced = true
	mc.releaseOwner(t, e)
}
