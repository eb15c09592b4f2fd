package edit_test

import (
	"testing"

	"berth/internal/ipam/ipamtest"
)

// GA-8: Berth never chooses an excluded address. Exclusions and leases are separate records.
func TestGA8Exclusions(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/28,pool+2001:db8::/64,pool
		exclude net1 192.0.2.1-192.0.2.4 note=printers
		exclude net1 192.0.2.6
		exclude net1 2001:db8::1-2001:db8::ff
		take net1 a pool -> 192.0.2.5
		take net1 b pool -> 192.0.2.7
		reserve net1 c pool -> 192.0.2.8
		attach A net=net1
		ask A mac=1 -> 192.0.2.9
		attach B net=net1 six
		ask B mac=1 -> 2001:db8::100
		show net1 maps -> XXXXXXXXXX.....X -
		show net1 free -> 5 18446744073709551359
		show net1 taken -> a:0.0=192.0.2.5 b:0.0=192.0.2.7
		exclude net1 192.0.2.10-192.0.2.14
		take net1 d pool -> 2001:db8::101
		ask A mac=2 ! exhausted; 192.0.2.0/28
		# the exclusion goes, and what is in use stays
		include net1 192.0.2.0/28
		show net1 maps -> X....X.XXX.....X -
		take net1 e pool -> 192.0.2.1
	`}, {"a gateway that the engine lets Berth choose", `
		network net1 subnet=192.0.2.0/28,pool
		exclude net1 192.0.2.1-192.0.2.4
		attach A net=net1
		gateway A -> 192.0.2.5
	`}})
}

// GA-9: an excluded address that is asked for is refused, except with force.
func TestGA9Force(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/24
		exclude net1 192.0.2.10-192.0.2.19 note=printers
		take net1 a 192.0.2.10 ! inuse|invalid; 192.0.2.10; printers
		take net1 a 192.0.2.10 force -> 192.0.2.10
		take net1 a 192.0.2.10 -> 192.0.2.10
		take net1 b 192.0.2.10 force ! inuse; a
		reserve net1 c 192.0.2.11 ! inuse|invalid; 192.0.2.11; printers
		reserve net1 c 192.0.2.11 force -> 192.0.2.11
		take net1 b 192.0.2.11 force ! inuse; c
		attach A net=net1
		ask A mac=1 ip=192.0.2.12 ! inuse|invalid; 192.0.2.12; printers
		# whose it is by force gets it without
		ask A c mac=2 -> 192.0.2.11
		show net1 reserved -> c=192.0.2.11*
		# force goes over exclusions, and over nothing else
		take net1 d 192.0.2.0 force ! invalid; 192.0.2.0
		take net1 d 192.0.2.255 force ! invalid; broadcast
		take net1 d 198.51.100.1 force ! invalid|notfound; 198.51.100.1
		pool net1 192.0.2.10-192.0.2.20
		take net1 d pool force -> 192.0.2.20
		take net1 e pool force ! exhausted
		# several at once: none is taken where one is refused
		take net1 f ip0=192.0.2.50,ip1=192.0.2.13 ! inuse|invalid; 192.0.2.13
		take net1 g 192.0.2.50 -> 192.0.2.50
	`}})
}

// GA-10: an address in use may be excluded. Its holder keeps it. After the release nobody gets it, not even its last
// holder.
func TestGA10ExcludedInUse(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"a container's", `
			network net1 subnet=192.0.2.0/28,pool
			attach A net=net1
			ask A web mac=1 -> 192.0.2.1
			exclude net1 192.0.2.1 note=later
			has A web mac=1 -> 192.0.2.1
			has A web mac=1 ip=192.0.2.1 -> 192.0.2.1
			restart
			ask A web mac=1 -> 192.0.2.1
			back A 192.0.2.1
			ask A web mac=1 -> 192.0.2.2
			back A 192.0.2.2
			ask A mac=1 -> 192.0.2.2
			ask A web mac=9 -> 192.0.2.3
			ask A web mac=8 ip=192.0.2.1 ! inuse|invalid; later
			take net1 x pool -> 192.0.2.4
			take net1 y 192.0.2.1 ! inuse|invalid; later
			include net1 192.0.2.1
			take net1 y 192.0.2.1 -> 192.0.2.1
		`},
		{"one asked for by address", `
			network net1 subnet=192.0.2.0/28,pool
			attach A net=net1
			ask A web mac=1 ip=192.0.2.9 -> 192.0.2.9
			exclude net1 192.0.2.8/30
			back A 192.0.2.9
			restart
			ask A web mac=1 -> 192.0.2.1
		`},
		{"what is no container's", `
			network net1 subnet=192.0.2.0/28,pool
			take net1 rtr 0:ip0=pool,ip1=pool -> 192.0.2.1 192.0.2.2
			exclude net1 192.0.2.1-192.0.2.2
			take net1 rtr 0:ip0=pool,ip1=pool -> 192.0.2.1 192.0.2.2
			release net1 rtr 192.0.2.2
			release net1 rtr
			take net1 rtr pool -> 192.0.2.3
			show net1 exclusions -> -:192.0.2.1-192.0.2.2
		`},
		{"a reserved one stays its owner's", `
			network net1 subnet=192.0.2.0/28,pool
			reserve net1 web 192.0.2.5
			exclude net1 192.0.2.4-192.0.2.6
			attach A net=net1
			ask A web mac=1 -> 192.0.2.5
			back A 192.0.2.5
			ask A web mac=1 -> 192.0.2.5
			back A 192.0.2.5
			unreserve net1 web
			ask A web mac=1 -> 192.0.2.1
		`},
		{"its owner may also ask for it by address", `
			network net1 subnet=192.0.2.0/28,pool
			reserve net1 web 192.0.2.5
			exclude net1 192.0.2.4-192.0.2.6 note=x
			reserve net1 db 192.0.2.6 force
			attach A net=net1
			ask A web mac=1 ip=192.0.2.5 -> 192.0.2.5
			ask A web mac=2 ip=192.0.2.6 ! inuse; 192.0.2.6
			take net1 db 192.0.2.6 -> 192.0.2.6
			ask A other mac=3 ip=192.0.2.4 ! inuse; x
		`},
		{"the gateway", `
			network net1 subnet=192.0.2.0/28,gw=192.0.2.1,pool
			exclude net1 192.0.2.0-192.0.2.3
			attach A net=net1 -> 192.0.2.0/28 192.0.2.1
			gateway A ip=192.0.2.1 -> 192.0.2.1
			ask A mac=1 -> 192.0.2.4
			# without the exclusion the gateway is still nobody's
			include net1 192.0.2.0-192.0.2.3
			take net1 x 192.0.2.1 ! inuse; gateway
			ask A mac=2 -> 192.0.2.2
		`},
	})
}

// GA-20: exclusions are added and removed by range, and split. They lie inside one subnet, and may overlap pools,
// but not each other.
func TestGA20ExclusionRanges(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/25+192.0.2.128/25+2001:db8::/64
		pool net1 192.0.2.10-192.0.2.100 name=a
		exclude net1 192.0.2.20-192.0.2.50 note=printers
		exclude net1 192.0.2.5-192.0.2.12 note=routers
		exclude net1 2001:db8::/80
		show net1 exclusions -> routers:192.0.2.5-192.0.2.12 printers:192.0.2.20-192.0.2.50 -:2001:db8::-2001:db8::ffff:ffff:ffff
		exclude net1 192.0.2.50-192.0.2.60 ! overlap; 192.0.2.50; printers
		exclude net1 192.0.2.20-192.0.2.50 ! overlap; printers
		exclude net1 192.0.2.0-192.0.2.127 ! overlap
		exclude net1 192.0.2.30 ! overlap
		exclude net1 192.0.2.120-192.0.2.130 ! invalid|notfound; 192.0.2.120
		exclude net1 198.51.100.1 ! invalid|notfound; 198.51.100.1
		exclude nowhere 192.0.2.1 ! notfound; nowhere
		include net1 192.0.2.30-192.0.2.39
		show net1 exclusions -> routers:192.0.2.5-192.0.2.12 printers:192.0.2.20-192.0.2.29 printers:192.0.2.40-192.0.2.50 -:2001:db8::-2001:db8::ffff:ffff:ffff
		include net1 192.0.2.12-192.0.2.20
		show net1 exclusions -> routers:192.0.2.5-192.0.2.11 printers:192.0.2.21-192.0.2.29 printers:192.0.2.40-192.0.2.50 -:2001:db8::-2001:db8::ffff:ffff:ffff
		include net1 192.0.2.0/25
		show net1 exclusions -> -:2001:db8::-2001:db8::ffff:ffff:ffff
		include net1 192.0.2.0/25 ! notfound; 192.0.2.0/25
		include net1 198.51.100.1 ! notfound|invalid; 198.51.100.1
		include net1 2001:db8::
		show net1 exclusions -> -:2001:db8::1-2001:db8::ffff:ffff:ffff
		exclude net1 192.0.2.0-192.0.2.127 note=all-of-it
		exclude net1 192.0.2.128/25
		show net1 pools -> a:192.0.2.10-192.0.2.100
		take net1 x pool ! exhausted
	`}})
}
