package cluster

import (
	"errors"
	"net/netip"
	"testing"

	"berth/internal/ipam"
	"berth/store/mem"
)

// script is what happens to a host until its machine dies, and what its engine knows of it.
type script struct {
	*sharingHost
	pool  ipam.ID
	hands map[netip.Addr]ipam.MAC
	doubt map[ipam.MAC]bool // in the middle of a request or a release
	died  bool
}

func (s *script) step(mac ipam.MAC, do func() error) {
	if s.died {
		return
	}
	err := do()
	switch {
	case s.left == 0: // whatever it says: nobody hears of it
		s.died = true
		s.doubt[mac] = true
	case err != nil:
		s.t.Fatal(err)
	}
}

func (s *script) takes(mac ipam.MAC, want string) {
	s.step(mac, func() error {
		req := ipam.AddressRequest{Pool: s.pool, MAC: mac}
		if want != "" {
			req.Preferred = addrs(want)[0]
		}
		addr, err := s.ask(req)
		if err == nil && s.left != 0 {
			s.hands[addr] = mac
		}
		return err
	})
}

func (s *script) gives(mac ipam.MAC) {
	for addr, has := range s.hands {
		if has == mac && !s.died {
			s.step(mac, func() error { return s.ReleaseAddress(s.t.(*testing.T).Context(), s.pool, addr) })
			delete(s.hands, addr)
			return
		}
	}
}

func (s *script) looks() {
	s.step(ipam.MAC{}, func() error {
		err := s.look()
		if errors.Is(err, ipam.ErrAway) {
			return nil
		}
		return err
	})
}

// The machine dies at each write of the host's own store and of the shared one, before and behind it. What the engine
// was told is so afterwards, what the host takes for its headroom is claimed, and nothing is left but what nobody was
// told of.
func TestSharedDies(t *testing.T) {
	for _, after := range []bool{false, true} {
		n := 0
		for dies(t, n, after) {
			n++
		}
		if n < 30 {
			t.Fatalf("it died %d times only", n)
		}
		t.Logf("it died %d times", n)
	}
}

func dies(t *testing.T, n int, after bool) bool {
	common := mem.New()
	a := newSharingHost(t, common, "a")
	a.after = after
	a.open()
	a.edit(lanWith(3, lanCIDR))
	s := &script{sharingHost: a, pool: a.pool(), hands: map[netip.Addr]ipam.MAC{}, doubt: map[ipam.MAC]bool{}}
	four, one := 4, 1
	a.left = n
	s.looks() // claims
	s.takes(testMAC(1), "")
	s.takes(testMAC(2), "40")
	a.handle.Cut(errCut)
	s.gives(testMAC(1))
	s.takes(testMAC(3), "")
	s.takes(testMAC(4), "3")
	s.gives(testMAC(3))
	s.takes(testMAC(5), "")
	a.handle.Heal()
	s.takes(testMAC(6), "") // tells
	s.step(ipam.MAC{}, func() error {
		_, err := a.Edit(t.Context(), ipam.EditOptions{}, &ipam.ModifyNetwork{Network: "lan", Headroom: &four})
		return err
	})
	s.looks()
	a.handle.Cut(errCut)
	s.gives(testMAC(5))
	s.takes(testMAC(7), "")
	a.handle.Heal()
	a.handle.CutNext(true, errCut) // of the use
	s.step(ipam.MAC{}, func() error {
		if err := a.look(); !isUnknown(err) {
			return err
		}
		return nil
	})
	s.gives(testMAC(7))
	a.handle.Heal()
	s.looks()
	s.step(ipam.MAC{}, func() error {
		_, err := a.Edit(t.Context(), ipam.EditOptions{}, &ipam.ModifyNetwork{Network: "lan", Headroom: &one})
		return err
	})
	s.looks()
	a.handle.Cut(errCut)
	s.gives(testMAC(2))
	a.handle.Heal()
	s.looks()
	s.settles()
	return s.died
}

// settles starts the daemon anew and holds the records against what the engine knows.
func (s *script) settles() {
	s.t.Helper()
	s.handle.Heal()
	s.boot()
	s.mustLook()
	s.mustLook()
	s.free(s.pool)
	for addr, mac := range s.hands {
		if l := heldAt(s.t, s.common, addr); l == nil || l.MAC != mac || l.Kind == ipam.Headroom {
			s.t.Fatalf("the engine has %s for %s, and the store %+v", addr, mac, l)
		}
	}
	for _, l := range leasesIn(s.t, s.common) {
		if mac, ok := s.hands[l.Address]; l.Kind != ipam.Headroom && (!ok || mac != l.MAC) && !s.doubt[l.MAC] {
			s.t.Fatalf("left in the store: %+v", l)
		}
	}
	if s.keeps() || len(s.warned) > 0 {
		s.t.Fatalf("%+v, %q", s.outbox, s.warned)
	}
	s.sound()
}
