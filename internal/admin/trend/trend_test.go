package trend

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"berth/internal/ipam"
)

// The use of an hour, a day and a week survives a restart. Times without observation are left out.
func TestTrend(t *testing.T) {
	cidr := netip.MustParsePrefix("10.1.0.0/24")
	used := uint64(0)
	use := func(context.Context) ([]ipam.PoolUse, error) {
		return []ipam.PoolUse{{Space: "local", Network: "front", Subnet: cidr, Pool: "web",
			StateCounts: ipam.StateCounts{Leased: used, Free: ipam.NewCount(int64(100 - used))}},
			{Space: "local", Network: "front", Subnet: cidr, StateCounts: ipam.StateCounts{Leased: 7}}}, nil
	}
	path := filepath.Join(t.TempDir(), "trend.json")
	now := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	b := Open(path, use)
	look := func(percent uint64, after time.Duration) {
		used, now = percent, now.Add(after)
		b.now = func() time.Time { return now }
		b.look(t.Context())
	}
	look(10, 0)
	look(30, 20*time.Second) // the highest value of a minute counts
	look(20, time.Minute)
	look(40, 2*time.Minute)
	h := b.Of("local", "front", "", "")
	if want := []int{30, 20, -1, 40}; !slices.Equal(h.Hour, want) || !slices.Equal(h.Day, []int{40}) ||
		!slices.Equal(h.Week, []int{40}) {
		t.Errorf("%+v", h)
	}
	if h := b.Of("local", "front", cidr.String(), "web"); len(h.Hour) != 4 {
		t.Errorf("of the pool: %+v", h)
	}
	b.write()
	b = Open(path, use)
	for range 200 {
		look(50, time.Hour)
	}
	h = b.Of("local", "front", "", "")
	if len(h.Hour) != 1 && len(h.Hour) > 60 || len(h.Day) > 96 || len(h.Week) != 168 {
		t.Errorf("%d, %d, %d", len(h.Hour), len(h.Day), len(h.Week))
	}
	look(1, -time.Hour) // the clock is set back
	if h := b.Of("local", "front", "", ""); !slices.Equal(h.Hour, []int{1}) {
		t.Errorf("%+v", h)
	}
	if err := os.WriteFile(path, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b := Open(path, use); len(b.all) != 0 {
		t.Error("a broken file is read")
	}
}

// The file stays below a megabyte, whatever the number of pools.
func TestSize(t *testing.T) {
	b := Open(filepath.Join(t.TempDir(), "trend.json"), func(context.Context) (all []ipam.PoolUse, _ error) {
		for i := range 1600 {
			cidr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
			all = append(all, ipam.PoolUse{Space: "local", Network: "a-network-with-a-name-of-usual-length", Subnet: cidr,
				Pool: cidr.String(), StateCounts: ipam.StateCounts{Leased: 1, Free: ipam.NewCount(99)}})
		}
		return all, nil
	})
	now := time.Unix(0, 0)
	b.now = func() time.Time { return now }
	for range 20 { // times without observation need the same room
		b.look(t.Context())
		now = now.Add(10 * time.Hour)
	}
	for range 6 {
		b.look(t.Context())
		now = now.Add(10 * time.Minute)
	}
	b.write()
	info, err := os.Stat(b.path)
	if err != nil || info.Size() > mostBytes || info.Size() < mostBytes/2 {
		t.Errorf("%v, %v", info, err)
	}
}
