package edit_test

import (
	"testing"

	"berth/internal/ipam/ipamtest"
)

// GA-6: an address lies in a subnet of its network, and has only one owner.
func TestGA6OneOwner(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/24+2001:db8::/64
		network net2 subnet=198.51.100.0/24
		take net1 a 192.0.2.10 -> 192.0.2.10
		take net1 a 192.0.2.10 -> 192.0.2.10
		take net1 b 192.0.2.10 ! inuse; 192.0.2.10; a
		reserve net1 b 192.0.2.10 ! inuse; 192.0.2.10; a
		take net1 b 198.51.100.10 ! invalid|notfound; 198.51.100.10; net1
		take net1 b 192.0.2.0 ! invalid; network address
		take net1 b 192.0.2.255 ! invalid; broadcast
		take net1 b 2001:db8:: ! invalid; 2001:db8::
		take nowhere b 192.0.2.11 ! notfound; nowhere
		attach A net=net1
		ask A mac=1 ip=192.0.2.10 ! inuse; 192.0.2.10; a
		ask A mac=1 ip=192.0.2.20 -> 192.0.2.20
		ask A mac=2 ip=192.0.2.20 ! inuse
		take net1 b 192.0.2.20 ! inuse; 192.0.2.20
		take net1 b 192.0.2.20 force ! inuse; 192.0.2.20
		# the same interface may not have one twice
		take net1 c ip0=192.0.2.30,ip1=192.0.2.30 ! inuse|invalid; 192.0.2.30
		# what an owner took is not released by a container's name, nor the other way round
		ask A web mac=3 ip=192.0.2.40 -> 192.0.2.40
		release net1 web
		take net1 b 192.0.2.40 ! inuse; web
		back A 192.0.2.10
		take net1 b 192.0.2.10 ! inuse; a
		release net1 b
		take net1 b 192.0.2.10 ! inuse; a
		release net1 a 192.0.2.10
		take net1 b 192.0.2.10 -> 192.0.2.10
	`}})
}

// GA-24: an interface may hold several addresses of one network.
func TestGA24Interfaces(t *testing.T) {
	const plan = `
		network net1 subnet=192.0.2.0/24+198.51.100.0/24
		pool net1 192.0.2.10+10
		pool net1 198.51.100.10+3 name=some-pool-name
		take net1 inst 0:ip0=192.0.2.4,ip1=pool,ip2=some-pool-name -> 192.0.2.4 192.0.2.10 198.51.100.10
		show net1 taken -> inst:0.0=192.0.2.4 inst:0.1=192.0.2.10 inst:0.2=198.51.100.10
	`
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"asked for again", plan + `
			take net1 inst 0:ip0=192.0.2.4,ip1=pool,ip2=some-pool-name -> 192.0.2.4 192.0.2.10 198.51.100.10
			take net1 inst ip=192.0.2.4
			show net1 taken -> inst:0.0=192.0.2.4 inst:0.1=192.0.2.10 inst:0.2=198.51.100.10
			take net1 inst ip0=192.0.2.5 ! inuse|invalid; 192.0.2.4
			take net1 inst ip0=192.0.2.4,ip1=192.0.2.11 ! inuse|invalid; 192.0.2.10
			# one more slot
			take net1 inst ip0=192.0.2.4,ip1=pool,ip2=some-pool-name,ip3=some-pool-name
			show net1 taken -> inst:0.0=192.0.2.4 inst:0.1=192.0.2.10 inst:0.2=198.51.100.10 inst:0.3=198.51.100.11
		`},
		{"one is changed alone", plan + `
			take net1 inst 0:modify,ip1=192.0.2.77
			show net1 taken -> inst:0.0=192.0.2.4 inst:0.1=192.0.2.77 inst:0.2=198.51.100.10
			take net1 other 192.0.2.10 -> 192.0.2.10
			take net1 inst 0:modify,ip1=192.0.2.10 ! inuse; other
			take net1 inst 0:modify,ip0=192.0.2.78,ip1=192.0.2.10 ! inuse; other
			show net1 taken -> inst:0.0=192.0.2.4 other:0.0=192.0.2.10 inst:0.1=192.0.2.77 inst:0.2=198.51.100.10
			take net1 inst 0:modify,ip0=some-pool-name
			show net1 taken -> other:0.0=192.0.2.10 inst:0.1=192.0.2.77 inst:0.2=198.51.100.10 inst:0.0=198.51.100.11
			take net1 inst 1:modify,ip0=192.0.2.80 ! notfound|invalid; inst
			take net1 nobody 0:modify,ip0=192.0.2.80 ! notfound|invalid; nobody
			exclude net1 192.0.2.90
			take net1 inst 0:modify,ip1=192.0.2.90 ! inuse|invalid; 192.0.2.90
			take net1 inst 0:modify,ip1=192.0.2.90 force
			show net1 taken -> other:0.0=192.0.2.10 inst:0.1=192.0.2.90 inst:0.2=198.51.100.10 inst:0.0=198.51.100.11
		`},
		{"no address is in two slots, and two may change places", plan + `
			take net1 inst 0:modify,ip0=192.0.2.10 ! inuse; 192.0.2.10; inst
			take net1 inst 1:add,ip0=192.0.2.4 ! inuse; 192.0.2.4; inst
			take net1 inst 0:modify,ip1=192.0.2.4 ! inuse; 192.0.2.4; inst
			take net1 inst 0:modify,ip0=192.0.2.10,ip1=192.0.2.4
			show net1 taken -> inst:0.1=192.0.2.4 inst:0.0=192.0.2.10 inst:0.2=198.51.100.10
			take net1 inst 0:modify,ip0=198.51.100.10,ip1=192.0.2.10,ip2=192.0.2.4
			show net1 taken -> inst:0.2=192.0.2.4 inst:0.1=192.0.2.10 inst:0.0=198.51.100.10
			# into one that is given back by the same step
			take net1 inst 0:modify,ip1=192.0.2.4,ip2=none
			show net1 taken -> inst:0.1=192.0.2.4 inst:0.0=198.51.100.10
		`},
		{"none gives one back, and no gap is left", plan + `
			take net1 inst 0:modify,ip1=none ! invalid; ip2
			take net1 inst 0:modify,ip0=none ! invalid; ip1
			take net1 inst 0:modify,ip4=pool ! invalid; ip3
			take net1 inst 0:modify,ip2=none
			take net1 inst 0:modify,ip1=none
			show net1 taken -> inst:0.0=192.0.2.4
			take net1 inst 0:modify,ip1=some-pool-name
			take net1 inst 0:modify,ip1=none,ip2=none ! invalid|notfound
			show net1 taken -> inst:0.0=192.0.2.4 inst:0.1=198.51.100.10
		`},
		{"a pool that is full in the midst gives nothing of the rest", plan + `
			take net1 x some-pool-name -> 198.51.100.11
			take net1 y some-pool-name -> 198.51.100.12
			take net1 z 0:ip0=pool,ip1=192.0.2.50,ip2=some-pool-name ! exhausted; some-pool-name
			take net1 inst 0:modify,ip0=192.0.2.50,ip1=some-pool-name ! exhausted; some-pool-name
			show net1 taken -> inst:0.0=192.0.2.4 inst:0.1=192.0.2.10 inst:0.2=198.51.100.10 x:0.0=198.51.100.11 y:0.0=198.51.100.12
			take net1 z 0:ip0=pool,ip1=192.0.2.50 -> 192.0.2.11 192.0.2.50
		`},
		{"further interfaces", plan + `
			take net1 inst -1:add,ip0=pool,ip1=192.0.2.77 -> 192.0.2.11 192.0.2.77
			take net1 inst 1:add,ip0=pool ! inuse|invalid; inst
			take net1 inst 0:add ! inuse|invalid; inst
			take net1 inst 2:add -> 192.0.2.12
			show net1 taken -> inst:0.0=192.0.2.4 inst:0.1=192.0.2.10 inst:1.0=192.0.2.11 inst:2.0=192.0.2.12 inst:1.1=192.0.2.77 inst:0.2=198.51.100.10
			take net1 inst 0:remove
			show net1 taken -> inst:1.0=192.0.2.11 inst:2.0=192.0.2.12 inst:1.1=192.0.2.77
			restart
			take net1 inst 1:ip0=pool,ip1=192.0.2.77 -> 192.0.2.11 192.0.2.77
			take net1 inst -1:add
			release net1 inst
			show net1 taken ->
			release net1 inst
			release net1 inst 192.0.2.4
			release net1 inst 203.0.113.1
		`},
	})
}

// A reserved address belongs to its owner, in use or not.
func TestReservations(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"nobody else is given it", `
			network net1 subnet=192.0.2.0/29,pool
			reserve net1 web 192.0.2.1 -> 192.0.2.1
			reserve net1 web 192.0.2.1 -> 192.0.2.1
			reserve net1 db 192.0.2.1 ! inuse; 192.0.2.1; web
			reserve net1 db 192.0.2.1 force ! inuse; 192.0.2.1; web
			take net1 db 192.0.2.1 ! inuse; web
			take net1 db 192.0.2.1 force ! inuse; web
			take net1 db pool -> 192.0.2.2
			attach A net=net1
			ask A db mac=1 -> 192.0.2.3
			ask A db mac=2 ip=192.0.2.1 ! inuse; web
			ask A web mac=3 -> 192.0.2.1
			show net1 reserved -> web=192.0.2.1*
			ask A web mac=4 ! inuse; 192.0.2.1; web
			back A 192.0.2.1
			show net1 reserved -> web=192.0.2.1
			restart
			ask A mac=3 -> 192.0.2.4
			ask A web mac=4 -> 192.0.2.1
			show net1 maps -> XXXXX..X
		`},
		{"it is the owner's again, whatever came before", `
			network net1 subnet=192.0.2.0/29,pool
			attach A net=net1
			ask A web mac=1 ip=192.0.2.6 -> 192.0.2.6
			back A 192.0.2.6
			reserve net1 web 192.0.2.5
			ask A web mac=1 -> 192.0.2.5
			ask A x mac=9 -> 192.0.2.1
		`},
		{"what is held", `
			network net1 subnet=192.0.2.0/29,pool
			attach A net=net1
			ask A web mac=1 -> 192.0.2.1
			reserve net1 web 192.0.2.1 -> 192.0.2.1
			show net1 reserved -> web=192.0.2.1*
			ask A db mac=2 -> 192.0.2.2
			reserve net1 x 192.0.2.2 ! inuse; db
			reserve net1 x 192.0.2.2 force -> 192.0.2.2
			has A db mac=2 -> 192.0.2.2
			ask A x mac=3 ! inuse; 192.0.2.2; db
			back A 192.0.2.2
			ask A db mac=2 -> 192.0.2.3
			ask A x mac=3 -> 192.0.2.2
			show net1 reserved -> web=192.0.2.1* x=192.0.2.2*
			unreserve net1 x
			has A x mac=3 -> 192.0.2.2
			show net1 counts -> held 3 reserved 0 docker 1 planned true
		`},
		{"out of pools", `
			network net1 subnet=192.0.2.0/24+198.51.100.0/24
			pool net1 192.0.2.10+2
			pool net1 198.51.100.10+2 name=back
			reserve net1 web -> 192.0.2.10
			reserve net1 web -> 192.0.2.10
			reserve net1 db pool -> 192.0.2.11
			reserve net1 two 192.0.2.9,back -> 192.0.2.9 198.51.100.10
			reserve net1 three back -> 198.51.100.11
			reserve net1 four ! exhausted
			take net1 four pool ! exhausted
			unreserve net1 two 198.51.100.10
			reserve net1 four back -> 198.51.100.10
			unreserve net1 two 198.51.100.10 ! notfound; 198.51.100.10; two
			show net1 reserved -> two=192.0.2.9 web=192.0.2.10 db=192.0.2.11 four=198.51.100.10 three=198.51.100.11
			unreserve net1 nobody ! notfound; nobody
			unreserve net1 two
			take net1 x 192.0.2.9 -> 192.0.2.9
		`},
		{"an owner takes its own, in each subnet", `
			network net1 subnet=192.0.2.0/24,pool+2001:db8::/64,pool
			reserve net1 web 192.0.2.50,2001:db8::50
			attach A net=net1
			attach B net=net1 six
			ask A web mac=1 -> 192.0.2.50
			ask B web mac=1 -> 2001:db8::50
			reserve net1 rtr 192.0.2.60,192.0.2.61
			take net1 rtr 192.0.2.61 -> 192.0.2.61
			take net1 rtr2 192.0.2.60 ! inuse; rtr
			take net1 rtr 1:add,ip0=192.0.2.60 -> 192.0.2.60
			ask A rtr mac=2 ! inuse; rtr
		`},
		{"what is reserved goes before what is remembered", `
			network net1 subnet=192.0.2.0/24,pool
			take net1 db pool -> 192.0.2.1
			release net1 db
			reserve net1 db 192.0.2.9
			take net1 db pool -> 192.0.2.9
			take net1 db 1:ip=pool -> 192.0.2.1
		`},
		{"given addresses go before those that are chosen", `
			network net1 subnet=192.0.2.0/24,pool
			take net1 a 0:ip0=pool,ip1=192.0.2.1 -> 192.0.2.2 192.0.2.1
			reserve net1 b pool,192.0.2.3 -> 192.0.2.4 192.0.2.3
		`},
		{"a MAC is an owner", `
			network net1 subnet=192.0.2.0/24,pool
			reserve net1 02:00:00:00:00:0A 192.0.2.10
			attach A net=net1
			ask A mac=9 -> 192.0.2.1
			ask A mac=10 -> 192.0.2.10
		`},
	})
}
