package admin

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/mem"
)

// clustered is a harness on a store that it shares with another host, beta.
type clustered struct {
	*harness
	beta  *service.Service
	store *mem.Store // the harness's handle
}

func startClustered(t *testing.T, edit func(*Server)) *clustered {
	t.Helper()
	c := &clustered{store: mem.New()}
	other := c.store.Join()
	alpha := join(t, c.store, "alpha")
	c.beta = join(t, other, "beta")
	c.harness = start(t, func(s *Server) {
		s.cfg.Service = alpha
		s.cfg.Cluster = func() api.ClusterStatus {
			reach := c.store.Reach()
			st := api.ClusterStatus{Endpoints: []string{"http://192.0.2.1:2379"}, Prefix: "berth/",
				ID: strings.Repeat("a1", 16), HostID: ipam.NewID(),
				Since: reach.Since, Fresh: aMoment, Age: 12.5, Waiting: 1, Oldest: aMoment, Commits: 1,
				Headroom: []ipam.HeadroomState{{Space: "global", Network: "lan",
					Subnet: netip.MustParsePrefix("10.77.0.0/24"), Wanted: 16, Claimed: 15, Used: 1}}}
			if reach.Err != nil {
				st.Away, st.NoSpace = reach.Err.Error(), errors.Is(reach.Err, store.ErrNoSpace)
			}
			return st
		}
		if edit != nil {
			edit(s)
		}
	})
	t.Cleanup(func() { must(t, other.Close()) })
	return c
}

// join opens a service of a host on a handle.
func join(t *testing.T, st *mem.Store, name string) *service.Service {
	t.Helper()
	s, err := service.Open(t.Context(), service.Config{Store: st, Host: name,
		Member: &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID(), Version: "v1", Mark: [4]byte{1, 2, 3, 4}}})
	must(t, err)
	st.Announce(name, nil)
	return s
}

// TestHostsAsDescribed plays the life of a host through every operation, with the refusals of each.
func TestHostsAsDescribed(t *testing.T) {
	c := startClustered(t, nil)
	_, err := c.beta.Edit(t.Context(), ipam.EditOptions{}, &ipam.CreateNetwork{Name: "lan", Space: ipam.GlobalSpace,
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.77.0.0/24"), Pool: true}}})
	must(t, err)
	pool, err := c.beta.RequestPool(t.Context(), ipam.PoolRequest{Network: "lan"})
	must(t, err)
	_, err = c.beta.RequestAddress(t.Context(), ipam.AddressRequest{Pool: pool.ID, MAC: ipam.MAC{2, 0, 0, 0, 0, 1}})
	must(t, err)
	c.plays(t, `
		GET /v1/hosts -> 200 "hosts":[{"name":"alpha"
		GET /v1/hosts?name=beta -> 400 invalid
		GET /v1/hosts/alpha -> 200 "self":true
		GET /v1/hosts/beta
			-> 200 "present":true,"self":false,"pools":1,"leases":1,"headroom":0,"first":["10.77.0.
		GET /v1/hosts/gamma -> 404 there is no host \"gamma\" in the cluster; the hosts are alpha, beta

		edit {"op": "host.drain", "name": "beta"} -> 200 "host.drain"
		GET /v1/hosts/beta -> 200 "state":"draining"
		try {"op": "host.drain", "name": "beta", "undo": true} -> 200 "host.drain"
		GET /v1/hosts/beta -> 200 "state":"draining"
		edit {"op": "host.drain", "name": "beta", "undo": true} -> 200 "host.drain"
		edit {"op": "host.drain", "name": "beta", "name": "beta"} -> 400 duplicate
		edit {"op": "host.drain", "name": "beta", "undone": true} -> 400 invalid
		edit {"op": "host.drain", "name": "gamma"} -> 404 not_found
		edit {"op": "host.admit", "name": "beta"} -> 409 in_use

		edit {"op": "host.remove", "name": "beta", "off": "maybe"} -> 400 invalid
		edit {"op": "host.remove", "name": "gamma"} -> 404 not_found
		edit {"op": "host.remove", "name": "beta", "off": true} -> 409 is not off
		try {"op": "host.remove", "name": "beta"} -> 200 "host.leave"
		# and no state
		GET /v1/hosts/beta -> 200 "slot":1,"joined"
		edit {"op": "host.remove", "name": "beta"} -> 200 "host.leave"
		GET /v1/hosts/beta -> 200 "state":"leaving"
	`)
	// beta's daemon does this when it hears of the removal.
	_, err = c.beta.Edit(t.Context(), ipam.EditOptions{}, &ipam.RemoveHost{Name: "beta", Off: true})
	must(t, err)
	c.plays(t, `
		GET /v1/hosts/beta -> 200 "state":"removed"
		GET /v1/hosts/beta -> 200 "pools":0,"leases":0
		edit {"op": "host.remove", "name": "beta", "off": true} -> 409 in_use
		try {"op": "host.admit", "name": "beta"} -> 200 "host.admit"
		edit {"op": "host.admit", "name": "beta"} -> 200 "host.admit"
		GET /v1/hosts/beta -> 200 "slot":1,"joined"
		edit {"op": "host.drain", "name": "beta"}, {"op": "host.drain", "name": "beta",
			"undo": true} -> 200 "host.drain"
		edit {"op": "host.admit", "name": "beta"} -> 409 in_use
	`)
}

// Each refusal of a host in its cluster is a problem with its own code. So is a store out of reach.
func TestHostsRefused(t *testing.T) {
	c := startClustered(t, nil)
	_, err := c.beta.Edit(t.Context(), ipam.EditOptions{}, &ipam.RemoveHost{Name: "alpha"})
	must(t, err)
	c.plays(t, `
		edit {"op": "host.remove", "name": "alpha", "off": true} -> 200
		edit {"op": "network.create", "name": "lan", "space": "global"} -> 409 host_refused
	`)
	c.store.Cut(errors.New("no route to host"))
	c.plays(t, `edit {"op": "network.create", "name": "lan", "space": "global"} -> 503 store_away`)
}

// A host's own store has no hosts, and the API says so.
func TestNoHosts(t *testing.T) {
	h := start(t, nil)
	for _, s := range steps(`
		GET /v1/hosts -> 409
		GET /v1/hosts/beta -> 409
		edit {"op": "host.remove", "name": "beta"} -> 409
		edit {"op": "host.drain", "name": "beta"} -> 409
		edit {"op": "host.admit", "name": "beta"} -> 409
	`) {
		s.has = "no_cluster && this Berth has a store of its own (--store bolt): it knows no other hosts"
		s.lacks = api.AwayHeader
		h.play(t, s)
	}
}

// While the shared store is out of reach, an answer says how old its data is, and the client passes that on.
func TestAge(t *testing.T) {
	var never atomic.Bool
	c := startClustered(t, func(s *Server) {
		known := s.cfg.Cluster
		s.cfg.Cluster = func() api.ClusterStatus {
			st := known()
			if never.Load() {
				st.Fresh, st.Age = time.Time{}, 0
			}
			return st
		}
	})
	var told []api.Away
	c.client.OnAway(func(a api.Away) { told = append(told, a) })
	read := func() {
		t.Helper()
		_, err := c.client.Networks(t.Context(), "")
		must(t, err)
	}
	read()
	if len(told) > 0 {
		t.Errorf("within reach: %v", told)
	}
	c.store.Cut(errors.New("no route to host"))
	since := c.store.Reach().Since.Truncate(time.Second)
	read()
	never.Store(true)
	read()
	if len(told) != 2 || !told[0].Since.Equal(since) || told[0].Age != 12*time.Second || told[1].Age >= 0 {
		t.Errorf("it tells %v, out of reach since %s", told, since)
	}
	_, err := c.client.Status(t.Context()) // which reports its age itself
	must(t, err)
	_, err = c.client.Version(t.Context())
	must(t, err)
	c.store.Heal()
	read()
	if len(told) != 2 {
		t.Errorf("it tells %v", told)
	}
}

// The status describes the shared store, and the hosts as far as they are known.
func TestClusterStatus(t *testing.T) {
	c := startClustered(t, nil)
	c.plays(t, `
		GET /v1/status
			-> 200 "others":["beta"] && "waiting":1,"oldest":"2026-01-02T03:04:05.000006Z" && "headroom":[{"space":"global"
	`)
	c.plays(t, `
		edit {"op": "host.drain", "name": "alpha"} -> 200
		GET /v1/status -> 200 "host_state":"draining","others":["beta"]
	`)
	c.store.Cut(errors.New("no route to host"))
	c.plays(t, `
		GET /v1/status -> 200 no route to host","since":" && "fresh":"2026-01-02T03:04:05.000006Z","age":12.5
	`)
}

// TestProbes: anybody may call the probes, on the socket and over the network, and learns nothing else.
func TestProbes(t *testing.T) {
	var ready atomic.Bool
	away := startClustered(t, nil)
	w := startTLS(t, func(s *Server) {
		s.cfg.Ready = func() error {
			if ready.Load() {
				return nil
			}
			return errors.New("secret")
		}
		s.cfg.Cluster = away.server.cfg.Cluster
	})
	stranger := w.over(t, who{})
	ask := func(script string) {
		t.Helper()
		for _, s := range steps(script) {
			says := stranger.play(t, s).text
			if strings.Contains(says, "secret") || strings.Contains(says, "no route") {
				t.Errorf("%s says %s", s.target, says)
			}
		}
	}
	ask(`
		GET /healthz -> 200 ok
		HEAD /healthz -> 200
		POST /healthz -> 405
		GET /readyz -> 503 not ready: the addresses in use are not known yet
	`)
	ready.Store(true)
	ask(`GET /readyz -> 200 ready`)
	away.store.Cut(errors.New("no route to host"))
	ask(`
		GET /readyz -> 503 not ready: the shared store has been out of reach since 20
		GET /healthz -> 200 ok
	`)
	away.store.Heal()
	ask(`GET /readyz -> 200 ready`)
	away.store.Cut(fmt.Errorf("%w: secret", store.ErrNoSpace))
	ask(`GET /readyz -> 503 not ready: the shared store has had no space left since 20`)
	away.store.Heal()
	ask(`
		GET /readyz -> 200 ready
		GET /readyz/ -> 401
		GET /v1/version -> 401
	`)
}
