package page_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// holds checks that a view has all these texts.
func holds(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestEventFilters: each filter of the events can be cleared. A filter for a network that does not exist says so.
func TestEventFilters(t *testing.T) {
	s := ipamtest.NewService(t, time.Now)
	if _, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.CreateNetwork{Name: "net1"}); err != nil {
		t.Fatal(err)
	}
	h := pages(s, nil)
	holds(t, asked(t, h, "/events?network=net1&verb=lease.take&from=100"),
		"No such event of network &#34;net1&#34; is known.", `<a href="?verb=lease.take">Clear network net1</a>`,
		`<a href="?network=net1">Clear verb lease.take</a>`)
	holds(t, asked(t, h, "/events?network=nowhere"), "There is no network &#34;nowhere&#34;, and no event",
		`<a href="./events">Clear network nowhere</a>`)
	holds(t, asked(t, h, "/events?verb=lease.take"), "No event lease.take is known.")
	text := asked(t, h, "/events?network=net1")
	if strings.Contains(text, "is known") || strings.Contains(text, "Clear verb") {
		t.Errorf("the events of net1:\n%s", text)
	}
}

// TestNoPool: a network without a pool says that it has none, and how to add one.
func TestNoPool(t *testing.T) {
	s := ipamtest.NewService(t, time.Now)
	_, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.CreateNetwork{Name: "net1", Subnets: []ipam.SubnetSpec{
		{CIDR: netip.MustParsePrefix("10.9.0.0/24")}}})
	must(t, err)
	subnets, err := s.Subnets(ctx, "")
	must(t, err)
	h := pages(s, nil)
	holds(t, asked(t, h, "/"), ">no pool</td>")
	const advice = "Add one with `berth pool add net1 10.9.0.0/24`."
	holds(t, asked(t, h, "/network/net1"), ">no pool</td>", advice)
	holds(t, asked(t, h, "/subnet/"+subnets[0].ID.String()), advice)
}

// TestMapOfIPv6: the map of an IPv6 subnet shows numbers of addresses. All percentages would be close to zero.
func TestMapOfIPv6(t *testing.T) {
	s := ipamtest.NewService(t, time.Now)
	edits := []ipam.Edit{&ipam.CreateNetwork{Name: "net1", Subnets: []ipam.SubnetSpec{
		{CIDR: netip.MustParsePrefix("2001:db8:9::/64"), Pool: true}}}}
	for i := range 23 {
		at := netip.MustParseAddr("2001:db8:9::10").As16()
		at[15] += byte(i)
		edits = append(edits, &ipam.AddReservation{Network: "net1", Owner: string(rune('a' + i)),
			Wishes: []ipam.Wish{{Address: netip.AddrFrom16(at)}}})
	}
	if _, err := s.Edit(ctx, ipam.EditOptions{}, edits...); err != nil {
		t.Fatal(err)
	}
	subnets, err := s.Subnets(ctx, "")
	must(t, err)
	text := asked(t, pages(s, nil), "/subnet/"+subnets[0].ID.String())
	holds(t, text, `dy="14">23</text>`, "the number of its addresses")
}
