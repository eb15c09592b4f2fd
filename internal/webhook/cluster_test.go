package webhook

import (
	"context"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

// Each host that shares a store sends what it does itself, in its own store and in the shared one, and not what
// another host does. This holds if the shared store is reached only later, and after a restart.
func TestOtherHosts(t *testing.T) {
	in := newInbox(t, httptest.NewServer)
	h := newHarness(t, ipam.Retention{}, in.URL)
	first := mem.New()
	mark := [4]byte{1}
	member := func(name string, st *mem.Store) *service.Service {
		s, err := service.Open(t.Context(), service.Config{Store: st, Host: name,
			Member: &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID(), Mark: mark}})
		must(t, err)
		return s
	}
	beta := member("beta", first.Join())
	half, err := cluster.OpenShared(t.Context(), cluster.SharedConfig{Own: mem.New(), Mark: mark, Host: "alpha",
		Reach: first.Reach, Open: func(context.Context) (*service.Service, error) { return member("alpha", first), nil }})
	must(t, err)
	joined := cluster.NewService(h.service, half)
	h.cfg.Service, h.cfg.OwnAlone = joined, true
	h.begin() // before the shared store is reached
	_, err = beta.Edit(t.Context(), ipam.EditOptions{}, &ipam.CreateNetwork{Name: "lan", Space: ipam.GlobalSpace,
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.77.0.0/24"), Pool: true}}})
	must(t, err)
	take := func(s interface {
		Edit(context.Context, ipam.EditOptions, ...ipam.Edit) (ipam.Outcome, error)
	}, network, owner string) {
		t.Helper()
		h.clock.advance(time.Microsecond)
		_, err := s.Edit(t.Context(), ipam.EditOptions{}, &ipam.TakeAddress{Network: network, Owner: owner})
		must(t, err)
	}
	in.answers(refuses(503))
	take(joined, "net1", "alone")
	in.receives(t, []string{"alone"})

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- half.Run(ctx) }()
	t.Cleanup(func() {
		h.stop()
		cancel()
		must(t, <-ended)
	})
	comes(t, "the shared store is reached", func() bool { return joined.Partial() == nil })
	takes := func(owners ...string) {
		t.Helper()
		for _, owner := range owners {
			network := "lan"
			if owner[0] == 'o' {
				network = "net1"
			}
			take(beta, "lan", "beta-"+owner)
			take(joined, network, owner)
		}
		var got []string
		for range owners {
			m := in.next(t)
			if m.Type != "lease.take" || m.event.Host != "alpha" {
				t.Errorf("%s came", m.body)
			}
			got = append(got, m.event.Name)
		}
		slices.Sort(got) // the two stores have no common order
		if want := slices.Sorted(slices.Values(owners)); !slices.Equal(got, want) {
			t.Errorf("%q came, want %q", got, want)
		}
	}
	// Events of the shared store that come while the receiver refuses are sent after a restart, too.
	take(joined, "lan", "early")
	h.stop()
	in.answers(nil)
	h.begin()
	in.receives(t, []string{"alone"})
	join := in.next(t)
	if join.Type != "host.join" || join.event.Host != "alpha" {
		t.Errorf("%s came, want that the host has joined", join.body)
	}
	in.receives(t, []string{"early"})
	takes("s1", "o1", "s2", "o2")
	comes(t, "all is taken", func() bool { return h.hooks.States()[0].Delivered == 7 })
	h.stop()
	in.none(t)
	take(beta, "lan", "beta-meanwhile")
	take(joined, "lan", "s3")
	h.begin()
	in.receives(t, []string{"s3"})
	takes("s4", "o4")
	in.none(t)
}
