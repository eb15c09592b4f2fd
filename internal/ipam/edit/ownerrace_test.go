package edit_test

import (
	"fmt"
	"math/rand"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
)

// BO-1, BO-2, BO-6: whoever reserves, replaces, binds, ends and asks at the same time, with owners whose time is over
// meanwhile: each address is one's, each owner has one address in a place, and nobody is given what another one owns.
func TestOwnerRaces(t *testing.T) {
	st := ipamtest.OpenStore(t, filepath.Join(t.TempDir(), "berth.db"))
	t.Cleanup(func() { st.Close() })
	s := ipamtest.OpenService(t, st, time.Now)
	if _, err := s.Edit(ctx, ipam.EditOptions{},
		&ipam.CreateNetwork{Name: "n", Static: []ipam.Range{ipamtest.MustRange("192.0.2.20-192.0.2.22")},
			Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("192.0.2.0/27"), Pool: true}}}); err != nil {
		t.Fatal(err)
	}
	grant, err := s.RequestPool(ctx, ipam.PoolRequest{Network: "n"})
	fine(t, err)
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() {
			draw := rand.New(rand.NewSource(int64(worker)))
			for step := range 120 {
				raceStep(t, s, ipam.AddressRequest{Pool: grant.ID, MAC: ipamtest.MAC(1000*worker + step + 1)}, draw)
			}
		})
	}
	wg.Wait()
	if problems, err := s.Check(ctx); err != nil || len(problems) > 0 {
		t.Fatalf("%q, %v", problems, err)
	}
	places := map[string]netip.Addr{}
	for res, err := range s.Reservations(ctx, ipam.AddressFilter{}) {
		fine(t, err)
		if res.Kind == ipam.Automatic && ipamtest.MustRange("192.0.2.20-192.0.2.22").Contains(res.Address) {
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

// raceStep does one thing for one of few owners; whatever is refused has a code.
func raceStep(t *testing.T, s *service.Service, ask ipam.AddressRequest, draw *rand.Rand) {
	number := draw.Intn(5) + 1
	owner, name := fmt.Sprintf("shop/web/%d", number), fmt.Sprintf("shop-web-%d", number)
	var wishes []ipam.Wish
	if draw.Intn(2) == 0 {
		wishes = []ipam.Wish{{Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(draw.Intn(30) + 1)})}}
	}
	add := ipam.AddReservation{Network: "n", Owner: owner, Wishes: wishes, Replace: draw.Intn(2) == 0}
	if draw.Intn(3) == 0 {
		add.For = ipam.Duration(time.Duration(draw.Intn(3)+1) * time.Millisecond)
	}
	var edit ipam.Edit
	switch draw.Intn(8) {
	case 0, 1:
		edit = &add
	case 2:
		edit = &ipam.BindReservations{Wanted: []ipam.AddReservation{add,
			{Network: "n", Owner: fmt.Sprintf("shop/web/%d", number%5+1)}}}
	case 3:
		edit = &ipam.ReleaseOwner{Owner: "shop", Under: true, Replaced: true}
	case 4:
		edit = &ipam.ReleaseOwner{Owner: owner}
	default:
		ask.Name = name
		raceAsk(t, s, ask)
		return
	}
	if _, err := s.Edit(ctx, ipam.EditOptions{}, edit); err != nil && ipam.CodeOf(err) == "" {
		t.Errorf("%T%+v: %v", edit, edit, err)
	}
}

// raceAsk takes an address for a container and gives it back. While it has it, nobody else may own it.
func raceAsk(t *testing.T, s *service.Service, req ipam.AddressRequest) {
	got, err := s.RequestAddress(ctx, req)
	if err != nil {
		if ipam.CodeOf(err) == "" {
			t.Errorf("%+v: %v", req, err)
		}
		return
	}
	for l, err := range s.Leases(ctx, ipam.LeaseFilter{}) {
		if err != nil {
			t.Error(err)
			return
		}
		if l.Address == got.Addr() &&
			(l.MAC != req.MAC || l.Owner != "" && l.Owner != "shop/web/"+req.Name[len("shop-web-"):]) {
			t.Errorf("%s was given to %s, and is %+v", got, req.Name, l)
		}
	}
	if err := s.ReleaseAddress(ctx, req.Pool, got.Addr()); err != nil {
		t.Error(err)
	}
}
