package docker

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

func TestCompare(t *testing.T) {
	swarm := func(s *scene) { // a swarm's network: the attachments of the manager and the node
		*s = scene{view: ipam.EngineView{Host: "h1", Taken: took}, networks: map[string]string{}}
		s.network(1, "10.0.9.0/24", "10.0.9.1").Swarm = true
		global := s.attach(1, "10.0.9.0/24")
		global.Space, global.Swarm, global.Host = "global", true, "manager"
		s.attach(2, "10.0.9.0/24")
		s.run("web.1.x", 1, "10.0.9.3", 3)
		s.lease("10.0.9.3", 3, 2)
		l := s.lease("10.0.9.3", 0, 1)
		l.Space, l.MAC, l.Host, l.Kind = "global", ipam.MAC{}, "manager", ipam.Static
	}
	lacking := map[ipam.FindingKind]bool{} // kinds that no row produces
	for _, kind := range kinds {
		lacking[kind] = true
	}
	for name, row := range map[string]struct {
		change func(t *testing.T, s *scene)
		want   []string
	}{
		"as it is to be": {},

		// Elastic addresses, and the engine's firewall.
		"its firewall drops what comes in": {func(_ *testing.T, s *scene) {
			s.nftables()
		}, []string{"firewall_in_way 10.8.0.0/24"}},
		"its firewall is iptables": {func(_ *testing.T, s *scene) {
			s.nftables()
			s.view.Firewall = "iptables"
		}, nil},
		"its firewall drops, and the network is open": {func(_ *testing.T, s *scene) {
			s.nftables()
			s.view.Networks[0].Open4 = true
		}, nil},
		"its firewall drops, and the network is open to the other family": {func(_ *testing.T, s *scene) {
			s.nftables()
			s.view.Networks[0].Open6 = true
		}, []string{"firewall_in_way 10.8.0.0/24"}},
		"its firewall drops, and no elastic address is mapped there": {func(_ *testing.T, s *scene) {
			s.nftables()
			s.elastic = nil
		}, nil},
		"it publishes ports beside an elastic address": {func(_ *testing.T, s *scene) { s.maps("8080/tcp", "53/udp") },
			[]string{"published_elastic 10.8.0.2"}},
		"it has an elastic address, and publishes nothing": {func(_ *testing.T, s *scene) { s.maps() }, nil},
		"another guest has the elastic address": {func(_ *testing.T, s *scene) {
			s.maps("8080/tcp")
			s.mapped[0].Guest = addr("10.8.0.3")
		}, nil},
		"its guest's address is another one in another space": {func(_ *testing.T, s *scene) {
			s.maps("8080/tcp")
			s.mapped[0].Space = "lab"
		}, nil},
		"an owner runs elsewhere than at what is reserved for it": {func(_ *testing.T, s *scene) {
			s.reserve("web", "10.8.0.3", false)
		}, []string{"owner_elsewhere 10.8.0.2 pool1"}},
		"no system address is free": {func(_ *testing.T, s *scene) { s.lacks() },
			[]string{"no_system_address 10.8.0.2"}},
		"it has no system address, because it publishes ports": {func(_ *testing.T, s *scene) { s.lacks("8080/tcp") },
			[]string{"published_elastic 10.8.0.2"}},

		// Leases from a DHCP server (LN-15).
		"a lease that its DHCP server gave": {func(_ *testing.T, s *scene) {
			s.leases[1].DHCP = &ipam.DHCPInfo{
				State: ipam.LANBound}
		}, nil},
		"a lease that its DHCP server took back": {func(_ *testing.T, s *scene) {
			s.leases[1].DHCP = &ipam.DHCPInfo{
				State: ipam.LANLost}
		}, []string{"lost_lease 10.8.0.2 pool1"}},
		"a lease that its DHCP server gave to two": {func(_ *testing.T, s *scene) {
			s.leases[1].DHCP = &ipam.DHCPInfo{
				State: ipam.LANConflict}
		}, []string{"conflicting_lease 10.8.0.2 pool1"}},
		"a lease that its DHCP server does not confirm": {func(_ *testing.T, s *scene) {
			s.leases[1].DHCP = &ipam.DHCPInfo{State: ipam.LANUnconfirmed}
		}, []string{"unconfirmed_lease 10.8.0.2 pool1"}},

		// Unused leases.
		"a container that is gone": {func(_ *testing.T, s *scene) { s.view.Containers = nil },
			[]string{"unused_lease 10.8.0.2 surely"}},
		"of another host":          {func(_ *testing.T, s *scene) { s.lease("10.8.0.7", 7, 1).Host = "h2" }, nil},
		"younger than the view":    {func(_ *testing.T, s *scene) { s.lease("10.8.0.7", 7, 1).Since = now }, nil},
		"its attachment is ending": {func(_ *testing.T, s *scene) { s.lease("10.8.0.7", 7, 9) }, nil},
		"auxiliary": {func(_ *testing.T, s *scene) {
			l := s.lease("10.8.0.7", 0, 1)
			l.Kind, l.MAC = ipam.Auxiliary, ipam.MAC{}
			s.view.Networks[0].Subnets[0].Aux = map[string]netip.Addr{"r": addr("10.8.0.7")}
		}, nil},
		"auxiliary, asked for late": {func(_ *testing.T, s *scene) {
			l := s.lease("10.8.0.7", 0, 1)
			l.Kind, l.MAC = ipam.Static, ipam.MAC{}
			s.view.Networks[0].Subnets[0].Aux = map[string]netip.Addr{"r": addr("10.8.0.7")}
		}, nil},
		"taken for auxiliary, and no network keeps it": {func(_ *testing.T, s *scene) {
			l := s.lease("10.8.0.7", 0, 1)
			l.Kind, l.MAC = ipam.Auxiliary, ipam.MAC{}
		}, []string{"unused_lease 10.8.0.7 surely"}},
		"external": {func(_ *testing.T, s *scene) {
			l := s.lease("10.8.0.7", 0, 0)
			l.Kind, l.MAC, l.Pool = ipam.External, ipam.MAC{}, ipam.ID{}
		}, nil},
		"a container that has stopped, with a lease": {func(_ *testing.T, s *scene) {
			s.view.Containers[0].State, s.view.Containers[0].Endpoints[0] = "exited",
				ipam.EngineEndpoint{Network: "n1", Wanted: addrs("10.8.0.2")}
		}, []string{"unused_lease 10.8.0.2 surely"}},
		"an endpoint without a container uses it": {func(_ *testing.T, s *scene) {
			s.view.Containers[0].ID,
				s.view.Containers[0].Name = "", "lb"
		}, nil},
		"the same address in another space uses it not": {func(_ *testing.T, s *scene) {
			s.attach(5, "10.8.0.0/24").Space = "lab"
			s.network(5, "10.8.0.0/24", "10.8.0.1").Options = map[string]string{"space": "lab"}
			s.run("lab", 5, "10.8.0.9", 9)
			l := s.lease("10.8.0.9", 9, 5)
			l.Space = "lab"
			s.lease("10.8.0.9", 9, 1)
		}, []string{"unused_lease 10.8.0.9 surely"}},

		// Addresses without a lease.
		"a container without a lease": {func(_ *testing.T, s *scene) { s.run("db", 1, "10.8.0.3", 3) },
			[]string{"uncovered_address 10.8.0.3 pool1 sure"}},
		"a MAC that is not known (ipvlan)": {func(_ *testing.T, s *scene) {
			s.view.Containers[0].Endpoints[0].MAC = ipam.MAC{}
		}, nil},
		"a lease without a MAC": {func(_ *testing.T, s *scene) { s.leases[1].MAC = ipam.MAC{} }, nil},
		"only a memory": {func(_ *testing.T, s *scene) {
			s.run("db", 1, "10.8.0.3", 3)
			s.memory("10.8.0.3", 3, old)
		}, []string{"uncovered_address 10.8.0.3 pool1 sure"}},
		"two attachments": {func(_ *testing.T, s *scene) {
			s.attach(2, "10.8.0.0/24")
			s.network(2, "10.8.0.0/24", "")
			s.run("db", 1, "10.8.0.3", 3)
		}, []string{"uncovered_address 10.8.0.3"}},
		"two attachments, of which one has the range": {func(t *testing.T, s *scene) {
			s.attachments[0].Range = rangeText(t, "10.8.0.0-10.8.0.127")
			s.view.Networks[0].Subnets[0].Range = prefix("10.8.0.0/25")
			s.attach(2, "10.8.0.0/24").Range = rangeText(t, "10.8.0.128-10.8.0.255")
			s.network(2, "10.8.0.0/24", "").Subnets[0].Range = prefix("10.8.0.128/25")
			s.run("db", 2, "10.8.0.200", 3)
		}, []string{"uncovered_address 10.8.0.200 pool2 sure"}},
		"in no subnet of its network": {func(_ *testing.T, s *scene) { s.run("db", 1, "10.9.0.3", 3) },
			[]string{"uncovered_address 10.9.0.3"}},
		"an endpoint with neither container nor MAC": {func(_ *testing.T, s *scene) {
			c := s.run("lb", 1, "10.8.0.3", 3)
			c.ID, c.Endpoints[0].MAC = "", ipam.MAC{}
		}, []string{"uncovered_address 10.8.0.3"}},

		// One address of two users.
		"leased to another MAC, who is being started": {func(_ *testing.T, s *scene) {
			s.leases[1].MAC, s.leases[1].Since = macN(9), took.Add(-59*time.Second)
		}, []string{"doubled_address 10.8.0.2"}},
		"leased to another MAC, by what is no container's endpoint": {func(_ *testing.T, s *scene) {
			s.leases[1].MAC, s.view.Containers[0].ID = macN(9), ""
		}, []string{"doubled_address 10.8.0.2"}},
		"leased to another MAC, and it is not known through what": {func(_ *testing.T, s *scene) {
			s.leases[1].MAC = macN(9)
			s.attach(2, "10.8.0.0/24")
			s.network(2, "10.8.0.0/24", "")
		}, []string{"doubled_address 10.8.0.2"}},
		"leased to another MAC, and two have it": {func(_ *testing.T, s *scene) {
			s.leases[1].MAC = macN(9)
			s.run("db", 1, "10.8.0.2", 2)
		}, []string{"doubled_address 10.8.0.2"}},

		// One address of one user, but the lease names another.
		"leased to another MAC, who is gone": {func(_ *testing.T, s *scene) { s.leases[1].MAC = macN(9) },
			[]string{"outdated_lease 10.8.0.2 pool1 sure"}},
		"leased to another MAC, who runs with another address": {func(_ *testing.T, s *scene) {
			s.leases[1].MAC = macN(9)
			s.run("db", 1, "10.8.0.3", 9)
			s.lease("10.8.0.3", 9, 1)
		}, []string{"outdated_lease 10.8.0.2 pool1 sure"}},
		"leased to another MAC on another host": {func(_ *testing.T, s *scene) {
			s.leases[1].MAC, s.leases[1].Host = macN(9), "h2"
		}, []string{"doubled_address 10.8.0.2"}},
		"two endpoints": {func(_ *testing.T, s *scene) {
			s.attach(2, "10.8.0.0/24")
			s.network(2, "10.8.0.0/24", "")
			s.run("db", 2, "10.8.0.2", 2)
		}, []string{"doubled_address 10.8.0.2"}},
		"two endpoints, and no lease": {func(_ *testing.T, s *scene) {
			s.run("db", 1, "10.8.0.2", 2)
			s.leases = s.leases[:1]
		}, []string{"doubled_address 10.8.0.2"}},
		"a container on the gateway": {func(_ *testing.T, s *scene) { s.run("db", 1, "10.8.0.1", 3) },
			[]string{"doubled_address 10.8.0.1"}},
		"a container on an address that was taken for a router": {func(_ *testing.T, s *scene) {
			s.run("db", 1, "10.8.0.3", 3)
			l := s.lease("10.8.0.3", 0, 0)
			l.Kind, l.MAC, l.Pool, l.Name = ipam.External, ipam.MAC{}, ipam.ID{}, "router"
		}, []string{"doubled_address 10.8.0.3"}},
		"a container on an auxiliary address": {func(_ *testing.T, s *scene) {
			s.run("db", 1, "10.8.0.3", 3)
			l := s.lease("10.8.0.3", 0, 1)
			l.Kind, l.MAC = ipam.Auxiliary, ipam.MAC{}
			s.view.Networks[0].Subnets[0].Aux = map[string]netip.Addr{"r": addr("10.8.0.3")}
		}, []string{"doubled_address 10.8.0.3"}},

		// Attachments and subnets without a Docker network.
		"no Docker network": {func(_ *testing.T, s *scene) {
			s.view.Networks, s.view.Containers, s.leases = nil, nil, s.leases[:1]
		}, []string{"unused_subnet 10.8.0.0/24 pool1 surely"}},
		"no Docker network, with leases": {func(_ *testing.T, s *scene) {
			s.view.Networks, s.view.Containers = nil,
				nil
		},
			[]string{"unused_lease 10.8.0.2 surely", "unused_subnet 10.8.0.0/24 pool1 surely"}},
		"no Docker network of a planned subnet": {func(_ *testing.T, s *scene) {
			s.view.Networks, s.view.Containers, s.leases = nil, nil, s.leases[:1]
			s.attachments[0].Planned = true
		}, []string{"unused_attachment 10.8.0.0/24 pool1 surely"}},
		"no Docker network here, and one elsewhere": {func(_ *testing.T, s *scene) {
			s.view.Networks, s.view.Containers, s.leases = nil, nil, s.leases[:1]
			s.attach(2, "10.8.0.0/24").Host = "h2"
		}, []string{"unused_attachment 10.8.0.0/24 pool1 surely"}},
		"an attachment that was made since": {func(_ *testing.T, s *scene) { s.attach(2, "10.8.1.0/24").Created = now },
			nil},
		"two attachments and one Docker network, whose container tells": {func(_ *testing.T, s *scene) {
			s.attach(2, "10.8.0.0/24")
		},
			[]string{"unused_attachment 10.8.0.0/24 pool2 surely"}},
		"two attachments and one Docker network without containers": {func(_ *testing.T, s *scene) {
			s.attach(2, "10.8.0.0/24")
			s.view.Containers, s.leases = nil, s.leases[:1]
		}, []string{"unused_attachment 10.8.0.0/24"}},
		"both attachments in use": {func(_ *testing.T, s *scene) {
			s.attach(2, "10.8.0.0/24")
			s.run("db", 1, "10.8.0.3", 3)
			s.lease("10.8.0.3", 3, 2)
		}, []string{"unused_attachment 10.8.0.0/24"}},
		"an address that is doubled counts as use": {func(_ *testing.T, s *scene) {
			s.attach(2, "10.8.0.0/24")
			s.run("db", 1, "10.8.0.3", 3)
			s.lease("10.8.0.3", 9, 2)
		}, []string{"doubled_address 10.8.0.3", "unused_attachment 10.8.0.0/24"}},
		"the idle one has the Docker network's range": {func(t *testing.T, s *scene) {
			s.attach(2, "10.8.0.0/24").Range = rangeText(t, "10.8.0.128-10.8.0.255")
			s.view.Networks[0].Subnets[0].Range = prefix("10.8.0.128/25")
		}, []string{"unused_attachment 10.8.0.0/24"}},
		"a pool by name goes with any range": {func(t *testing.T, s *scene) {
			s.attach(2, "10.8.0.0/24").Range = rangeText(t, "10.8.0.128-10.8.0.255")
			s.attachments[0].Named = "web"
			s.view.Networks[0].Options = map[string]string{"pool": "web"}
		}, []string{"unused_attachment 10.8.0.0/24 pool2 surely"}},

		"as many are idle as are not too many, and a pool by name would go with any": {func(t *testing.T, s *scene) {
			s.attach(2, "10.8.0.0/24").Named = "web"
			s.run("db", 1, "10.8.0.3", 3)
			s.lease("10.8.0.3", 3, 2)
			s.attach(3, "10.8.0.0/24")
			s.view.Networks[0].Options = map[string]string{"pool": "web"}
		}, []string{"unused_attachment 10.8.0.0/24"}},

		"all of it by a driver of another name": {func(_ *testing.T, s *scene) {
			s.view.Foreign, s.view.Networks, s.view.Containers = s.view.Networks, nil, nil
		}, []string{"unused_lease 10.8.0.2ly", "unused_subnet 10.8.0.0/24 pool1ly"}},
		"one of two by a driver of another name": {func(_ *testing.T, s *scene) {
			s.attach(2, "10.8.0.0/24")
			s.view.Foreign = []ipam.EngineNetwork{s.view.Networks[0]}
			s.lease("10.8.0.3", 3, 2)
		}, []string{"unused_attachment 10.8.0.0/24 pool2ly", "unused_lease 10.8.0.3ly"}},
		"of another subnet by another driver": {func(_ *testing.T, s *scene) {
			s.view.Foreign, s.view.Networks, s.view.Containers = s.view.Networks, nil, nil
			s.view.Foreign[0].Subnets[0].CIDR = prefix("10.8.0.0/25")
		}, []string{"unused_lease 10.8.0.2 surely", "unused_subnet 10.8.0.0/24 pool1 surely"}},

		// Docker networks whose pool is unknown.
		"no attachment": {func(_ *testing.T, s *scene) { s.attachments, s.leases = nil, nil },
			[]string{"empty_state invalid Prefix", "uncovered_address 10.8.0.2", "unknown_pool 10.8.0.0/24"}},
		"no attachment, where those of the cluster could not be read": {func(_ *testing.T, s *scene) {
			s.attachments, s.leases, s.partial = nil, nil, errors.New("no etcd")
		}, nil},
		"no attachment, and no Docker network either": {func(_ *testing.T, s *scene) {
			s.attachments, s.leases, s.view.Networks, s.view.Containers = nil, nil, nil, nil
		}, nil},
		"an attachment of another host only": {func(_ *testing.T, s *scene) { s.attachments[0].Host = "h2" },
			[]string{"unknown_pool 10.8.0.0/24"}},
		"more Docker networks than attachments": {func(_ *testing.T, s *scene) { s.network(2, "10.8.0.0/24", "") },
			[]string{"unknown_pool 10.8.0.0/24"}},
		"in the space that it names": {func(_ *testing.T, s *scene) {
			s.view.Networks[0].Options = map[string]string{"space": "lab"}
		},
			[]string{"uncovered_address 10.8.0.2 in lab", "unknown_pool 10.8.0.0/24 in lab",
				"unused_lease 10.8.0.2 surely", "unused_subnet 10.8.0.0/24 pool1 surely"}},
		"in the space of the planned network that it names": {func(_ *testing.T, s *scene) {
			s.view.Networks[0].Options = map[string]string{"network": "front"}
			s.networks["front"] = "lab"
			s.attachments[0].Space, s.leases[0].Space, s.leases[1].Space = "lab", "lab", "lab"
		}, nil},
		"a planned network that has another name now": {func(_ *testing.T, s *scene) {
			s.view.Networks[0].Options = map[string]string{"network": "former"}
			s.attachments[0].Space, s.leases[0].Space, s.leases[1].Space = "lab", "lab", "lab"
		}, nil},

		// Gateways.
		"another gateway": {func(_ *testing.T, s *scene) { s.view.Networks[0].Subnets[0].Gateway = addr("10.8.0.254") },
			[]string{"wrong_gateway 10.8.0.254"}},
		"the gateway of an attachment": {func(_ *testing.T, s *scene) {
			s.view.Networks[0].Subnets[0].Gateway = addr("10.8.0.254")
			l := s.gateway("10.8.0.254")
			l.Pool = idN(1)
		}, nil},
		"the gateway of another host's attachment": {func(_ *testing.T, s *scene) {
			s.view.Networks[0].Subnets[0].Gateway = addr("10.8.0.254")
			l := s.gateway("10.8.0.254")
			l.Pool, l.Host = idN(1), "h2"
		}, []string{"wrong_gateway 10.8.0.254"}},
		"a gateway that is a container's": {func(_ *testing.T, s *scene) {
			s.view.Networks[0].Subnets[0].Gateway = addr("10.8.0.2")
		}, []string{"wrong_gateway 10.8.0.2"}},
		"no gateway is told": {func(_ *testing.T, s *scene) {
			s.view.Networks[0].Subnets[0].Gateway = netip.Addr{}
		}, nil},
		"a subnet without one": {func(_ *testing.T, s *scene) {
			s.attachments[0].Gateway = netip.Addr{}
			s.leases[0].Kind = ipam.External
		}, []string{"wrong_gateway 10.8.0.1"}},

		// Memories.
		"a memory of 29 days": {func(_ *testing.T, s *scene) {
			s.memory("10.8.0.7", 7, now.Add(-29*24*time.Hour)).Name = "gone"
		}, nil},
		"a memory of 31 days": {func(_ *testing.T, s *scene) {
			s.memory("10.8.0.7", 7, now.Add(-31*24*time.Hour)).Name = "gone"
		}, []string{"stale_memory 10.8.0.7 sure"}},
		"of a container's name": {func(_ *testing.T, s *scene) {
			s.memory("10.8.0.7", 7, now.Add(-31*24*time.Hour)).Name = "web"
		}, nil},
		"of a container that was renamed": {func(_ *testing.T, s *scene) {
			l := s.memory("10.8.0.7", 7, now.Add(-31*24*time.Hour))
			l.Name, l.Container = "gone", ipam.ShortContainer(s.view.Containers[0].ID)
		}, nil},
		"of a container that is gone": {func(_ *testing.T, s *scene) {
			l := s.memory("10.8.0.7", 7, now.Add(-31*24*time.Hour))
			l.Name, l.Container = "gone", "c7"
		}, []string{"stale_memory 10.8.0.7 sure"}},
		"of a container's MAC": {func(_ *testing.T, s *scene) {
			s.memory("10.8.0.7", 1, now.Add(-31*24*time.Hour)).Name = "gone"
		}, nil},
		"of another host's": {func(_ *testing.T, s *scene) {
			s.memory("10.8.0.7", 7, now.Add(-31*24*time.Hour)).Host = "h2"
		}, nil},
		"without a name": {func(_ *testing.T, s *scene) { s.memory("10.8.0.7", 7, now.Add(-31*24*time.Hour)) },
			[]string{"stale_memory 10.8.0.7 sure"}},
		"still in its quarantine": {func(_ *testing.T, s *scene) {
			l := s.memory("10.8.0.7", 7, now.Add(-31*24*time.Hour))
			l.Name, l.QuarantineUntil = "gone", now.Add(time.Hour)
		}, nil},
		"without a name, and a container that does not run": {func(_ *testing.T, s *scene) {
			s.memory("10.8.0.7", 7, now.Add(-31*24*time.Hour))
			s.view.Containers = append(s.view.Containers,
				ipam.EngineContainer{ID: "c9", Name: "out", State: "exited",
					Endpoints: []ipam.EngineEndpoint{{Network: "n1"}}})
		}, nil},

		// Reservations that were replaced (BO-13).
		"replaced, and it runs with the new one": {func(_ *testing.T, s *scene) {
			s.reserve("web", "10.8.0.2", false)
			s.reserve("web", "10.8.0.8", true)
		}, []string{"superseded_reservation 10.8.0.8 sure"}},
		"replaced, and it does not run": {func(_ *testing.T, s *scene) {
			s.reserve("db", "10.8.0.3", false)
			s.reserve("db", "10.8.0.8", true)
		}, nil},
		"replaced, and the old one is in use": {func(_ *testing.T, s *scene) {
			s.reserve("web", "10.8.0.2", false)
			s.reserve("web", "10.8.0.8", true).InUse = true
		}, nil},
		"replaced, and the new one is leased to nobody that runs": {func(_ *testing.T, s *scene) {
			s.reserve("db", "10.8.0.3", false).InUse = true
			s.lease("10.8.0.3", 3, 1)
			s.reserve("db", "10.8.0.8", true)
		}, []string{"unused_lease 10.8.0.3 surely"}},
		"replaced, and the new one is in another's hands still": {func(_ *testing.T, s *scene) {
			s.reserve("db", "10.8.0.2", false).Since = now.Add(-time.Minute)
			s.reserve("db", "10.8.0.8", true)
		}, []string{"foreign_holder 10.8.0.2 pool1"}},
		"replaced, and another has taken the new one": {func(_ *testing.T, s *scene) {
			s.reserve("db", "10.8.0.2", false).Since = old.Add(-time.Minute)
			s.reserve("db", "10.8.0.8", true)
		}, []string{"foreign_holder 10.8.0.2 pool1"}},
		"replaced, and the new one was in its hands before": {func(_ *testing.T, s *scene) {
			s.reserve("web", "10.8.0.2", false).Since = now.Add(-time.Minute)
			s.reserve("web", "10.8.0.8", true)
		}, []string{"superseded_reservation 10.8.0.8 sure"}},
		"by a MAC": {func(_ *testing.T, s *scene) {
			s.reserve(macN(1).String(), "10.8.0.2", false).Since = now.Add(-time.Minute)
			s.reserve(macN(1).String(), "10.8.0.8", true)
		}, []string{"superseded_reservation 10.8.0.8 sure"}},
		"replaced by one on another network": {func(_ *testing.T, s *scene) {
			s.reserve("web", "10.8.0.2", false)
			s.reserve("web", "10.9.0.8", true).Network = "back"
		}, []string{"superseded_reservation 10.9.0.8 sure"}},
		"wanted on both networks, and it runs on the other": {func(_ *testing.T, s *scene) {
			s.reserve("web", "10.8.0.2", false)
			s.reserve("web", "10.9.0.9", false).Network = "back"
			s.reserve("web", "10.9.0.8", true).Network = "back"
		}, nil},
		"none is wanted any more": {func(_ *testing.T, s *scene) { s.reserve("web", "10.8.0.8", true) }, nil},

		// Swarms.
		"a swarm's network": {func(_ *testing.T, s *scene) { swarm(s) }, nil},
		"a swarm's addresses on other nodes": {func(_ *testing.T, s *scene) {
			swarm(s)
			l := s.lease("10.0.9.4", 0, 1)
			l.Space, l.MAC = "global", ipam.MAC{}
			s.attachments[0].Host, l.Host = "h1", "h1"
		}, nil},
		"a node's lease that leaked": {func(_ *testing.T, s *scene) { swarm(s); s.lease("10.0.9.4", 4, 2) },
			[]string{"unused_lease 10.0.9.4 surely"}},
		"a node's attachment that leaked": {func(_ *testing.T, s *scene) { swarm(s); s.attach(3, "10.0.9.0/24") },
			[]string{"unused_attachment 10.0.9.0/24 pool3 surely"}},
		"a manager's second attachment, before the first one's end": {func(_ *testing.T, s *scene) {
			swarm(s)
			second := s.attach(3, "10.0.9.0/24")
			second.Space, second.Swarm = "global", true
		}, nil},
		"a manager that lists the network no more": {func(_ *testing.T, s *scene) {
			swarm(s)
			s.attachments[0].Host = "h1"
			s.attachments, s.leases, s.view.Networks, s.view.Containers = s.attachments[:1], nil, nil, nil
		}, []string{"unused_attachment 10.0.9.0/24 in global pool1"}},
		"a node that has nothing of it yet": {func(_ *testing.T, s *scene) {
			swarm(s)
			s.attachments, s.leases, s.view.Containers = nil, nil, nil
		}, nil},
		"a node's container that nobody knows of": {func(_ *testing.T, s *scene) {
			swarm(s)
			s.attachments, s.leases = nil, nil
		}, []string{"empty_state invalid Prefix in global", "uncovered_address 10.0.9.3 in global",
			"unknown_pool 10.0.9.0/24 in global"}},
		"a node's container without a lease": {func(_ *testing.T, s *scene) { swarm(s); s.leases = nil },
			[]string{"uncovered_address 10.0.9.3 pool2 sure"}},
		"a node's lease of another MAC": {func(_ *testing.T, s *scene) { swarm(s); s.leases[0].MAC = macN(9) },
			[]string{"doubled_address 10.0.9.3"}},
		"a swarm's gateway": {func(_ *testing.T, s *scene) {
			swarm(s)
			s.attachments[1].Gateway = addr("10.0.9.7")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			if row.change != nil {
				row.change(t, s)
			}
			c := s.compare()
			if got := brief(c.found); !slices.Equal(got, append([]string{}, row.want...)) {
				t.Errorf("found %q, want %q", got, row.want)
			}
			for _, f := range c.found {
				delete(lacking, f.Kind)
				if f.Detail == "" || f.Host != "h1" || f.Network == "" || strings.Contains(f.Detail, "%!") {
					t.Errorf("%s says too little: %+v", f.Kind, f.Finding)
				}
			}
		})
	}
	for _, kind := range []ipam.FindingKind{ipam.EdgeAway, ipam.UnmappedElastic, ipam.GuestGone, ipam.MissingDevice,
		ipam.ShadowedSubnet, ipam.BridgeOnLAN, ipam.UnprobedNetwork, ipam.ForeignAnswer, ipam.EndingToken} {
		// elastic.TestCheckMapped, admin.TestElasticCheck and package routes test these
		delete(lacking, kind)
	}
	if len(lacking) > 0 {
		t.Errorf("no row finds %v", slices.Sorted(maps.Keys(lacking)))
	}
}
