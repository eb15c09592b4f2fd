package page_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// TestArranged: the networks can be sorted by use and by any column, in both directions, and filtered by a word.
func TestArranged(t *testing.T) {
	s := ipamtest.NewService(t, time.Now)
	for i, taken := range []int{9, 1, 10, 0} {
		name := fmt.Sprint("net", i)
		cidr := netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/28", 20-i))
		pool := ipam.Range{}
		must(t, pool.UnmarshalText(fmt.Appendf(nil, "10.%d.0.1-10.%d.0.10", 20-i, 20-i)))
		edits := []ipam.Edit{&ipam.CreateNetwork{Name: name, Subnets: []ipam.SubnetSpec{{CIDR: cidr}}},
			&ipam.AddPool{Network: name, Range: pool}}
		for k := range taken {
			edits = append(edits, &ipam.AddReservation{Network: name, Owner: fmt.Sprint("o", k),
				Wishes: []ipam.Wish{{Address: netip.AddrFrom4([4]byte{10, byte(20 - i), 0, byte(k + 1)})}}})
		}
		if _, err := s.Edit(ctx, ipam.EditOptions{}, edits...); err != nil {
			t.Fatal(err)
		}
	}
	h := pages(s, nil)
	for query, want := range map[string][]string{
		"":                       {"net2", "net0", "net1", "net3"},
		"sort=used":              {"net3", "net1", "net0", "net2"},
		"sort=network":           {"net0", "net1", "net2", "net3"},
		"sort=-network":          {"net3", "net2", "net1", "net0"},
		"sort=-free":             {"net3", "net1", "net0", "net2"},
		"filter=NET1":            {"net1"},
		"filter=10.18":           {"net2"},
		"filter=nothing":         nil,
		"sort=-network&from=2":   {"net1", "net0"},
		"sort=cidrs&filter=10.2": {"net0"},
	} {
		var got struct{ Networks []struct{ Network string } }
		must(t, json.Unmarshal([]byte(asked(t, h, "/?format=json&"+query)), &got))
		var names []string
		for _, n := range got.Networks {
			names = append(names, n.Network)
		}
		if !slices.Equal(names, want) {
			t.Errorf("%q: %q, not %q", query, names, want)
		}
	}
	text := asked(t, h, "/")
	for _, has := range []string{`class="l-full" width="100"`, `class="l-full" width="90"`, `class="l-ok" width="10"`,
		`aria-sort="descending"`} {
		if !strings.Contains(text, has) {
			t.Errorf("the page has no %s", has)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/?sort=colour", nil))
	if w.Code != http.StatusBadRequest {
		t.Errorf("an unknown column is answered with %d", w.Code)
	}
}
