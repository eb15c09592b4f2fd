package nft

import (
	"maps"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"berth/internal/edge"
)

// someMappings draws mappings in the order of their addresses, each with a different guest.
func someMappings(t *rapid.T) (all []edge.Mapping) {
	guests := map[netip.Addr]bool{}
	for i := range 8 {
		if rapid.IntRange(0, 3).Draw(t, "there") == 0 {
			continue
		}
		g := byte(rapid.IntRange(1, 12).Draw(t, "guest"))
		guest := netip.AddrFrom4([4]byte{172, 16, g % 3, g})
		if guests[guest] {
			continue
		}
		guests[guest] = true
		all = append(all, edge.Mapping{Elastic: netip.AddrFrom4([4]byte{10, 64, 0, byte(i)}), Guest: guest,
			Subnet: netip.PrefixFrom(guest, 24).Masked(), EgressOnly: rapid.Bool().Draw(t, "egress only"),
			Staged: rapid.Bool().Draw(t, "staged")})
	}
	return all
}

// TestStep: after a step, the contents are those of the state, and the returned change leads to them.
func TestStep(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ranges := []edge.Range{{From: netip.MustParseAddr("10.64.0.0"), To: netip.MustParseAddr("10.64.0.255"),
			OnCut: edge.Keep, Announce: "eth0"}}
		p := &Provider{whole: true}
		p.allowed.Store(&allowance{})
		p.setState(edge.State{Ranges: ranges, Mappings: someMappings(rt)})
		for range 4 {
			s := edge.State{Ranges: ranges, Mappings: someMappings(rt)}
			one, ok := p.stepTo(s)
			if err := p.checkStep(one); !ok || err != nil {
				rt.Fatalf("no step leads from %v to %v: %v", p.state.Mappings, s.Mappings, err)
			}
			had := contents{}
			for at, all := range p.want {
				had[at] = maps.Clone(all)
			}
			change := p.want.step(one, p.countSubnets(one))
			p.state = &s
			p.moveHere(one)
			want := contentsOf(s)
			for at := range want {
				if !maps.Equal(p.want[at], want[at]) {
					rt.Fatalf("%v has %q, want %q", at, p.want[at], want[at])
				}
				for key, value := range change[at].remove {
					if was, there := had[at][key]; !there || was != value {
						rt.Fatalf("%v: %x is to be removed, and is not there", at, key)
					}
					delete(had[at], key)
				}
				for key, value := range change[at].add {
					if _, there := had[at][key]; there {
						rt.Fatalf("%v: %x is to be added, and is there", at, key)
					}
					had[at][key] = value
				}
				if !maps.Equal(had[at], want[at]) {
					rt.Fatalf("the change leads to %q in %v, want %q", had[at], at, want[at])
				}
			}
			if here := announced(s); !maps.Equal(here, p.here) {
				rt.Fatalf("it answers for %v, want %v", p.here, here)
			}
		}
	})
}

// A contradictory step is refused like a contradictory whole state.
func TestStepRefused(t *testing.T) {
	const first = "10.64.0.0-10.64.0.9 keep\n10.64.0.1=172.16.0.1\n"
	p := &Provider{whole: true}
	p.allowed.Store(&allowance{})
	p.setState(stateOf(first))
	for name, more := range map[string]string{
		"a guest that has one":  "10.64.0.2=172.16.0.1",
		"a guest of two":        "10.64.0.2=172.16.0.2\n10.64.0.3=172.16.0.2",
		"an address twice":      "10.64.0.2=172.16.0.2\n10.64.0.2=172.16.0.3",
		"outside of all ranges": "10.65.0.2=172.16.0.2",
	} {
		s := stateOf(first + more)
		one, ok := p.stepTo(s)
		if !ok || p.checkStep(one) == nil || s.Check() == nil {
			t.Errorf("%s is not refused (%v)", name, one)
		}
	}
}
