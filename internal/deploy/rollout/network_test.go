package rollout

import (
	"maps"
	"slices"
	"testing"
)

// TestRunSameAddresses: containers that are recreated because of another name server, or another gateway of their
// network, keep their addresses (BO-14).
func TestRunSameAddresses(t *testing.T) {
	s := newShop(t)
	gateway := func(addr string) {
		s.onNetwork("10.0.0.0/24")
		s.network.Pools[0].Gateway, s.small.gate = addr, addr
	}
	gateway("10.0.0.1")
	s.must(s.deploys())
	has := func() map[string]string {
		all := map[string]string{}
		for _, b := range s.small.all {
			all[b.title()] = b.Addresses["front"]
		}
		return all
	}
	before := has()
	if len(before) != 4 || before["web/1"] != s.reserved["shop/web/1"].String() {
		t.Fatalf("they are made with %v", before)
	}
	for what, c := range map[string]struct {
		change func()
		anew   bool // the network is recreated
	}{
		"dns":     {func() { s.hashes["web"], s.hashes["db"] = "w2", "d2" }, false},
		"gateway": {func() { gateway("10.0.0.254") }, true},
	} {
		c.change()
		s.small.takes()
		s.must(s.deploys())
		asked := s.small.takes()
		if !slices.Contains(asked, "make web/2") || slices.Contains(asked, "no network 10.0.0.0/24") != c.anew {
			t.Errorf("%s: it was asked for %q", what, asked)
		}
		if slices.Contains(asked, "release shop/web/1") || slices.Contains(asked, "release shop/db/1") {
			t.Errorf("%s: what is reserved was released: %q", what, asked)
		}
		if now := has(); !maps.Equal(now, before) {
			t.Errorf("%s: they had %v, and have %v", what, before, now)
		}
		if s.plan().Changes() {
			t.Errorf("%s: the next deploy does something again", what)
		}
	}
}
