package elastic_test

import "testing"

// mapped leads an address to a guest with a reservation.
const mapped = `
	reserve net1 web G9
	to E0 web
`

// TestStaged: a reserved guest's outgoing traffic is mapped before its container starts, incoming traffic only
// while it runs. A stop keeps the association (CS-8).
func TestStaged(t *testing.T) {
	begins(t, mapped+`
		told -> E0=G9 staged
		ranges -> 1
		run web
		told -> E0=G9
		stop web
		told -> E0=G9 staged
		# one without a name may be the owner
		run - mac=9 ip=G9
		told -> E0=G9
	`)
}

// TestUnreserved: a container without a reservation is mapped while it runs, at any address, and in both
// directions (Incus #1965: inbound only at first, #3833: only for static addresses).
func TestUnreserved(t *testing.T) {
	begins(t, `
		to E0 job ! GuestUnclear; job; IPv4
		run job -> G1
		to E0 job
		told -> E0=G1
		stop job
		told ->
		take net1 printer 0:ip0=G1
		run job -> G2
		told -> E0=G2
		show E0 -> allocated default job
		at E0 -> h1
	`)
}

// TestReleasing: an address that no edge has mapped is free at once. Otherwise it is free as soon as the edge
// has reported that it is unmapped, and meanwhile its account can allocate it again. Nothing gets stuck.
func TestReleasing(t *testing.T) {
	begins(t, mapped+`
		applies
		mapped E0 -> h1
		since E0 -> new
		applies
		since E0 -> same
		free E0 ! AddressAssociated; web; G9; h1
		off E0
		free E0
		restart
		show E0 -> releasing default
		account shop
		allocate E0 account=shop ! AddressAllocated; default; h1
		to E0 web ! AddressNotAllocated
		free E0
		off E0
		allocate E0
		show E0 -> allocated default
		free E0
		whole
		show E0 -> free
		# it was never mapped
		free E1
		show E1 -> free
	`)
}

// TestFailed: if an edge cannot map an address, Berth shows the reason, and does not show it for a new
// association. An address that the edge never mapped is free as soon as it is released; one that it mapped
// before it failed is not.
func TestFailed(t *testing.T) {
	begins(t, mapped+`
		applies no such device
		mapped E0 -> h1 no such device
		to E0 web egress
		mapped E0 -> none
		show E0 -> allocated default web egress
		applies no such device
		off E0
		free E0
		show E0 -> free
		allocate E0
		to E0 web
		applies
		to E0 web egress
		applies no such device
		off E0
		free E0
		show E0 -> releasing default
		whole
		show E0 -> free
	`)
}

// TestPublishes: a container with published ports is refused, with the ports named (CS-13). So is a container on
// a network that leads past the host's own network (CS-16).
func TestPublishes(t *testing.T) {
	begins(t, `
		reserve net1 shop/web/1 G9
		publishes shop-web-1 8080/tcp
		to E0 shop/web/1 ! ContainerPublishes; shop-web-1; 8080/tcp
		publishes shop-web-1
		publishes other 8080/tcp
		driver macvlan
		to E0 shop/web/1 ! NetworkUnsuited; macvlan
		driver bridge
		to E0 shop/web/1
	`)
}

// TestEnds: an association ends with its owner, and the address stays with its account (CS-8).
func TestEnds(t *testing.T) {
	begins(t, mapped+`
		end web
		show E0 -> allocated default
		reserve net1 web G9
		to E0 web
		# it has no reservation any more, and has not ended
		unreserve net1 web
		show E0 -> allocated default web
		network.rm net1 ! -
	`)
}

// TestDryRun changes nothing.
func TestDryRun(t *testing.T) {
	begins(t, `
		reserve net1 web G9
		try to E0 web -> 1
		show E0 -> allocated default
	`)
}

// TestOff: with elastic addresses off, the edge maps nothing, and the records stay (CS-11).
func TestOff(t *testing.T) {
	begins(t, mapped+`
		restart off
		told ->
		ranges -> 0
		off E0 ! Off
		restart
		told -> E0=G9 staged
	`)
}

// TestRenamedHost: after a rename, the store of a single host waits for no edge of the host's old name, and
// knows its containers (CloudStack #5824: an address that is being released for ever).
func TestRenamedHost(t *testing.T) {
	begins(t, mapped+`
		applies
		run web
		off E0
		free E0
		show E0 -> releasing default
		to E1 web
		host h2
		show E0 -> free
		told -> E1=G9
		at E1 -> h2
	`)
}

// TestOverNoSubnet: an elastic range overlaps no subnet, and no subnet is planned over an elastic range, whether
// a person or the engine asks for it or it is carved out of a base.
func TestOverNoSubnet(t *testing.T) {
	begins(t, `
		range 10.20.0.128/25 ! RangeOverlap; 10.20.0.0/24; net1
		range 10.50.0.0/25
		subnet net1 10.50.0.0/24 ! RangeOverlap; 10.50.0.0
		attach 10.50.0.0/24 ! RangeOverlap
		subnet net1 /25 from=10.50.0.0/24 -> 10.50.0.128/25
	`)
}

// TestStaysSuited: a network with elastic addresses is not linked past the host's own network (CS-16).
func TestStaysSuited(t *testing.T) {
	begins(t, `
		network.set net1 link=h1,macvlan,eth0 ! NetworkUnsuited; net1; macvlan; h1
		elastic net1 off
		network.set net1 link=h1,macvlan,eth0
	`)
}
