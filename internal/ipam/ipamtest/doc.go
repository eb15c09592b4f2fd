// Package ipamtest is what the tests of the rooms of ipam stand on: a service over a store of its own whose clock only
// the test moves, scripts that say in a line what is asked and what comes of it, stores that fail, plans that are
// drawn, and the slow obvious model of how an address is chosen. Nothing but tests imports it. A test stands beside
// the room that it shows; one that shows several at once stands in service.
//
// New makes such a Room (room.go), and Run runs a script in it, a step to a line:
//
//	take net1 web pool -> 192.0.2.10                   a step, and what it answers
//	take net1 db pool ! exhausted; full                one that is refused: the kind of the error, or KIND|KIND,
//	                                                   and what its sentence holds
//	take net1 db pool ! exhausted; =NotEnoughCapacity  its code (codes)
//	# take net1                                        nothing: a comment
//
// Whatever is refused leaves every record as it was, after each step Berth finds no contradiction between its records,
// and at the end a service that is started afresh shows the same.
//
// A step of the plan (planwords.go, ownerwords.go) is a word, a network and what is to be changed:
//
//	network NET      [space=S] [mac=P] [sticky=off] [quarantine=D] [tag.K=V] [link=HOST,MODE,LINK] [type=T]
//	                 [subnet=CIDR,gw=A,name=N,dhcp,pool+CIDR,...] [static=RANGE,RANGE]
//	                 [rule=PATTERN=owner:O,pool:P+PATTERN=...]
//	network.set NET  [name=] [mac=] [sticky=] [quarantine=] [tag.K=V] [untag=K] [link=] [static=|static=none] [rule=]
//	network.rm NET   [force]
//	subnet NET       CIDR [gw=] [name=] [dhcp] [pool], or /BITS from=CIDR ...
//	subnet.set NET   SUBNET [cidr=] [gw=A|none] [name=] [dhcp=]; SUBNET is a CIDR, a name or ID:CIDR
//	subnet.rm NET    SUBNET
//	pool NET         RANGE|- [name=] [subnet=]
//	pool.set NET     POOL NAME|-
//	pool.rm NET      POOL
//	exclude NET      RANGE [note=]
//	include NET      RANGE
//	take NET         OWNER INTERFACE [subnet=] [force]
//	release NET      OWNER [ADDRESS]
//	reserve NET      OWNER [WISH,...] [force] [automatic] [replace] [for=D] [nic=N] [not=ADDRESS,...]
//	unreserve NET    OWNER [ADDRESS]
//	bind NET         OWNER=WISH,... OWNER@NET=WISH,...; all of them at once
//	end OWNER        [under] [replaced]
//
// What Docker asks for (docker.go) is about an attachment, which the script names:
//
//	attach POOL      [net=NET] [pool=NAME] [cidr=CIDR] [range=RANGE] [space=S] [six] [swarm] [gw=A]; answers with subnet
//	                 and gateway
//	ask POOL         [NAME] [mac=N] [ip=ADDRESS] [telling]
//	has POOL         the same; answers with what the endpoint has that would ask so
//	gateway POOL     [ip=ADDRESS]
//	back POOL        ADDRESS
//	detach POOL
//
// What a witness says of the requests and leases that follow (witnesswords.go), and what the service was told by it:
//
//	idle NAME        a request must be of NAME; idle none: of nobody, or of one of several; idle lost: the witness does
//	                 not follow the engine; idle long: of one whose name no lease can keep
//	want ADDRESS     [NAME [new]]; a container asks for the address itself, one that never ran, or none any more
//	exist NAME...    these containers are there, and no others
//	call ID          NAME; the container of that id is called so, or is gone
//	sight ADDRESS    NAME|gone; a look has shown NAME with the address, or two looks have missed its endpoint
//	seen ADDRESS     NAME [ID]; the engine shows whose lease that is; seen2: the same twice in one call
//	lost ADDRESS     the witness ends the lease, of which no endpoint is left; answers whether there was one
//
// What goes on meanwhile, and what is shown:
//
//	wait D           the clock goes on
//	host NAME        the daemon is started anew on a host of this name
//	restart          the daemon is started anew, and shows the same
//	show NET         flat, reserved, taken, counts, subnets, exclusions, pools, maps, free, or env OWNER (show.go)
//	show networks    their names
//	owned NET        [OWNER]; OWNER=ADDRESS for each that is reserved, with ":a" where it is automatic, "*" where it is in
//	                 use, "!" where another one replaces it, "~" where its owner has an end
//	users NET        who has what is reserved: ADDRESS=NAME
//	lease ADDRESS    KIND NAME, with "?" behind a name that is a guess, and STATE where it is not held
//	free NET         N; what may be given of the first subnet, at most N
//	had NAME         which addresses one had: ADDRESS, with "*" where it has it now
//	events N         VERB...; the addresses of the last N events that are of these kinds
//	told VERB        how many events of it there are, and the last one: ADDRESS NAME (DETAIL)
//	asked            what the witness was asked since the last time: SPACE/CIDR/ADDRESS of each question
//	guesses          how many were made, and how many were wrong
//
// Tests that show what is the same over every store run over an etcd in the place of files, too (-etcd, etcd.go).
package ipamtest
