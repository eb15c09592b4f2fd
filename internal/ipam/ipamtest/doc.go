// Package ipamtest supports the tests of the packages of ipam. It has a service over its own store, with a clock that
// only the test moves. It also has scripts, failing stores, random plans, and a slow, obvious model of address
// selection. Only tests import it. A test lives in the package that it checks, or in service if it checks several.
//
// New makes a Stage (stage.go), and Run runs a script in it, one step per line:
//
//	take net1 web pool -> 192.0.2.10                   a step and its answer
//	show net1 pools -> ...192.0.2.99                   the end of its answer
//	take net1 db pool ! exhausted; full                a refusal: the kind of the error, or KIND|KIND, and a
//	                                                   part of its text
//	take net1 db pool ! exhausted; =NotEnoughCapacity  its code (codes)
//	take net1 a + take net1 b ! exhausted; at=1        edits in one call, and which of them is refused
//	@key=K/REQUEST @deploy=ID @by=ACTOR take net1 db   options of the call; "@dry": it must change nothing
//	# take net1                                        a comment
//
// A refusal leaves every record unchanged, and all that is shown. After each step the records must be consistent. At
// the end a restarted service must show the same.
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
//	reserve NET      OWNER [WISH,...] [force] [automatic] [replace] [moves] [only=NET,...] [for=D] [nic=N]
//	                 [not=ADDRESS,...]
//	unreserve NET    OWNER [ADDRESS]
//	bind NET         OWNER=WISH,... OWNER@NET=WISH,...; all of them at once
//	end OWNER        [under] [replaced]
//	edit OP JSON     any edit, with ID:NAME for an id, and LONG for 300 letters
//
// Docker's requests (docker.go) use an attachment, which the script names:
//
//	attach POOL      [net=NET] [pool=NAME] [cidr=CIDR] [range=RANGE] [space=S] [six] [swarm] [gw=A]; answers with subnet
//	                 and gateway; space=-: none is named
//	ask POOL         [NAME] [mac=N|MAC] [ip=ADDRESS] [telling]
//	has POOL         the same; answers with the address of the endpoint with this request
//	gateway POOL     [ip=ADDRESS]
//	back POOL        ADDRESS
//	detach POOL
//
// These steps set what the witness sees for later requests and leases, and send its reports to the service
// (witnesswords.go):
//
//	idle NAME        requests come from NAME; idle none: the container is unknown; idle lost: the witness does not
//	                 follow the engine; idle long: from a container whose name is too long for a lease
//	want ADDRESS     [NAME [new]]; a container asks for the address; new: it has never run; no NAME: none asks
//	exist NAME...    exactly these containers exist
//	call ID          NAME; the container of that id has this name; without a NAME: it was removed
//	sight ADDRESS    NAME|gone; a look has shown NAME with the address; gone: two looks have missed its endpoint
//	seen ADDRESS     NAME [ID]; a view shows the container of the lease; seen2: the same twice in one call
//	lost ADDRESS     the witness ends the lease, because no endpoint has it; answers whether there was one
//
// Time, restarts and lists:
//
//	wait D           moves the clock
//	host NAME        restarts the daemon on a host of this name
//	restart          restarts the daemon; its answers must not change
//	fail full        the next update finds no room
//	trim             what the daemon trims from time to time
//	show NET         flat, reserved, taken [OWNER], counts, subnets, exclusions, pools, maps, free, or env OWNER
//	                 (show.go)
//	show networks    their names
//	owned NET        [OWNER]; OWNER=ADDRESS for each reservation, with ":a" if automatic, "*" if in use, "!" if
//	                 replaced by another, "~" if it ends at a set time
//	users NET        the holders of reserved addresses: ADDRESS=NAME
//	lease ADDRESS    KIND NAME, with "?" after a guessed name, and STATE if it is not held
//	free NET         N; the free addresses of the first subnet, at most N
//	had NAME         the addresses that NAME had: ADDRESS, with "*" if it has it now
//	events N         VERB...; the addresses of the last N events that are of these kinds
//	told VERB        the number of such events, and the last one: ADDRESS NAME (DETAIL)
//	asked            the questions to the witness since the last time: SPACE/CIDR/ADDRESS of each
//	guesses          the numbers of guesses, and of wrong ones
//
// With -etcd, tests of behaviour that all stores share run on etcd instead of files (etcd.go).
package ipamtest
