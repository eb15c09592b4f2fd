package view_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
)

// whoElastic returns what Who reports about elastic addresses, without leases and reservations.
func whoElastic(r *ipamtest.Stage, f ipam.WhoFilter) string {
	r.T.Helper()
	all, err := r.S.Who(ctx, f)
	must(r.T, err)
	began := r.Clock.Time
	for _, e := range ipamtest.EventsAfter(r.T, r, 0) {
		began = e.Time
		break
	}
	var lines []string
	for _, t := range all {
		if t.What != ipam.ElasticTenure {
			continue
		}
		early, until := "", ""
		if t.Early {
			early = "?"
		}
		if !t.Until.IsZero() {
			until = t.Until.Sub(began).Round(time.Minute).String()
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s%s-%s", t.Address, t.Name, t.Guest, early,
			t.From.Sub(began).Round(time.Minute), until))
	}
	return strings.Join(lines, ", ")
}

// TestWhoElastic: Who reports who had an elastic address, when it was moved and ended, which ones an owner had,
// and who had it at one moment, also for what began before the kept events.
func TestWhoElastic(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 subnet=192.0.2.0/24,pool
		reserve net1 shop/web/1 192.0.2.11
		reserve net1 mail 192.0.2.12`)
	on, first, second := "on", netip.MustParseAddr("203.0.113.0"), netip.MustParseAddr("203.0.113.1")
	r.Edit(&ipam.ModifyNetwork{Network: "net1", Elastic: &on},
		&ipam.AddElasticRange{Range: ipamtest.MustRange("203.0.113.0+4")}, &ipam.AllocateElastic{}, &ipam.AllocateElastic{})
	later := func(e ipam.Edit) {
		r.Run("wait 1m")
		r.Edit(e)
	}
	later(&ipam.AssociateElastic{Address: first, Instance: "shop/web/1"})
	later(&ipam.AssociateElastic{Address: first, Instance: "mail", Move: true})
	later(&ipam.AssociateElastic{Address: second, Instance: "shop/web/1", EgressOnly: true})
	later(&ipam.DisassociateElastic{Address: first})
	later(&ipam.AssociateElastic{Address: first, Instance: "mail"})
	began := r.Clock.Time.Add(-5 * time.Minute)
	for _, q := range []struct {
		filter ipam.WhoFilter
		want   string
	}{
		{ipam.WhoFilter{Address: first}, "203.0.113.0 shop/web/1 192.0.2.11 1m0s-2m0s, 203.0.113.0 mail 192.0.2.12 " +
			"2m0s-4m0s, 203.0.113.0 mail 192.0.2.12 5m0s-"},
		{ipam.WhoFilter{Address: first, At: began.Add(90 * time.Second)}, "203.0.113.0 shop/web/1 192.0.2.11 1m0s-2m0s"},
		{ipam.WhoFilter{Address: first, At: began.Add(4*time.Minute + time.Second)}, ""},
		{ipam.WhoFilter{Address: second}, "203.0.113.1 shop/web/1 192.0.2.11 3m0s-"},
		{ipam.WhoFilter{Name: "shop/web/1"}, "203.0.113.0 shop/web/1 192.0.2.11 1m0s-2m0s, 203.0.113.1 shop/web/1 " +
			"192.0.2.11 3m0s-"},
		{ipam.WhoFilter{Name: "mail", At: began.Add(3 * time.Minute)}, "203.0.113.0 mail 192.0.2.12 2m0s-4m0s"},
		{ipam.WhoFilter{Name: "mail", Space: "lab"}, ""},
		{ipam.WhoFilter{Name: "nobody"}, ""},
	} {
		if got := whoElastic(r, q.filter); got != q.want {
			t.Errorf("%+v:\n%s\nand not\n%s", q.filter, got, q.want)
		}
	}

	r.Run("wait 1m")
	last := ipamtest.LastEvent(t, r)
	r.Edit(&ipam.DisassociateElastic{Address: second},
		&ipam.AssociateElastic{Address: first, Instance: "shop/web/1", Move: true})
	s, err := service.Open(ctx, service.Config{Store: r.Store, Host: "h1", Now: r.Clock.Now, Memories: ipamtest.Memories,
		Retention: ipam.Retention{Count: len(ipamtest.EventsAfter(t, r, last))}})
	must(t, err)
	must(t, s.Trim(ctx))
	r.S = s
	for addr, want := range map[netip.Addr]string{
		first:  "203.0.113.0 mail 192.0.2.12 ?0s-0s, 203.0.113.0 shop/web/1 192.0.2.11 0s-",
		second: "203.0.113.1 shop/web/1 192.0.2.11 ?0s-0s",
	} {
		if got := whoElastic(r, ipam.WhoFilter{Address: addr}); got != want {
			t.Errorf("%s:\n%s\nand not\n%s", addr, got, want)
		}
	}
}
