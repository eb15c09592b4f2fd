package ledger_test

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store/bolt"
)

// The index is advice. Even if it is wrong, no address has two holders, and every free address is found in the end
// (GA-22).
func TestWrongIndex(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		dir := tempDir(t)
		st, err := bolt.Open(ctx, bolt.Config{Path: filepath.Join(dir, "berth.db"), NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		s, err := service.Open(ctx, service.Config{Store: st, Host: "h"})
		if err != nil {
			t.Fatal(err)
		}
		cidr := netip.MustParsePrefix("10.0.0.0/28")
		grant, err := s.RequestPool(ctx, ipam.PoolRequest{Space: ipam.LocalSpace, CIDR: cidr})
		if err != nil {
			t.Fatal(err)
		}
		holders := map[netip.Addr]ipam.MAC{}
		for n := range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "lie") {
				lie(t, s)
			}
			mac := ipam.MAC{2, 0, 0, 0, 0, byte(n + 1)}
			p, err := s.RequestAddress(ctx, ipam.AddressRequest{Pool: grant.ID, MAC: mac, Name: nameOf(mac)})
			if err != nil {
				for a := range holders {
					if err := s.ReleaseAddress(ctx, grant.ID, a); err != nil {
						t.Fatal(err)
					}
					delete(holders, a)
					break
				}
				continue
			}
			if other, taken := holders[p.Addr()]; taken {
				t.Fatalf("%v is given to %v and %v", p.Addr(), other, mac)
			}
			holders[p.Addr()] = mac
		}
		n := 0
		for _, err := range s.Leases(ctx, ipam.LeaseFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != len(holders) {
			t.Fatalf("%d leases for %d holders", n, len(holders))
		}
	})
}

// lie makes the index show an address as free, remembered or held, against its record.
func lie(t *rapid.T, s *service.Service) {
	s.Ledger.Read(func(ix *ledger.Index) {
		for _, sx := range ix.Subnets() {
			a := sx.Record().CIDR.Addr()
			for range rapid.IntRange(1, 14).Draw(t, "address") {
				a = a.Next()
			}
			m := ipam.MAC{2, 0, 0, 0, 0, byte(rapid.IntRange(1, 40).Draw(t, "mac"))}
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				sx.Move(a, &ipam.Lease{MAC: m}, nil)
			case 1:
				sx.Move(a, nil, &ipam.Lease{Address: a, MAC: m, Released: ipam.EventTime(1)})
			case 2:
				sx.BelieveMAC(m, a)
			case 3:
				sx.BelieveName(nameOf(m), a)
			}
		}
	})
}

func nameOf(m ipam.MAC) string { return "c" + m.String() }

func tempDir(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "berth-index")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
