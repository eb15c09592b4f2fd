package ipam

import (
	"errors"
	"net/netip"
	"testing"

	"berth/store/mem"
)

// LN-12: two hosts draw from one subnet, each sees what the other has, and none gets what the other has.
func TestTwoHosts(t *testing.T) {
	first := mem.New()
	hosts := map[string]*Service{}
	for name, st := range map[string]*mem.Store{"a": first, "b": first.Join()} {
		s, err := Open(t.Context(), Config{Store: st, Host: name, Member: &Member{Host: NewID(), Session: NewID(), Mark: [4]byte{1, 2, 3, 4}}})
		if err != nil {
			t.Fatal(err)
		}
		st.Announce(name, []byte{1})
		hosts[name] = s
	}
	a, b := hosts["a"], hosts["b"]
	_, err := a.Edit(t.Context(), EditOptions{}, &CreateNetwork{Name: "lan", Space: GlobalSpace, Subnets: []SubnetSpec{{
		CIDR: netip.MustParsePrefix("10.77.0.0/24"), Gateway: netip.MustParseAddr("10.77.0.1"), Pool: true}}})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[netip.Prefix]bool{}
	pools := map[string]ID{}
	for name, s := range hosts {
		g, err := s.RequestPool(t.Context(), PoolRequest{Network: "lan"})
		if err != nil {
			t.Fatal(name, err)
		}
		if !g.ID.Bears([4]byte{1, 2, 3, 4}) {
			t.Error(g.ID)
		}
		pools[name] = g.ID
	}
	for i := range 253 {
		s, name := a, "a"
		if i%2 == 1 {
			s, name = b, "b"
		}
		addr, err := s.RequestAddress(t.Context(), AddressRequest{Pool: pools[name], MAC: MAC{2, 0, 0, 0, byte(i >> 8), byte(i)}})
		if err != nil || seen[addr] {
			t.Fatal(i, addr, err)
		}
		seen[addr] = true
	}
	if _, err := a.RequestAddress(t.Context(), AddressRequest{Pool: pools["a"], MAC: MAC{4}}); !errors.Is(err, ErrExhausted) {
		t.Error(err)
	}
	all, err := a.Hosts(t.Context())
	if err != nil || len(all) != 2 || all[1].Leases != 126 || !all[1].Present {
		t.Error(all, err)
	}
	if _, err := a.Edit(t.Context(), EditOptions{}, &RemoveHost{Name: "b", Off: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.RequestAddress(t.Context(), AddressRequest{Pool: pools["b"], MAC: MAC{5}}); !errors.Is(err, ErrHost) {
		t.Error(err)
	}
	all, err = a.Hosts(t.Context())
	if err != nil || all[1].State != HostRemoved || all[1].Leases != 0 {
		t.Error(all, err)
	}
	for _, s := range hosts {
		if problems, err := s.Check(t.Context()); err != nil || len(problems) > 0 {
			t.Error(problems, err)
		}
	}
}
