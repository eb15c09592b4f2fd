// Package ipamtest supports the tests of the packages of ipam. It has a service over its own store with a clock that
// only the test moves, scripts, failing stores, random plans, and a slow, obvious model of address selection. Only
// tests import it. A test lives in the package that it checks, or in service if it checks several.
//
// New makes a Room (room.go), and Run runs a script in it, one step per line:
//
//	take net1 web pool -> 192.0.2.10                   a step and its answer
//	take net1 db pool ! exhausted; full                a refusal: the kind of the error, or KIND|KIND, and a
//	                                                   part of its text
//	take net1 db pool ! exhausted; =NotEnoughCapacity  its code (codes)
//	# take net1                                        a comment
//
// A refusal leaves every record unchanged. After each step the records must be consistent. At the end a restarted
// service must show the same.
//
// A step of the plan (planwords.go, ownerwords.go) is a word, a network and the change:
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
// Docker's requests (docker.go) use an attachment, which the script names:
//
//	attach POOL      [net=NET] [pool=NAME] [cidr=CIDR] [range=RANGE] [space=S] [six] [swarm] [gw=A]; answers with subnet
//	                 and gateway
//	ask POOL         [NAME] [mac=N] [ip=ADDRESS] [telling]
//	has POOL         the same; answers with the address of the endpoint with this request
//	gateway POOL     [ip=ADDRESS]
//	back POOL        ADDRESS
//	detach POOL
//
// The witness's view of the following requests and leases, and its reports to the service (witnesswords.go):
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
// Time, restarts and lists:
//
//	wait D           moves the clock
//	host NAME        restarts the daemon on a host of this name
//	restart          restarts the daemon, which must show the same
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
// Tests of behaviour that all stores share also run on etcd instead of files (-etcd, etcd.go).
package ipamtest
