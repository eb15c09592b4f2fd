package hook

import (
	"context"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

// Each host that shares a store runs its hooks for what it does itself, and not for what another host does. If no
// host is configured, the hooks run for everything, as ever.
func TestOtherHosts(t *testing.T) {
	for _, host := range []string{"alpha", ""} {
		t.Run("host "+host, func(t *testing.T) {
			h := start(t)
			h.install(t, "1-dump")
			first := mem.New()
			mark := [4]byte{1}
			member := func(name string, st *mem.Store) *service.Service {
				s, err := service.Open(t.Context(),
					service.Config{Store: st, Host: name,
						Member: &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID(), Mark: mark}})
				must(t, err)
				return s
			}
			beta := member("beta", first.Join())
			half, err := cluster.OpenShared(t.Context(),
				cluster.SharedConfig{Own: mem.New(), Mark: mark, Host: "alpha", Reach: first.Reach,
					Open: func(context.Context) (*service.Service, error) { return member("alpha", first), nil }})
			must(t, err)
			log := logrus.New()
			log.SetOutput(io.Discard)
			log.SetLevel(logrus.DebugLevel)
			log.AddHook(entries(h.log))
			joined := cluster.NewService(h.service, half)
			// The shared store is reached only after the hooks are open.
			h.hooks, err = Open(t.Context(),
				Config{Service: joined, Dir: h.dir, Host: host, Log: logrus.NewEntry(log), Bound: time.Minute})
			must(t, err)
			_, err = beta.Edit(t.Context(), ipam.EditOptions{},
				&ipam.CreateNetwork{Name: "lan", Space: ipam.GlobalSpace,
					Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.77.0.0/24"), Pool: true}}})
			must(t, err)
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- half.Run(ctx) }()
			t.Cleanup(func() {
				cancel()
				must(t, <-ended)
			})
			for late := time.Now().Add(30 * time.Second); joined.Partial() != nil && time.Now().Before(late); {
				time.Sleep(time.Millisecond)
			}
			h.follow(t)
			take := func(s interface {
				Edit(context.Context, ipam.EditOptions, ...ipam.Edit) (ipam.Outcome, error)
			}, network, owner string) {
				_, err := s.Edit(t.Context(), ipam.EditOptions{}, &ipam.TakeAddress{Network: network, Owner: owner})
				must(t, err)
			}
			take(beta, "lan", "other")
			take(joined, "net1", "own")
			take(joined, "lan", "shared")
			want := []string{"own", "shared"}
			if host == "" {
				want = []string{"other", "own", "shared"}
			}
			for range want {
				h.logged(t, "a hook ran")
			}
			h.stop()
			var got []string
			for line := range strings.SplitSeq(h.out(t), "\n") {
				if owner, is := strings.CutPrefix(line, "BERTH_OWNER="); is {
					got = append(got, owner)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("it ran for %q, want %q", got, want)
			}
		})
	}
}
