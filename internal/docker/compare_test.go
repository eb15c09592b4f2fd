package docker

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"berth/internal/ipam"
)

func TestCompare(t *testing.T) {
	lacking := map[ipam.FindingKind]bool{} // kinds that no case produces
	for _, row := range ipam.FindingKinds {
		lacking[row.Kind] = true
	}
	playScenes(t, newScene, comparisons, func(t *testing.T, _ *scene, c *comparison) {
		for _, f := range c.found {
			delete(lacking, f.Kind)
			if f.Detail == "" || f.Host != "h1" || f.Network == "" || strings.Contains(f.Detail, "%!") {
				t.Errorf("%s says too little: %+v", f.Kind, f.Finding)
			}
		}
	})
	for _, kind := range []ipam.FindingKind{ipam.OtherEngine, ipam.EdgeAway, ipam.UnmappedElastic, ipam.GuestGone, ipam.MissingDevice,
		ipam.ShadowedSubnet, ipam.BridgeOnLAN, ipam.UnprobedNetwork, ipam.ForeignAnswer, ipam.EndingToken} {
		// elastic.TestCheckMapped, TestOtherEngine, admin.TestElasticCheck and package routes test these
		delete(lacking, kind)
	}
	if len(lacking) > 0 {
		t.Errorf("no case finds %v", slices.Sorted(maps.Keys(lacking)))
	}
}

// comparisons are cases over a Docker network n1 of 10.8.0.0/24 with the container web at .2 (newScene).
const comparisons = `
	as it is to be:

	# Elastic addresses, and the engine's firewall.
	its firewall drops what comes in:
		nftables
		-> firewall_in_way 10.8.0.0/24
	its firewall is iptables:
		nftables
		set view firewall=iptables
	its firewall drops, and the network is open:
		nftables
		set network open_ipv4
	its firewall drops, and the network is open to the other family:
		nftables
		set network open_ipv6
		-> firewall_in_way 10.8.0.0/24
	its firewall drops, and no elastic address is mapped there:
		nftables
		none elastic
	it publishes ports beside an elastic address:
		maps 8080/tcp 53/udp
		-> published_elastic 10.8.0.2
	it has an elastic address, and publishes nothing:
		maps
	another guest has the elastic address:
		maps 8080/tcp
		set guest guest=10.8.0.3
	its guest's address is another one in another space:
		maps 8080/tcp
		set guest space=lab
	an owner runs elsewhere than at what is reserved for it:
		reserve web 10.8.0.3
		-> owner_elsewhere 10.8.0.2 pool1
	no system address is free:
		lacks
		-> no_system_address 10.8.0.2
	it has no system address, because it publishes ports:
		lacks 8080/tcp
		-> published_elastic 10.8.0.2

	# Leases from a DHCP server (LN-15).
	a lease that its DHCP server gave:
		set lease2 dhcp={"state":"bound"}
	a lease that its DHCP server took back:
		set lease2 dhcp={"state":"lost"}
		-> lost_lease 10.8.0.2 pool1
	a lease that its DHCP server gave to two:
		set lease2 dhcp={"state":"conflict"}
		-> conflicting_lease 10.8.0.2 pool1
	a lease that its DHCP server does not confirm:
		set lease2 dhcp={"state":"unconfirmed"}
		-> unconfirmed_lease 10.8.0.2 pool1

	# Unused leases.
	a container that is gone:
		none containers
		-> unused_lease 10.8.0.2 surely
	of another host:
		lease 10.8.0.7 7 1 host=h2
	younger than the view:
		lease 10.8.0.7 7 1 since=@0s
	its attachment is ending:
		lease 10.8.0.7 7 9
	auxiliary:
		lease 10.8.0.7 0 1 kind=auxiliary mac=none
		set subnet aux={"r":"10.8.0.7"}
	auxiliary, asked for late:
		lease 10.8.0.7 0 1 kind=static mac=none
		set subnet aux={"r":"10.8.0.7"}
	taken for auxiliary, and no network keeps it:
		lease 10.8.0.7 0 1 kind=auxiliary mac=none
		-> unused_lease 10.8.0.7 surely
	external:
		lease 10.8.0.7 0 0 kind=external mac=none pool=none
	a container that has stopped, with a lease:
		set container state=exited endpoints=[] endpoints=[{"network":"n1","wanted":["10.8.0.2"]}]
		-> unused_lease 10.8.0.2 surely
	a container that restarts, with a lease:
		set lease2 name=web
		set container state=restarting endpoints=[] endpoints=[{"network":"n1"}]
		-> unused_lease 10.8.0.2ly
	an endpoint without a container uses it:
		set container id= name=lb
	the same address in another space uses it not:
		attach 5 10.8.0.0/24 space=lab
		network 5 10.8.0.0/24 10.8.0.1 options={"space":"lab"}
		run lab 5 10.8.0.9 9
		lease 10.8.0.9 9 5 space=lab
		lease 10.8.0.9 9 1
		-> unused_lease 10.8.0.9 surely

	# Addresses without a lease.
	a container without a lease:
		run db 1 10.8.0.3 3
		-> uncovered_address 10.8.0.3 pool1 sure
	a MAC that is not known (ipvlan):
		set endpoint mac=
	a lease without a MAC:
		set lease2 mac=none
	only a memory:
		run db 1 10.8.0.3 3
		memory 10.8.0.3 3 0
		-> uncovered_address 10.8.0.3 pool1 sure
	two attachments:
		attach 2 10.8.0.0/24
		network 2 10.8.0.0/24 -
		run db 1 10.8.0.3 3
		-> uncovered_address 10.8.0.3
	two attachments, of which one has the range:
		set attachment range=10.8.0.0-10.8.0.127
		set subnet range=10.8.0.0/25
		attach 2 10.8.0.0/24 range=10.8.0.128-10.8.0.255
		network 2 10.8.0.0/24 - subnets=[{"cidr":"10.8.0.0/24","range":"10.8.0.128/25"}]
		run db 2 10.8.0.200 3
		-> uncovered_address 10.8.0.200 pool2 sure
	in no subnet of its network:
		run db 1 10.9.0.3 3
		-> uncovered_address 10.9.0.3
	an endpoint with neither container nor MAC:
		run lb 1 10.8.0.3 3 id= endpoints=[] endpoints=[{"network":"n1","id":"e3","addresses":["10.8.0.3"]}]
		-> uncovered_address 10.8.0.3

	# One address of two users.
	leased to another MAC, who is being started:
		set lease2 mac=9 since=@-60s
		-> doubled_address 10.8.0.2
	leased to another MAC, by what is no container's endpoint:
		set lease2 mac=9
		set container id=
		-> doubled_address 10.8.0.2
	leased to another MAC, and it is not known through what:
		set lease2 mac=9
		attach 2 10.8.0.0/24
		network 2 10.8.0.0/24 -
		-> doubled_address 10.8.0.2
	leased to another MAC, and two have it:
		set lease2 mac=9
		run db 1 10.8.0.2 2
		-> doubled_address 10.8.0.2

	# One address of one user, but the lease names another.
	leased to another MAC, who is gone:
		set lease2 mac=9
		-> outdated_lease 10.8.0.2 pool1 sure
	leased to another MAC, who runs with another address:
		set lease2 mac=9
		run db 1 10.8.0.3 9
		lease 10.8.0.3 9 1
		-> outdated_lease 10.8.0.2 pool1 sure
	leased to another MAC on another host:
		set lease2 mac=9 host=h2
		-> doubled_address 10.8.0.2
	leased to another container, by its id:
		set lease2 container_id=other name=web
		-> outdated_lease 10.8.0.2 pool1 sure
	leased to another container, by its id, and younger than the view:
		set lease2 container_id=other since=@0s
	leased to another container, which is there, by its name:
		run db 1 10.8.0.3 3
		lease 10.8.0.3 3 1 name=db
		set lease2 name=db
		-> outdated_lease 10.8.0.2 pool1 sure
	leased to the name of a container that is gone, and may have been renamed:
		set lease2 name=old
	leased to another container, by a guess:
		run db 1 10.8.0.3 3
		lease 10.8.0.3 3 1
		set lease2 guessed name=db
	two endpoints:
		attach 2 10.8.0.0/24
		network 2 10.8.0.0/24 -
		run db 2 10.8.0.2 2
		-> doubled_address 10.8.0.2
	two endpoints, and no lease:
		run db 1 10.8.0.2 2
		first leases
		-> doubled_address 10.8.0.2
	a container on the gateway:
		run db 1 10.8.0.1 3
		-> doubled_address 10.8.0.1
	a container on an address that was taken for a router:
		run db 1 10.8.0.3 3
		lease 10.8.0.3 0 0 kind=external mac=none pool=none name=router
		-> doubled_address 10.8.0.3
	a container on an auxiliary address:
		run db 1 10.8.0.3 3
		lease 10.8.0.3 0 1 kind=auxiliary mac=none
		set subnet aux={"r":"10.8.0.3"}
		-> doubled_address 10.8.0.3

	# Attachments and subnets without a Docker network.
	no Docker network:
		none networks containers
		first leases
		-> unused_subnet 10.8.0.0/24 pool1 surely
	no Docker network, with leases:
		none networks containers
		-> unused_lease 10.8.0.2ly
		-> unused_subnet 10.8.0.0/24 pool1 surely
	no Docker network of a planned subnet:
		none networks containers
		first leases
		set attachment planned
		-> unused_attachment 10.8.0.0/24 pool1 surely
	no Docker network here, and one elsewhere:
		none networks containers
		first leases
		attach 2 10.8.0.0/24 host=h2
		-> unused_attachment 10.8.0.0/24 pool1 surely
	an attachment that was made since:
		attach 2 10.8.1.0/24 created=@0s
	two attachments and one Docker network, whose container tells:
		attach 2 10.8.0.0/24
		-> unused_attachment 10.8.0.0/24 pool2 surely
	two attachments and one Docker network without containers:
		attach 2 10.8.0.0/24
		none containers
		first leases
		-> unused_attachment 10.8.0.0/24
	both attachments in use:
		attach 2 10.8.0.0/24
		run db 1 10.8.0.3 3
		lease 10.8.0.3 3 2
		-> unused_attachment 10.8.0.0/24
	an address that is doubled counts as use:
		attach 2 10.8.0.0/24
		run db 1 10.8.0.3 3
		lease 10.8.0.3 9 2
		-> doubled_address 10.8.0.3
		-> unused_attachment 10.8.0.0/24
	the idle one has the Docker network's range:
		attach 2 10.8.0.0/24 range=10.8.0.128-10.8.0.255
		set subnet range=10.8.0.128/25
		-> unused_attachment 10.8.0.0/24
	a pool by name goes with any range:
		attach 2 10.8.0.0/24 range=10.8.0.128-10.8.0.255
		set attachment named=web
		set network options={"pool":"web"}
		-> unused_attachment 10.8.0.0/24 pool2 surely
	as many are idle as are not too many, and a pool by name would go with any:
		attach 2 10.8.0.0/24 named=web
		run db 1 10.8.0.3 3
		lease 10.8.0.3 3 2
		attach 3 10.8.0.0/24
		set network options={"pool":"web"}
		-> unused_attachment 10.8.0.0/24

	all of it by a driver of another name:
		foreign
		-> unused_lease 10.8.0.2ly
		-> unused_subnet 10.8.0.0/24 pool1ly
	one of two by a driver of another name:
		attach 2 10.8.0.0/24
		foreign too
		lease 10.8.0.3 3 2
		-> unused_attachment 10.8.0.0/24 pool2ly
		-> unused_lease 10.8.0.3ly
	of another subnet by another driver:
		foreign
		set foreign cidr=10.8.0.0/25
		-> unused_lease 10.8.0.2ly
		-> unused_subnet 10.8.0.0/24 pool1 surely

	# Docker networks whose pool is unknown.
	no attachment:
		none attachments leases
		-> empty_state invalid Prefix
		-> uncovered_address 10.8.0.2
		-> unknown_pool 10.8.0.0/24
	no attachment, where those of the cluster could not be read:
		none attachments leases
		partial
	no attachment, and no Docker network either:
		none attachments leases networks containers
	an attachment of another host only:
		set attachment host=h2
		-> unknown_pool 10.8.0.0/24
	more Docker networks than attachments:
		network 2 10.8.0.0/24 -
		-> unknown_pool 10.8.0.0/24
	its Docker network was made again, and the older state has another pool:
		set network created=@-10s
		-> unknown_pool 10.8.0.0/24
		-> unused_attachment 10.8.0.0/24
	its Docker network was removed unseen, and another one has its subnet:
		attach 2 10.8.0.0/24 created=@-10s
		set network created=@-11s
		lease 10.8.0.3 3 1 name=db
		set lease2 pool=
		-> unused_attachment 10.8.0.0/24 pool1 sure
		-> unused_lease 10.8.0.3ly
	in the space that it names:
		set network options={"space":"lab"}
		-> uncovered_address 10.8.0.2 in lab
		-> unknown_pool 10.8.0.0/24 in lab
		-> unused_lease 10.8.0.2ly
		-> unused_subnet 10.8.0.0/24 pool1 surely
	in the space of the planned network that it names:
		set network options={"network":"front"}
		plan front lab
		set attachment space=lab
		set lease space=lab
		set lease2 space=lab
	a planned network that has another name now:
		set network options={"network":"former"}
		set attachment space=lab
		set lease space=lab
		set lease2 space=lab

	# Gateways.
	another gateway:
		set subnet gateway=10.8.0.254
		-> wrong_gateway 10.8.0.254
	the gateway of an attachment:
		set subnet gateway=10.8.0.254
		gateway 10.8.0.254 pool=1
	the gateway of another host's attachment:
		set subnet gateway=10.8.0.254
		gateway 10.8.0.254 pool=1 host=h2
		-> wrong_gateway 10.8.0.254
	a gateway that is a container's:
		set subnet gateway=10.8.0.2
		-> wrong_gateway 10.8.0.2
	no gateway is told:
		set subnet gateway=
	a subnet without one:
		set attachment gateway=
		set lease kind=external
		-> wrong_gateway 10.8.0.1

	# A container on several Docker networks of one subnet (conflicts_test.go has more).
	a second network of its subnet:
		attach 2 10.8.0.0/24
		network 2 10.8.0.0/24 -
		joins 2 10.8.0.3 3
		lease 10.8.0.3 3 2
		-> conflicting_networks 10.8.0.0/24

	# Memories.
	a memory of 29 days:
		memory 10.8.0.7 7 29 name=gone
	a memory of 31 days:
		memory 10.8.0.7 7 31 name=gone
		-> stale_memory 10.8.0.7 sure
	of a container's name:
		memory 10.8.0.7 7 31 name=web
	of a container that was renamed:
		memory 10.8.0.7 7 31 name=gone container_id=c-web
	of a container that is gone:
		memory 10.8.0.7 7 31 name=gone container_id=c7
		-> stale_memory 10.8.0.7 sure
	of a container's MAC:
		memory 10.8.0.7 1 31 name=gone
	of another host's:
		memory 10.8.0.7 7 31 host=h2
	without a name:
		memory 10.8.0.7 7 31
		-> stale_memory 10.8.0.7 sure
	still in its quarantine:
		memory 10.8.0.7 7 31 name=gone quarantine_until=@1h
	without a name, and a container that does not run:
		memory 10.8.0.7 7 31
		run out 1 10.8.0.9 9 state=exited endpoints=[] endpoints=[{"network":"n1"}]

	# Reservations that were replaced (BO-13).
	replaced, and it runs with the new one:
		reserve web 10.8.0.2
		reserve web 10.8.0.8 replaced
		-> superseded_reservation 10.8.0.8 sure
	replaced, and it does not run:
		reserve db 10.8.0.3
		reserve db 10.8.0.8 replaced
	replaced, and the old one is in use:
		reserve web 10.8.0.2
		reserve web 10.8.0.8 replaced in_use
	replaced, and the new one is leased to nobody that runs:
		reserve db 10.8.0.3 in_use
		lease 10.8.0.3 3 1
		reserve db 10.8.0.8 replaced
		-> unused_lease 10.8.0.3 surely
	replaced, and the new one is in another's hands still:
		reserve db 10.8.0.2 since=@-1m
		reserve db 10.8.0.8 replaced
		-> foreign_holder 10.8.0.2 pool1
	replaced, and another has taken the new one:
		reserve db 10.8.0.2 since=@-61m
		reserve db 10.8.0.8 replaced
		-> foreign_holder 10.8.0.2 pool1
	replaced, and the new one was in its hands before:
		reserve web 10.8.0.2 since=@-1m
		reserve web 10.8.0.8 replaced
		-> superseded_reservation 10.8.0.8 sure
	by a MAC:
		reserve 02:00:00:00:00:01 10.8.0.2 since=@-1m
		reserve 02:00:00:00:00:01 10.8.0.8 replaced
		-> superseded_reservation 10.8.0.8 sure
	replaced by one on another network:
		reserve web 10.8.0.2
		reserve web 10.9.0.8 replaced network=back
		-> superseded_reservation 10.9.0.8 sure
	wanted on both networks, and it runs on the other:
		reserve web 10.8.0.2
		reserve web 10.9.0.9 network=back
		reserve web 10.9.0.8 replaced network=back
	none is wanted any more:
		reserve web 10.8.0.8 replaced

	# Swarms.
	a swarm's network:
		swarm
	a swarm's addresses on other nodes:
		swarm
		lease 10.0.9.4 0 1 space=global mac=none
		set attachment host=h1
	a node's lease that leaked:
		swarm
		lease 10.0.9.4 4 2
		-> unused_lease 10.0.9.4 surely
	a node's attachment that leaked:
		swarm
		attach 3 10.0.9.0/24
		-> unused_attachment 10.0.9.0/24 pool3 surely
	a manager's second attachment, before the first one's end:
		swarm
		attach 3 10.0.9.0/24 space=global swarm
	a manager that lists the network no more:
		swarm
		set attachment host=h1
		first attachments
		none leases networks containers
		-> unused_attachment 10.0.9.0/24 in global pool1
	a node that has nothing of it yet:
		swarm
		none attachments leases containers
	a node's container that nobody knows of:
		swarm
		none attachments leases
		-> empty_state invalid Prefix in global
		-> uncovered_address 10.0.9.3 in global
		-> unknown_pool 10.0.9.0/24 in global
	a node's container without a lease:
		swarm
		none leases
		-> uncovered_address 10.0.9.3 pool2 sure
	a node's lease of another MAC:
		swarm
		set lease mac=9
		-> doubled_address 10.0.9.3
	a swarm's gateway:
		swarm
		set attachment2 gateway=10.0.9.7
`
