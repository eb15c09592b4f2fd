package admin

import (
	"context"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/mem"
)

// overTwo: the harnesses of this process use two stores. The space local is in the host's own bolt file, all other
// spaces are in the cluster's store.
var overTwo = os.Getenv("BERTH_ADMIN_OVER") == "joined"

// notOverTwo are the tests of things that a Service over two stores refuses or answers differently.
var notOverTwo = []string{
	"TestNoHosts", // there are hosts
	"TestGoldenImport",
	"TestImportAsDescribed",   // the plan covers both stores, which is refused
	"TestEventsChosen",        // each store has its own first events
	"TestFollowChosen",        // its edits cover both stores
	"TestFollowMissesNothing", // it opens two stores itself
	"TestBackup",              // the backup is of the host's own store
	"TestPlanTooLarge",        // a plan of this size is refused before any store is asked
	"TestPlanOfTooMany",
	"TestEdgeNews", // its network is in the host's own store, and the edge maps addresses of the cluster's
	"TestLargeView",
	"TestLargeViewBreaksOff",
}

// askTwo are tests that, with those of this file, use all of such a Service that the package tests.
var askTwo = []string{"TestAccountTokenCreated", "TestAnswersAsDescribed", "TestClientImport",
	"TestElasticAsDescribed", "TestEventsFromMarks", "TestFollowedEventsAsDescribed", "TestIfMatch",
	"TestIfMatchOfDockersNetwork", "TestIdempotencyKey", "TestOwnersAsDescribed", "TestPage", "TestPages",
	"TestPlanAsDescribed", "TestRoles", "TestWhoAsDescribed", "TestWitnessAsDescribed"}

// TestSuiteOverSharedStore runs all tests of the package again over two stores. With -short it runs those of
// askTwo.
func TestSuiteOverSharedStore(t *testing.T) {
	if overTwo {
		return // this is that second run
	}
	args := []string{"-test.count=1", "-test.timeout=8m", "-test.skip=^(" + strings.Join(notOverTwo, "|") + ")$"}
	if testing.Short() {
		args = append(args, "-test.short", "-test.run=^("+strings.Join(askTwo, "|")+")$")
	}
	suite := exec.Command(os.Args[0], args...)
	suite.Env = append(os.Environ(), "BERTH_ADMIN_OVER=joined")
	if out, err := suite.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

// engine is the part of the service that an engine calls.
type engine interface {
	RequestPool(context.Context, ipam.PoolRequest) (ipam.PoolGrant, error)
	RequestAddress(context.Context, ipam.AddressRequest) (netip.Prefix, error)
	ReleaseAddress(ctx context.Context, pool ipam.ID, addr netip.Addr) error
}

// newJoined joins a harness's service with a cluster of this one host.
func newJoined(t testing.TB, h *harness) *cluster.Service {
	t.Helper()
	shared := mem.New()
	t.Cleanup(func() { must(t, shared.Close()) })
	joined := openJoined(t, h, shared.Reach, func(ctx context.Context) (*service.Service, error) {
		return service.Open(ctx, service.Config{Store: shared, Host: "alpha", Member: newMember()})
	})
	reached(t, joined)
	return joined
}

func newMember() *ipam.Member {
	return &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID(), Mark: [4]byte{1, 2, 3, 4}}
}

// openJoined joins a harness's service with the cluster half, which runs until the end of the test.
func openJoined(t testing.TB, h *harness, reach func() store.Reach,
	open func(context.Context) (*service.Service, error)) *cluster.Service {
	t.Helper()
	half, err := cluster.OpenShared(t.Context(),
		cluster.SharedConfig{Own: h.store, Mark: [4]byte{1, 2, 3, 4}, Host: "alpha", Reach: reach, Open: open})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- half.Run(ctx) }()
	t.Cleanup(func() { cancel(); must(t, <-ended) })
	return cluster.NewService(h.service, half)
}

// reached waits until the cluster's store is open.
func reached(t testing.TB, joined *cluster.Service) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); joined.Partial() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal(joined.Partial())
		}
	}
}

// TestEventsFromMarks: a caller that reads events from mark to mark gets each one once, also from two stores. A
// stream can continue from a mark, too.
func TestEventsFromMarks(t *testing.T) {
	h := start(t, nil)
	var list api.EventList
	asked := func(query string) string {
		text, err := list.Mark.MarshalText()
		must(t, err)
		return "GET /v1/events?" + query + "&after=" + url.QueryEscape(string(text))
	}
	var got []string
	tells := func(events ...ipam.Event) {
		for _, e := range events {
			if e.Verb == ipam.NetworkCreated {
				got = append(got, e.Network)
			}
		}
	}
	holds := func(when string, want ...string) {
		t.Helper()
		slices.Sort(got) // the order between two stores varies
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", when, got)
		}
		got = nil
	}
	list = into[api.EventList](t, h.plays(t, "GET /v1/events -> 200"))
	follow := asked("follow=true")
	h.plays(t, `
		edit {"op": "network.create", "name": "own1"} -> 200
		edit {"op": "network.create", "name": "lan1", "space": "global"} -> 200
	`)
	list = into[api.EventList](t, h.plays(t, asked("last=10")+" -> 200 \"more\":false"))
	tells(list.Events...)
	holds("after the first mark", "lan1", "own1")
	h.plays(t, `
		edit {"op": "network.create", "name": "lan2", "space": "global"} -> 200
		edit {"op": "network.create", "name": "own2"} -> 200
	`)
	for list.More = true; list.More; { // one by one
		list = into[api.EventList](t, h.plays(t, asked("last=1")+" -> 200"))
		tells(list.Events...)
	}
	holds("after the second mark, one by one", "lan2", "own2")
	lines := h.stream(t, follow)
	for marked := false; len(got) < 4 || !marked; { // the last line of a batch has a mark
		one := outOfJSON[followedEvent](line(t, lines))
		tells(one.Event)
		marked = one.Mark != nil
	}
	holds("followed from the first mark", "lan1", "lan2", "own1", "own2")
}

// TestNeverReached: until the cluster's store has been reached, a lookup by name says "out of reach", not
// "missing".
func TestNeverReached(t *testing.T) {
	h := start(t, func(s *Server) {})
	h.server.cfg.Service = openJoined(t, h, func() store.Reach { return store.Reach{Err: store.ErrAway} },
		func(context.Context) (*service.Service, error) { return nil, store.ErrAway })
	h.plays(t, `
		edit {"op": "network.create", "name": "own"} -> 200 network.create
		GET /v1/networks -> 200 "own"
		GET /v1/spaces -> 200 "store":"host"
		GET /v1/networks/own -> 200 "own"
		GET /v1/status -> 200 "networks":1
		GET /v1/leases -> 200 []
		GET /v1/networks/lan -> 503 store_away
		GET /v1/networks?space=global -> 503 is not in this host's own store
		GET /v1/leases?space=global -> 503 store_away
		GET /v1/leases?subnet=10.77.0.0/24 -> 503 is not in this host's own store
		GET /v1/networks/lan/reservations -> 503 store_away
		GET /v1/subnets/$IPAMNEWIDST -> 503 store_away
		GET /v1/export -> 503 store_away
		GET /v1/hosts -> 503 store_away
		edit {"op": "network.create", "name": "lan", "space": "global"} -> 503 store_away
		edit {"op": "network.create", "name": "own", "space": "global"} -> 409 in_use
	`, "$IPAMNEWIDST", ipam.NewID().String())
}
