package edit_test

import (
	"fmt"
	"math/rand"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
)

// atOnce makes n calls at the same time.
func atOnce(n int, do func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}

// GA-22, BO-1, BO-2, BO-6: many clients request by hand and by Docker, reserve, replace, bind and end at the same
// time, while owners expire and the plan changes. No address has two holders or two owners, no owner has two
// addresses in a slot, nobody gets an address of another owner, and the records are consistent afterwards.
func TestGA22Races(t *testing.T) {
	t.Run("bolt", func(t *testing.T) { race(t, filepath.Join(t.TempDir(), "berth.db")) })
	t.Run("mem", func(t *testing.T) { race(t, "") }) // BO-4
}

// raceBand is a static band, which the plan keeps.
var raceBand = ipamtest.MustRange("192.0.2.5-192.0.2.7")

func race(t *testing.T, path string) {
	st := ipamtest.OpenStore(t, path)
	t.Cleanup(func() { st.Close() })
	s := ipamtest.OpenService(t, st, time.Now)
	_, err := s.Edit(ctx, ipam.EditOptions{}, ipamtest.Edits(t, `
		network net1 subnet=192.0.2.0/25,gw=192.0.2.1,name=lan+192.0.2.128/26,pool static=192.0.2.5-192.0.2.7
		pool net1 192.0.2.2-192.0.2.60 name=a
		pool net1 192.0.2.61-192.0.2.126`)...)
	fine(t, err)
	grant, err := s.RequestPool(ctx, ipam.PoolRequest{Network: "net1", CIDR: netip.MustParsePrefix("192.0.2.0/25")})
	fine(t, err)
	h := &hands{t: t, s: s, pool: grant.ID, held: map[netip.Addr]string{}}
	atOnce(21, func(i int) {
		draw := rand.New(rand.NewSource(int64(i)))
		for step := range 120 {
			switch {
			case i < 6 && step < 40:
				h.byHand(fmt.Sprintf("vm%d-%d", i, step), draw)
			case i >= 6 && i < 12 && step < 40:
				h.byDocker(ipam.AddressRequest{MAC: ipamtest.MAC(i*1000 + step + 1),
					Name: fmt.Sprintf("c%d-%d", i, step)}, draw)
			case i >= 12 && i < 18:
				h.owner(ipamtest.MAC(i*1000+step+1), draw)
			case i >= 18 && step < 60:
				h.replan(fmt.Sprintf("%d-%d", i, step), draw)
			}
		}
	})
	checkPlaces(t, s)
	_, err = s.Edit(ctx, ipam.EditOptions{}, &ipam.ReleaseOwner{Owner: "shop", Under: true})
	fine(t, err)
	if problems, err := s.Check(ctx); err != nil || len(problems) > 0 {
		t.Fatalf("%q, %v", problems, err)
	}
	for _, l := range ipamtest.ListLeases(t, s, ipam.LeaseFilter{}) {
		if l.Kind != ipam.Gateway && h.held[l.Address] != l.Name {
			t.Errorf("%s is held by %s, and was given to %q", l.Address, l.Name, h.held[l.Address])
		}
		delete(h.held, l.Address)
	}
	if len(h.held) > 0 {
		t.Errorf("given and not held: %v", h.held)
	}
	// The index has kept up with the records.
	shown := func(s *service.Service) (ipam.NetworkInfo, []ipam.LeaseInfo) {
		n, err := s.Network(ctx, "net1")
		fine(t, err)
		return n, ipamtest.ListLeases(t, s, ipam.LeaseFilter{Remembered: true})
	}
	n, leases := shown(s)
	n2, leases2 := shown(ipamtest.OpenService(t, st, time.Now))
	if diff := cmp.Diff(n, n2, ipamtest.ShowOptions) + cmp.Diff(leases, leases2, ipamtest.ShowOptions); diff != "" {
		t.Errorf("after a restart other things are shown:\n%s", diff)
	}
}

// checkPlaces: no owner has two wanted addresses in one slot, and no automatic address is in the static band.
func checkPlaces(t *testing.T, s *service.Service) {
	t.Helper()
	places := map[string]netip.Addr{}
	for res, err := range s.Reservations(ctx, ipam.AddressFilter{}) {
		fine(t, err)
		if res.Kind == ipam.Automatic && raceBand.Contains(res.Address) {
			t.Errorf("out of the static band: %+v", res)
		}
		if place := fmt.Sprint(res.Owner, res.Interface, res.Slot); !res.Replaced {
			if other := places[place]; other.IsValid() {
				t.Errorf("%s has %s and %s in one place", res.Owner, other, res.Address)
			}
			places[place] = res.Address
		}
	}
}

// hands records the address that each client believes it has.
type hands struct {
	t    *testing.T
	s    *service.Service
	pool ipam.ID
	mu   sync.Mutex
	held map[netip.Addr]string
}

// take notes a holder, and reports a second one.
func (h *hands) take(a netip.Addr, who string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if other, taken := h.held[a]; taken && other != who {
		h.t.Errorf("%s is in the hands of %s and %s", a, other, who)
	}
	h.held[a] = who
}

// give must be called before a release, because somebody else may get the address at once.
func (h *hands) give(a netip.Addr) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, a)
}

// edit makes the edit of a script's line. It tolerates a refusal that a race can cause.
func (h *hands) edit(line string) []netip.Addr {
	out, err := h.s.Edit(ctx, ipam.EditOptions{}, ipamtest.Edits(h.t, line)...)
	if err != nil {
		h.tolerated(line, err)
		return nil
	}
	return out.Results[0].Addresses
}

func (h *hands) tolerated(what any, err error) {
	switch ipamtest.KindOf(err) {
	case "inuse", "exhausted", "overlap", "notfound":
	default:
		h.t.Errorf("%T%+v: %v", what, what, err)
	}
}

// few draws one of the few addresses that everybody wants.
func few(draw *rand.Rand) netip.Addr {
	return netip.AddrFrom4([4]byte{192, 0, 2, byte(2 + draw.Intn(6))})
}

// byHand takes external addresses, and mostly releases them.
func (h *hands) byHand(owner string, draw *rand.Rand) {
	wish := "pool"
	if draw.Intn(3) == 0 {
		wish = few(draw).String()
	}
	got := h.edit("take net1 " + owner + " ip0=" + wish + ",ip1=pool")
	for _, a := range got {
		h.take(a, owner)
	}
	if len(got) == 0 || draw.Intn(4) == 0 {
		return
	}
	for _, a := range got {
		h.give(a)
	}
	h.edit("release net1 " + owner)
}

// handedTo names the owner to which a bind (hands.owner) may hand an address that a container holds: the bind names the
// address for the one owner, and any address for the other, who thus leaves it. The holder keeps it until its release.
var handedTo = map[string]string{"shop-web-1": "shop-web-5", "shop-web-2": "shop-web-1", "shop-web-3": "shop-web-2",
	"shop-web-4": "shop-web-3", "shop-web-5": "shop-web-4"}

// byDocker runs a container, and mostly ends it. Meanwhile no other owner has its address, unless it was handed on.
func (h *hands) byDocker(req ipam.AddressRequest, draw *rand.Rand) {
	req.Pool = h.pool
	if draw.Intn(3) == 0 {
		req.Preferred = few(draw)
	}
	got, err := h.s.RequestAddress(ctx, req)
	if err != nil {
		h.tolerated(req, err)
		return
	}
	a := got.Addr()
	h.take(a, req.Name)
	for _, l := range ipamtest.ListLeases(h.t, h.s, ipam.LeaseFilter{}) {
		owner := strings.ReplaceAll(l.Owner, "/", "-")
		if l.Address == a && (l.MAC != req.MAC || owner != "" && owner != req.Name && owner != handedTo[req.Name]) {
			h.t.Errorf("%s was given to %s, and is %+v", a, req.Name, l)
		}
	}
	if req.Name[0] == 'c' && draw.Intn(4) == 0 {
		return
	}
	h.give(a)
	if err := h.s.ReleaseAddress(ctx, h.pool, a); err != nil {
		h.t.Error(err)
	}
}

// owner makes a step for one of few owners.
func (h *hands) owner(mac ipam.MAC, draw *rand.Rand) {
	number := draw.Intn(5) + 1
	owner, life := fmt.Sprint("shop/web/", number), ""
	wish := []string{"pool", fmt.Sprint("192.0.2.", draw.Intn(30)+2)}[draw.Intn(2)]
	if draw.Intn(3) == 0 {
		life = fmt.Sprintf(" for=%dms", draw.Intn(3)+1)
	}
	switch draw.Intn(8) {
	case 0:
		h.edit("reserve net1 " + owner + " " + wish + life)
	case 1:
		h.edit("reserve net1 " + owner + " " + wish + life + " replace")
	case 2:
		h.edit(fmt.Sprintf("bind net1 %s=%s shop/web/%d", owner, wish, number%5+1))
	case 3:
		h.edit("end shop under replaced")
	case 4:
		h.edit("end " + owner)
	default:
		h.byDocker(ipam.AddressRequest{MAC: mac, Name: fmt.Sprintf("shop-web-%d", number)}, draw)
	}
}

// replan removes and adds pools and exclusions.
func (h *hands) replan(name string, draw *rand.Rand) {
	from := 10 + draw.Intn(100)
	r := fmt.Sprintf("192.0.2.%d-192.0.2.%d", from, from+draw.Intn(10))
	edits := []string{"pool.rm net1 RANGE", "pool net1 RANGE name=pNAME", "exclude net1 RANGE", "include net1 RANGE",
		"network.set net1 tag.n=NAME", "subnet.set net1 192.0.2.128/26 name=sNAME"}
	h.edit(strings.NewReplacer("RANGE", r, "NAME", name).Replace(edits[draw.Intn(len(edits))]))
	if _, err := h.s.Network(ctx, "net1"); err != nil {
		h.t.Error(err)
	}
}

// Of several clients that change a network with the same revision, one succeeds, and the others are refused.
func TestIfMatchRace(t *testing.T) {
	s := ipamtest.NewService(t, time.Now)
	_, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.CreateNetwork{Name: "net1"})
	fine(t, err)
	for range 10 {
		n, err := s.Network(ctx, "net1")
		fine(t, err)
		var errs [8]error
		atOnce(len(errs), func(i int) {
			_, errs[i] = s.Edit(ctx, ipam.EditOptions{IfMatch: n.Revision},
				ipamtest.Edits(t, fmt.Sprintf("network.set net1 tag.by=%d-%d", i, n.Revision))...)
		})
		kinds := map[string]int{}
		for _, err := range errs {
			kinds[fmt.Sprint(err == nil || ipamtest.KindOf(err) == "changed", err == nil)]++
		}
		if kinds["true true"] != 1 || kinds["true false"] != 7 {
			t.Fatalf("%v", errs)
		}
	}
}

// Many clients with the same key make its edit once.
func TestKeyRace(t *testing.T) {
	s := ipamtest.NewService(t, time.Now)
	_, err := s.Edit(ctx, ipam.EditOptions{}, ipamtest.Edits(t, "network net1 subnet=192.0.2.0/24,pool")...)
	fine(t, err)
	var outs [12]ipam.Outcome
	atOnce(len(outs), func(i int) {
		out, err := s.Edit(ctx, ipam.EditOptions{Key: "k"}, ipamtest.Edits(t, "take net1 vm -1:add")...)
		if outs[i] = out; err != nil {
			t.Error(err)
		}
	})
	fresh := 0
	for _, out := range outs {
		if !out.Replayed {
			fresh++
		}
		if len(out.Results) != 1 || ipamtest.Joined(out.Results[0].Addresses) != "192.0.2.1" {
			t.Errorf("%+v", out)
		}
	}
	if fresh != 1 {
		t.Errorf("%d were made", fresh)
	}
}
