package page_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"berth/internal/admin/page"
	"berth/internal/admin/trend"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// BenchmarkHome is the first view with 2,000 networks.
func BenchmarkHome(b *testing.B) {
	look := homeWith(b, 2000)
	for b.Loop() {
		look()
	}
}

// TestHomeOfMany: for a network that the first view does not show Berth only counts addresses, and draws nothing.
func TestHomeOfMany(t *testing.T) {
	few, many := testing.AllocsPerRun(3, homeWith(t, 200)), testing.AllocsPerRun(3, homeWith(t, 600))
	const most = 65
	if each := (many - few) / 400; each > most {
		t.Errorf("each network more takes %.0f allocations, not %d at most", each, most)
	}
}

// homeWith opens the first view with that many networks. Each has a Docker network and up to two containers, and
// half of them have a day of recorded use.
func homeWith(b testing.TB, networks int) (look func()) {
	b.Helper()
	now := time.Date(2026, 11, 17, 10, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	s := ipamtest.NewService(b, clock)
	for i := range networks {
		name := fmt.Sprintf("net%d", i)
		cidr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
		_, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.CreateNetwork{Name: name, Tags: map[string]string{"team": "blue"},
			Subnets: []ipam.SubnetSpec{{CIDR: cidr, Gateway: cidr.Addr().Next(), Pool: true}}})
		must(b, err)
		grant, err := s.RequestPool(ctx, ipam.PoolRequest{Network: name})
		must(b, err)
		for n := range i % 3 {
			if _, err := s.RequestAddress(ctx, ipam.AddressRequest{Pool: grant.ID, MAC: ipamtest.MAC(3*i + n + 1),
				Name: "web" + name}); err != nil {
				b.Fatal(err)
			}
		}
	}
	type ring struct {
		At     int64  `json:"at"`
		Values []byte `json:"values"`
	}
	seen := map[string][]ring{}
	for i := range networks / 2 {
		day := bytes.Repeat([]byte{byte(i % 100), 10}, 48)
		seen[fmt.Sprintf("local\nnet%d", i)] = []ring{{now.Unix() / 60, day[:60]}, {now.Unix() / 900, day},
			{now.Unix() / 3600, day}}
	}
	text, err := json.Marshal(seen)
	must(b, err)
	file := filepath.Join(b.TempDir(), "trend")
	must(b, os.WriteFile(file, text, 0o600))
	book := trend.Open(file, s.Use)
	h := pages(s, func(cfg *page.Config) { cfg.Trend, cfg.Now = book, clock })
	return func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		if w.Code != http.StatusOK {
			b.Fatal(w.Code, w.Body)
		}
	}
}
