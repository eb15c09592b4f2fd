package docker

import (
	"errors"
	"slices"
	"testing"

	"berth/internal/ipam"
)

// newLAN is a planned network of the hosts h1 and h2; the view is of h1's engine. Each host has a Docker network
// and a container on it: web at .10 on h1, and one at .20 on h2. The gateway's lease is h2's.
func newLAN(t *testing.T) *scene {
	s := &scene{view: ipam.EngineView{Host: "h1", Taken: took}, networks: map[string]string{}, cluster: true}
	return s.steps(t, `
		plan lan global
		attach 1 10.77.0.0/16 space=global network=lan planned
		attach 2 10.77.0.0/16 space=global network=lan planned host=h2
		network 1 10.77.0.0/16 10.77.0.1 options={"network":"lan"}
		gateway 10.77.0.1 space=global network=lan host=h2
		run web 1 10.77.0.10 10
		lan 10.77.0.10 10 h1
		lan 10.77.0.20 20 h2
	`)
}

// inLAN adds a lease on the network.
func (s *scene) inLAN(address string, n int, host string) *ipam.LeaseInfo {
	l := s.lease(address, n, map[string]int{"h1": 1, "h2": 2}[host])
	l.Space, l.Network, l.Host = "global", "lan", host
	return l
}

// An engine sees only its own host's containers, so other hosts' leases are neither reported nor repaired.
func TestCompareInCluster(t *testing.T) {
	playScenes(t, func() *scene { return newLAN(t) }, `
		as it is to be:
		a container of this host that is gone:
			none containers
			-> unused_lease 10.77.0.10 in global surely
		a memory of another host:
			lan 10.77.0.30 30 h2 state=remembered released=@-1440h
		what another host holds of a subnet of its own:
			attach 3 10.78.0.0/16 space=global host=h2
		two Docker networks of another host:
			attach 3 10.77.0.0/16 space=global host=h2 planned
		a bridge's gateway of its own:
			lan 10.77.0.2 0 h1 kind=gateway mac=none
			set subnet gateway=10.77.0.2
		the gateway of another host's bridge:
			lan 10.77.0.3 0 h2 kind=gateway mac=none
			set subnet gateway=10.77.0.3
			-> wrong_gateway 10.77.0.3 in global

		# Engines derive the MAC from the IPv4 address, so it does not prove the holder.
		an address of another host, and the same MAC:
			run db 1 10.77.0.20 20
			-> doubled_address 10.77.0.20 in global
		the same, and whoever leases it now is called otherwise:
			alone
			run db 1 10.77.0.20 20
		the same in the space local:
			attach 5 10.8.0.0/24 host=before
			network 5 10.8.0.0/24 -
			attach 6 10.8.0.0/24
			run db 5 10.8.0.2 5
			lease 10.8.0.2 5 5 host=before

		# Headroom, and leases from it.
		headroom:
			lan 10.77.0.40 0 h1 kind=headroom mac=none
		headroom of another host:
			lan 10.77.0.41 0 h2 kind=headroom mac=none
		a container that has headroom:
			lan 10.77.0.40 0 h1 kind=headroom mac=none
			run db 1 10.77.0.40 40
		one that has another's:
			lan 10.77.0.41 0 h2 kind=headroom mac=none
			run db 1 10.77.0.41 41
			-> doubled_address 10.77.0.41 in global
		a container without any lease:
			run db 1 10.77.0.50 50
			-> uncovered_address 10.77.0.50 in global pool1 sure
		a Docker network that has no pool:
			later attachments
			none leases containers
			-> unknown_pool 10.77.0.0/16 in global

		a replaced address of which the owner runs elsewhere:
			reserve db 10.77.0.60 replaced space=global
			reserve db 10.77.0.20 space=global
		a replaced address of one that runs here:
			reserve web 10.77.0.60 replaced space=global
			reserve web 10.77.0.10 space=global
			-> superseded_reservation 10.77.0.60 in global sure

		# A swarm's manager leases for all nodes, and may be on any host.
		a task of another manager's:
			attach 7 10.0.9.0/24 space=global host=h2 swarm
			attach 8 10.0.9.0/24
			network 7 10.0.9.0/24 10.0.9.1 swarm
			run web.1 7 10.0.9.3 9
			lease 10.0.9.3 9 8
			lease 10.0.9.3 0 7 space=global mac=none host=h2 kind=static
	`, func(t *testing.T, s *scene, c *comparison) {
		for _, m := range c.matches {
			if at, known := c.rec.attachments[m.lease.Pool]; s.cluster && known && !at.Swarm && at.Host == "h2" {
				t.Errorf("%s is taken for the one who has %s of host h2", m.sight.who(), m.lease.Address)
			}
		}
	})
}

// If the cluster's store was never reached, its Docker networks are not judged. The host's own are.
func TestCompareWithoutCluster(t *testing.T) {
	s := newScene()
	s.view.Containers = nil
	lan := newLAN(t)
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

// If both stores have a network of the same name, the name does not decide the Docker network's space.
func TestNameOfTwoNetworks(t *testing.T) {
	s := newLAN(t)
	s.networks = map[string]string{"lan": ""}
	s.view.Containers = nil
	if got, want := brief(s.compare().found),
		[]string{"unused_lease 10.77.0.10 in global surely"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
