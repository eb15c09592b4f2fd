package docker

import (
	"errors"
	"slices"
	"testing"

	"berth/internal/ipam"
)

// newLAN is a planned network of the hosts h1, whose engine is seen, and h2. Each has a Docker network and a container
// on it: web at .10 on h1, and one at .20 on h2. The lease of the gateway is h2's.
func newLAN() *scene {
	s := &scene{view: ipam.EngineView{Host: "h1", Taken: took}, networks: map[string]string{"lan": "global"},
		cluster: true}
	for n, host := range map[int]string{1: "h1", 2: "h2"} {
		at := s.attach(n, "10.77.0.0/16")
		at.Space, at.Host, at.Network, at.Planned = "global", host, "lan", true
	}
	s.network(1, "10.77.0.0/16", "10.77.0.1").Options = map[string]string{"network": "lan"}
	s.gateway("10.77.0.1").Host = "h2"
	s.run("web", 1, "10.77.0.10", 10)
	s.lease("10.77.0.10", 10, 1)
	s.lease("10.77.0.20", 20, 2).Host = "h2"
	for i := range s.leases {
		s.leases[i].Space, s.leases[i].Network = "global", "lan"
	}
	slices.SortFunc(s.attachments, func(a, b ipam.AttachmentInfo) int { return int(a.ID[0]) - int(b.ID[0]) })
	return s
}

// inLAN adds a lease on the network.
func (s *scene) inLAN(address string, n int, host string) *ipam.LeaseInfo {
	l := s.lease(address, n, map[string]int{"h1": 1, "h2": 2}[host])
	l.Space, l.Network, l.Host = "global", "lan", host
	return l
}

// An engine sees only its own host's containers, so other hosts' leases are neither reported nor repaired.
func TestCompareInCluster(t *testing.T) {
	for name, row := range map[string]struct {
		change func(s *scene)
		want   []string
	}{
		"as it is to be": {func(*scene) {}, nil},
		"a container of this host that is gone": {func(s *scene) { s.view.Containers = nil },
			[]string{"unused_lease 10.77.0.10 in global surely"}},
		"a memory of another host": {func(s *scene) {
			l := s.inLAN("10.77.0.30", 30, "h2")
			l.State, l.Released = "remembered", now.Add(-2*longGone)
		}, nil},
		"what another host holds of a subnet of its own": {func(s *scene) {
			at := s.attach(3, "10.78.0.0/16")
			at.Space, at.Host = "global", "h2"
		}, nil},
		"two Docker networks of another host": {func(s *scene) {
			at := s.attach(3, "10.77.0.0/16")
			at.Space, at.Host, at.Planned = "global", "h2", true
		}, nil},
		"a bridge's gateway of its own": {func(s *scene) {
			l := s.inLAN("10.77.0.2", 0, "h1")
			l.Kind, l.MAC = ipam.Gateway, ipam.MAC{}
			s.view.Networks[0].Subnets[0].Gateway = addr("10.77.0.2")
		}, nil},
		"the gateway of another host's bridge": {func(s *scene) {
			l := s.inLAN("10.77.0.3", 0, "h2")
			l.Kind, l.MAC = ipam.Gateway, ipam.MAC{}
			s.view.Networks[0].Subnets[0].Gateway = addr("10.77.0.3")
		}, []string{"wrong_gateway 10.77.0.3 in global"}},

		// Engines derive the MAC from the IPv4 address, so it does not prove the holder.
		"an address of another host, and the same MAC": {func(s *scene) { s.run("db", 1, "10.77.0.20", 20) },
			[]string{"doubled_address 10.77.0.20 in global"}},
		"the same, and whoever leases it now is called otherwise": {func(s *scene) {
			s.cluster = false // one store, whose host was renamed
			s.run("db", 1, "10.77.0.20", 20)
		}, nil},
		"the same in the space local": {func(s *scene) {
			s.attach(5, "10.8.0.0/24").Host = "before"
			s.network(5, "10.8.0.0/24", "")
			s.attach(6, "10.8.0.0/24")
			s.run("db", 5, "10.8.0.2", 5)
			s.lease("10.8.0.2", 5, 5).Host = "before"
		}, nil},

		// Headroom, and leases from it.
		"headroom":                 {func(s *scene) { s.headroom("10.77.0.40", "h1") }, nil},
		"headroom of another host": {func(s *scene) { s.headroom("10.77.0.41", "h2") }, nil},
		"a container that has headroom": {func(s *scene) {
			s.headroom("10.77.0.40", "h1")
			s.run("db", 1,
				"10.77.0.40", 40)
		}, nil},
		"one that has another's": {func(s *scene) {
			s.headroom("10.77.0.41", "h2")
			s.run("db", 1,
				"10.77.0.41", 41)
		}, []string{"doubled_address 10.77.0.41 in global"}},
		"a container without any lease": {func(s *scene) { s.run("db", 1, "10.77.0.50", 50) },
			[]string{"uncovered_address 10.77.0.50 in global pool1 sure"}},
		"a Docker network that has no pool": {func(s *scene) {
			s.attachments, s.leases = s.attachments[1:],
				nil
			s.view.Containers = nil
		}, []string{"unknown_pool 10.77.0.0/16 in global"}},

		"a replaced address of which the owner runs elsewhere": {func(s *scene) {
			s.reserve("db", "10.77.0.60", true).Space = "global"
			s.reserve("db", "10.77.0.20", false).Space = "global"
		}, nil},
		"a replaced address of one that runs here": {func(s *scene) {
			s.reserve("web", "10.77.0.60", true).Space = "global"
			s.reserve("web", "10.77.0.10", false).Space = "global"
		}, []string{"superseded_reservation 10.77.0.60 in global sure"}},

		// A swarm's manager leases for all nodes, and may be on any host.
		"a task of another manager's": {func(s *scene) {
			at := s.attach(7, "10.0.9.0/24")
			at.Space, at.Host, at.Swarm = "global", "h2", true
			s.attach(8, "10.0.9.0/24")
			n := s.network(7, "10.0.9.0/24", "10.0.9.1")
			n.Swarm = true
			s.run("web.1", 7, "10.0.9.3", 9)
			s.lease("10.0.9.3", 9, 8)
			l := s.lease("10.0.9.3", 0, 7)
			l.Space, l.MAC, l.Host, l.Kind = "global", ipam.MAC{}, "h2", ipam.Static
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLAN()
			row.change(s)
			c := s.compare()
			if got := brief(c.found); !slices.Equal(got, append([]string{}, row.want...)) {
				t.Errorf("found %q, want %q", got, row.want)
			}
			for _, m := range c.matches {
				if at, known := c.rec.attachments[m.lease.Pool]; s.cluster && known && !at.Swarm && at.Host == "h2" {
					t.Errorf("%s is taken for the one who has %s of host h2", m.sight.who(), m.lease.Address)
				}
			}
		})
	}
}

func (s *scene) headroom(address, host string) {
	l := s.inLAN(address, 0, host)
	l.Kind, l.MAC = ipam.Headroom, ipam.MAC{}
}

// If the cluster's store was not reached since the start, its Docker networks are not judged. The host's own are.
func TestCompareWithoutCluster(t *testing.T) {
	s := newScene()
	s.view.Containers = nil
	lan := newLAN()
	lan.view.Networks[0].ID = "n2"
	lan.view.Containers[0].Endpoints[0].Network = "n2"
	s.view.Networks, s.view.Containers = append(s.view.Networks, lan.view.Networks...), lan.view.Containers
	s.cluster, s.partial = true, errors.New("no etcd")
	if got, want := brief(s.compare().found), []string{"unused_lease 10.8.0.2 surely"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if len(s.view.Networks) != 2 {
		t.Error("the view was changed")
	}
}

// If both stores have a network of a name, the name does not give the Docker network's space.
func TestNameOfTwoNetworks(t *testing.T) {
	s := newLAN()
	s.networks = map[string]string{"lan": ""}
	s.view.Containers = nil
	if got, want := brief(s.compare().found),
		[]string{"unused_lease 10.77.0.10 in global surely"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
