package admin

import (
	"context"
	"encoding/json"
	"iter"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/mem"
)

// overTwo says that the houses of this process are over two stores: the space local is the host's own, in its bolt
// file, and all others are the cluster's.
var overTwo = os.Getenv("BERTH_ADMIN_OVER") == "joined"

// notOverTwo are the tests of what a Service over two stores refuses or answers in another way.
var notOverTwo = []string{
	"TestNoHosts", // there are hosts
	"TestGoldenImport",
	"TestImportAsDescribed",   // the plan is of both stores, which is refused
	"TestEventsChosen",        // each store has events of its beginning
	"TestFollowChosen",        // its edits are of both stores
	"TestFollowMissesNothing", // TestFollowOfBoth
	"TestBackup",              // it is the host's own store's
	"TestPlanTooLarge",        // what is refused for its size is refused before anybody's store is asked
	"TestPlanOfTooMany",
	"TestEdgeNews", // its network is the host's own, and what the edge maps is the cluster's
	"TestLargeView",
	"TestLargeViewBreaksOff",
}

// askTwo are tests that call, together with those of this file, all of such a Service that any test of the room calls.
var askTwo = []string{"TestAccountTokenCreated", "TestAnswersAsDescribed", "TestBodyBound", "TestClientImport",
	"TestElasticAsDescribed", "TestFollowedEventsAsDescribed", "TestIfMatch", "TestIfMatchOfDockersNetwork",
	"TestImportCutOff", "TestOwnersAsDescribed", "TestPage", "TestPages", "TestPagesOverChanges", "TestPlanAsDescribed",
	"TestReadOnlyChangesNothing", "TestReleaseOwnerOnce", "TestWhoAsDescribed", "TestWitnessAsDescribed"}

// TestSuiteOverSharedStore runs all tests of the room again where what is shown is in two stores; under -short those of
// askTwo.
func TestSuiteOverSharedStore(t *testing.T) {
	if overTwo {
		return // this is it
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

// engine is what an engine asks for.
type engine interface {
	RequestPool(context.Context, ipam.PoolRequest) (ipam.PoolGrant, error)
	RequestAddress(context.Context, ipam.AddressRequest) (netip.Prefix, error)
	ReleaseAddress(ctx context.Context, pool ipam.ID, addr netip.Addr) error
}

// newJoined puts a house's service together with a cluster of this one host.
func newJoined(t testing.TB, h *house) *cluster.Service {
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

// openJoined puts a house's service together with a half of a cluster that runs until the end of the test.
func openJoined(t testing.TB, h *house, reach func() store.Reach,
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

// reached waits until the cluster's store was opened.
func reached(t testing.TB, joined *cluster.Service) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); joined.Partial() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal(joined.Partial())
		}
	}
}

// TestFollowOfBoth: a follower gets the events of both stores, each once, though they come in while it begins.
func TestFollowOfBoth(t *testing.T) {
	h := start(t, func(s *Server) {})
	joined := newJoined(t, h)
	h.server.cfg.Service = joined
	h.furnish(t)
	const callers, each = 4, 25
	var wg sync.WaitGroup
	defer wg.Wait()
	for caller := range byte(callers) {
		space := []string{ipam.LocalSpace, ipam.GlobalSpace}[caller%2]
		pool, err := joined.RequestPool(t.Context(),
			ipam.PoolRequest{Space: space, CIDR: netip.MustParsePrefix("10.9.0.0/16")})
		must(t, err)
		wg.Go(func() {
			for i := range byte(each) {
				if _, err := joined.RequestAddress(t.Context(),
					ipam.AddressRequest{Pool: pool.ID, MAC: ipam.MAC{2, 0, 0, 0, caller, i}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	type sentEvent struct { // ids are one store's
		space string
		id    uint64
	}
	seen := map[sentEvent]int{}
	found := 0
	for e, err := range h.client.Follow(t.Context(), ipam.EventFilter{Last: api.MaxEvents}) {
		must(t, err)
		seen[sentEvent{e.Space, e.ID}]++
		if e.Subnet == netip.MustParsePrefix("10.9.0.0/16") && e.Verb == ipam.LeaseTaken {
			found++
		}
		if found == callers*each {
			break
		}
	}
	list, err := h.client.Events(t.Context(), ipam.EventFilter{Last: api.MaxEvents})
	must(t, err)
	if len(seen) != len(list.Events) {
		t.Errorf("%d events were followed, %d are stored", len(seen), len(list.Events))
	}
	for e, n := range seen {
		if n != 1 {
			t.Errorf("the event %d of %s came %d times", e.id, e.space, n)
		}
	}
}

// TestEventsAfterOfBoth: whoever asks for events from mark to mark is told each one of both stores once, however their
// ids lie: the host's own store goes on while the cluster's events are those of a host whose clock is an hour behind. A
// stream goes on from a mark, too.
func TestEventsAfterOfBoth(t *testing.T) {
	h := start(t, func(s *Server) {})
	first := mem.New()
	late := func() time.Time { return time.Now().Add(-time.Hour) }
	member := func(name string, st *mem.Store, now func() time.Time) *service.Service {
		s, err := service.Open(t.Context(), service.Config{Store: st, Host: name, Now: now, Member: newMember()})
		must(t, err)
		return s
	}
	joined := openJoined(t, h, first.Reach,
		func(context.Context) (*service.Service, error) { return member("alpha", first, late), nil })
	reached(t, joined)
	h.server.cfg.Service = joined
	beta := member("beta", first.Join(), late)
	create := func(s interface {
		Edit(context.Context, ipam.EditOptions, ...ipam.Edit) (ipam.Outcome, error)
	}, space string, name string) {
		t.Helper()
		_, err := s.Edit(t.Context(), ipam.EditOptions{}, &ipam.CreateNetwork{Name: name, Space: space})
		must(t, err)
	}
	names := func(events []ipam.Event) (all []string) {
		for _, e := range events {
			if e.Verb == ipam.NetworkCreated {
				all = append(all, e.Network)
			}
		}
		slices.Sort(all)
		return all
	}
	list, err := h.client.Events(t.Context(), ipam.EventFilter{Last: 3})
	must(t, err)
	begun := list.Mark
	create(joined, ipam.LocalSpace, "own1")
	create(beta, ipam.GlobalSpace, "lan1")
	list, err = h.client.EventsAfter(t.Context(), begun, ipam.EventFilter{Last: 10})
	must(t, err)
	if got := names(list.Events); !slices.Equal(got, []string{"lan1", "own1"}) || list.More {
		t.Errorf("after the first mark %q, %t", got, list.More)
	}
	create(beta, ipam.GlobalSpace, "lan2") // with a lower id than own1
	create(joined, ipam.LocalSpace, "own2")
	create(joined, ipam.GlobalSpace, "lan3")
	var got []string
	for list.More = true; list.More; { // one by one
		list, err = h.client.EventsAfter(t.Context(), list.Mark, ipam.EventFilter{Last: 1})
		must(t, err)
		got = append(got, names(list.Events)...)
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"lan2", "lan3", "own2"}) {
		t.Errorf("after the second mark, one by one, %q", got)
	}
	got = nil
	for line := range readFollowed(t, h, begun) {
		if got = append(got, names([]ipam.Event{line.Event})...); len(got) == 5 {
			if line.Mark == nil {
				continue // the last line of what came together has one
			}
			break
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"lan1", "lan2", "lan3", "own1", "own2"}) {
		t.Errorf("followed from the first mark %q", got)
	}
	other, err := beta.LastEvent(t.Context())
	must(t, err)
	if _, err := h.client.EventsAfter(t.Context(), other,
		ipam.EventFilter{Last: 1}); problemCode(err) != api.CodeInvalid ||
		!strings.Contains(err.Error(), "another host") {
		t.Errorf("of another host: %v", err)
	}
}

// readFollowed yields the lines of a stream from a mark on.
func readFollowed(t *testing.T, h *house, mark ipam.EventMark) iter.Seq[followedEvent] {
	t.Helper()
	text, err := mark.MarshalText()
	must(t, err)
	res, err := h.open(t.Context(), "GET", "/v1/events?follow=true&after="+url.QueryEscape(string(text)), nil)
	must(t, err)
	return func(yield func(followedEvent) bool) {
		defer res.Body.Close()
		for d := json.NewDecoder(res.Body); ; {
			var line followedEvent
			must(t, d.Decode(&line))
			if !yield(line) {
				return
			}
		}
	}
}

// TestNeverReached: as long as the cluster's store was not reached what is asked for by name is said to be out of
// reach, and not to be missing.
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
		GET /v1/networks?space=global -> 503 none of this host's own
		GET /v1/leases?space=global -> 503 store_away
		GET /v1/leases?subnet=10.77.0.0/24 -> 503 none of this host's own
		GET /v1/networks/lan/reservations -> 503 store_away
		GET /v1/subnets/$IPAMNEWIDST -> 503 store_away
		GET /v1/export -> 503 store_away
		GET /v1/hosts -> 503 store_away
		edit {"op": "network.create", "name": "lan", "space": "global"} -> 503 store_away
		edit {"op": "network.create", "name": "own", "space": "global"} -> 409 in_use
	`, "$IPAMNEWIDST", ipam.NewID().String())
}
