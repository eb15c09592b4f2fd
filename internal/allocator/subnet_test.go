package allocator_test

import (
	"context"
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
)

var ctx = context.Background()

// Chosen subnets come from the bases in order and avoid the given prefixes. If none is left, the error shows what was
// searched and what overlaps it. (LN-7)
func TestChosenSubnets(t *testing.T) {
	st := ipamtest.OpenStore(t, filepath.Join(t.TempDir(), "berth.db"))
	t.Cleanup(func() { st.Close() })
	s, err := service.Open(ctx, service.Config{Store: st, Host: "h", Bases: []ipam.Base{
		{Prefix: netip.MustParsePrefix("10.8.0.0/22"), Bits: 24},
		{Prefix: netip.MustParsePrefix("10.9.0.0/24"), Bits: 26},
	}})
	must(t, err)
	routes := ipamtest.Prefixes("10.8.1.0/24", "10.9.0.130/32", "fd00::/8")
	var got []string
	for {
		grant, err := s.RequestPool(ctx, ipam.PoolRequest{Space: "local", Avoid: routes})
		if err != nil {
			for _, part := range []string{"10.8.0.0/22 in /24", "10.9.0.0/24 in /26", "3 subnets 10.8.0.0/24",
				"1 host route 10.8.1.0/24", "--subnet", "--default-pool"} {
				if !errors.Is(err, ipam.ErrExhausted) || !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
			break
		}
		got = append(got, grant.CIDR.String())
	}
	want := "10.8.0.0/24 10.8.2.0/24 10.8.3.0/24 10.9.0.0/26 10.9.0.64/26 10.9.0.192/26"
	if strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if _, err := s.RequestPool(ctx, ipam.PoolRequest{Space: "lab"}); err != nil {
		t.Errorf("another space has the same bases: %v", err)
	}
	if _, err := s.RequestPool(ctx, ipam.PoolRequest{Space: "local", Bits: 20}); err == nil ||
		!strings.Contains(err.Error(), "no base prefix has room") {
		t.Errorf("a /20 out of a /22 in part taken, and a /24: %v", err)
	}
}

// Subnets of a requested size are packed next to each other, with sizes mixed. If there is no such room, the
// error says so. (LN-7)
func TestSizes(t *testing.T) {
	s := ipamtest.NewService(t, time.Now)
	for _, row := range []struct {
		bits int
		want string // a subnet, or a part of the refusal
	}{{24, "172.16.0.0/24"}, {24, "172.16.1.0/24"}, {16, "172.17.0.0/16"}, {28, "172.16.2.0/28"}, {0, "172.16.3.0/24"},
		{31, "172.16.2.16/31"}, {8, "10.0.0.0/8"}, {8, "in the way: 1 subnet 10.0.0.0/8"}, {7, "172.16.0.0/12"}} {
		grant, err := s.RequestPool(ctx, ipam.PoolRequest{Space: "local", Bits: row.bits})
		if got := grant.CIDR.String(); err == nil && got != row.want || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("/%d: %s, %v; want %s", row.bits, got, err, row.want)
		}
	}
}

// The IPv6 default is a /48 of the store, the same at each start. A family with configured bases uses only those.
func TestDefaultBases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "berth.db")
	var drawn []netip.Prefix
	for _, bases := range [][]ipam.Base{nil, {{Prefix: netip.MustParsePrefix("10.8.0.0/16"), Bits: 28}}} {
		st := ipamtest.OpenStore(t, path)
		s, err := service.Open(ctx, service.Config{Store: st, Host: "h", Bases: bases})
		must(t, err)
		six := ipamtest.MustPool(t, s, ipam.PoolRequest{IPv6: true}).CIDR
		four := ipamtest.MustPool(t, s, ipam.PoolRequest{}).CIDR
		want := "172.16.0.0/24"
		if bases != nil {
			want = "10.8.0.0/28"
		}
		if four.String() != want || six.Bits() != 64 || !netip.MustParsePrefix("fd00::/8").Overlaps(six) {
			t.Errorf("with the bases %v: %v and %v", bases, four, six)
		}
		drawn = append(drawn, netip.PrefixFrom(six.Addr(), 48).Masked())
		st.Close()
	}
	if drawn[0] != drawn[1] {
		t.Errorf("the ULA prefix changed from %v to %v", drawn[0], drawn[1])
	}
}

// A space is created on its first use, and the same subnet may be in several spaces. (LN-5)
func TestSpaces(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		attach A cidr=10.0.0.0/24
		attach B cidr=10.0.0.0/24 space=lab
		ask A mac=1 -> 10.0.0.1
		ask B mac=1 -> 10.0.0.1
	`)
	spaces, err := r.S.Spaces(ctx)
	if err != nil || len(spaces) != 3 || spaces[1].Name != "lab" || spaces[1].Subnets != 1 || spaces[1].Leases != 1 {
		t.Errorf("%+v, %v", spaces, err)
	}
}
