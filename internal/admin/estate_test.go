package admin

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/store"
	"berth/store/mem"
)

// overEstate says that the houses of this process are over an Estate: the space local is the host's own, in its bolt file, and all others
// are the cluster's.
var overEstate = os.Getenv("BERTH_ADMIN_OVER") == "estate"

// TestSuiteOverEstate runs all tests of the room again where what is shown is in two stores.
func TestSuiteOverEstate(t *testing.T) {
	if overEstate {
		return // this is it
	}
	suite := exec.Command(os.Args[0], "-test.count=1", "-test.timeout=8m", "-test.skip=^("+strings.Join([]string{
		"TestNoHosts",             // there are hosts
		"TestImportAsDescribed",   // the plan is of both stores, which is refused
		"TestEventsChosen",        // each store has events of its beginning
		"TestFollowChosen",        // its edits are of both stores
		"TestFollowMissesNothing", // TestFollowOfBoth
		"TestBackup",              // it is the host's own store's
	}, "|")+")$")
	suite.Env = append(os.Environ(), "BERTH_ADMIN_OVER=estate")
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

// newEstate puts a house's service together with a cluster of this one host.
func newEstate(t testing.TB, h *house) *ipam.Estate {
	t.Helper()
	shared := mem.New()
	half, err := ipam.OpenShared(t.Context(), ipam.SharedConfig{Own: h.store, Mark: [4]byte{1, 2, 3, 4}, Host: "alpha", Reach: shared.Reach,
		Open: func(ctx context.Context) (*ipam.Service, error) {
			if r := shared.Reach(); r.Err != nil {
				return nil, r.Err
			}
			return ipam.Open(ctx, ipam.Config{Store: shared, Host: "alpha", Member: &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID(), Mark: [4]byte{1, 2, 3, 4}}})
		}})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- half.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
		must(t, shared.Close())
	})
	estate := ipam.NewEstate(h.service, half)
	for late := time.Now().Add(30 * time.Second); estate.Partial() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatal(estate.Partial())
		}
	}
	return estate
}

// TestFollowOfBoth: a follower gets the events of both stores, each once, though they come in while it begins.
func TestFollowOfBoth(t *testing.T) {
	h := start(t, func(s *Server) {})
	estate := newEstate(t, h)
	h.server.cfg.Service = estate
	h.furnish(t)
	const callers, each = 4, 25
	var wg sync.WaitGroup
	defer wg.Wait()
	for caller := range byte(callers) {
		space := []string{ipam.LocalSpace, ipam.GlobalSpace}[caller%2]
		pool, err := estate.RequestPool(t.Context(), ipam.PoolRequest{Space: space, CIDR: netip.MustParsePrefix("10.9.0.0/16")})
		must(t, err)
		wg.Go(func() {
			for i := range byte(each) {
				if _, err := estate.RequestAddress(t.Context(), ipam.AddressRequest{Pool: pool.ID, MAC: ipam.MAC{2, 0, 0, 0, caller, i}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	seen := map[sentEvent]int{}
	found := 0
	for e, err := range h.client.Follow(t.Context(), ipam.EventFilter{Last: MaxEvents}) {
		must(t, err)
		seen[sentEvent{e.Space, e.ID}]++
		if e.Subnet == netip.MustParsePrefix("10.9.0.0/16") && e.Verb == ipam.LeaseTaken {
			found++
		}
		if found == callers*each {
			break
		}
	}
	list, err := h.client.Events(t.Context(), ipam.EventFilter{Last: MaxEvents})
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

// TestNeverReached: as long as the cluster's store was not reached what is asked for by name is said to be out of reach, and not to be
// missing.
func TestNeverReached(t *testing.T) {
	h := start(t, func(s *Server) {})
	half, err := ipam.OpenShared(t.Context(), ipam.SharedConfig{Own: h.store, Host: "alpha", Reach: func() store.Reach { return store.Reach{Err: store.ErrAway} }})
	must(t, err)
	h.server.cfg.Service = ipam.NewEstate(h.service, half)
	_, router := description(t)
	for _, s := range []step{
		{"POST", "/v1/networks", `{"name": "own"}`, 200, "network.create", nil},
		{"GET", "/v1/networks", "", 200, `"own"`, nil},
		{"GET", "/v1/spaces", "", 200, `"store":"host"`, nil},
		{"GET", "/v1/networks/own", "", 200, `"own"`, nil},
		{"GET", "/v1/status", "", 200, `"networks":1`, nil},
		{"GET", "/v1/leases", "", 200, `[]`, nil},
		{"GET", "/v1/networks/lan", "", 503, CodeAway, nil},
		{"GET", "/v1/networks?space=global", "", 503, "none of this host's own", nil},
		{"GET", "/v1/leases?space=global", "", 503, CodeAway, nil},
		{"GET", "/v1/leases?subnet=10.77.0.0/24", "", 503, "none of this host's own", nil},
		{"GET", "/v1/networks/lan/reservations", "", 503, CodeAway, nil},
		{"GET", "/v1/subnets/" + ipam.NewID().String(), "", 503, CodeAway, nil},
		{"GET", "/v1/export", "", 503, CodeAway, nil},
		{"GET", "/v1/hosts", "", 503, CodeAway, nil},
		{"POST", "/v1/networks", `{"name": "lan", "space": "global"}`, 503, CodeAway, nil},
		{"POST", "/v1/networks", `{"name": "own", "space": "global"}`, 409, CodeInUse, nil},
	} {
		h.play(t, router, s)
	}
}
