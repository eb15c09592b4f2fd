package edit_test

import (
	"testing"

	"berth/internal/ipam/ipamtest"
)

// GA-13: a subnet grows if its new CIDR overlaps no other.
func TestGA13Expand(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"neighbours", `
			network net1 subnet=192.0.2.0/25,name=a+192.0.2.128/25,name=b
			network net2 subnet=192.0.3.0/24,name=c
			network far space=lab subnet=192.0.0.0/23
			subnet.set net1 a cidr=192.0.2.0/24 ! overlap; 192.0.2.128/25; net1
			subnet.set net1 b cidr=192.0.2.0/24 ! overlap; 192.0.2.0/25
			subnet.rm net1 b
			subnet.set net1 a cidr=192.0.2.0/23 ! overlap; 192.0.3.0/24; net2
			subnet.set net1 a cidr=192.0.2.0/24
			subnet.set net2 c cidr=192.0.2.0/23 ! overlap; 192.0.2.0/24; net1
			subnet.rm net1 a
			subnet.set net2 c cidr=192.0.0.0/22
			show net2 subnets -> c:192.0.0.0/22:-:false
			subnet net1 192.0.2.0/25 ! overlap; 192.0.0.0/22
		`},
		{"to another first address: everything stays in place", `
			network net1 subnet=192.0.2.128/25,name=a,gw=192.0.2.129
			pool net1 192.0.2.130+3 name=p
			exclude net1 192.0.2.131 note=x
			take net1 a pool -> 192.0.2.130
			reserve net1 b 192.0.2.140 -> 192.0.2.140
			subnet.set net1 a cidr=192.0.2.0/23
			show net1 subnets -> a:192.0.2.0/23:192.0.2.129:false
			show net1 pools -> p:192.0.2.130-192.0.2.132
			show net1 maps -> XX.
			show net1 exclusions -> x:192.0.2.131-192.0.2.131
			take net1 c 192.0.2.130 ! inuse; a
			take net1 c 192.0.2.140 ! inuse; b
			take net1 c pool -> 192.0.2.132
			take net1 d 192.0.3.1 -> 192.0.3.1
			take net1 e 192.0.2.255 -> 192.0.2.255
			restart
			subnet.set net1 a cidr=192.0.2.0/25 ! inuse
			release net1 a
			release net1 a
		`},
		{"what becomes the network address is in use", `
			network net1 subnet=192.0.2.128/31,name=a
			take net1 rtr 192.0.2.128 -> 192.0.2.128
			subnet.set net1 a cidr=192.0.2.128/30 ! inuse|invalid; 192.0.2.128; rtr
			subnet.set net1 a cidr=192.0.2.0/24
			network net2 subnet=198.51.100.1/32,name=b,gw=198.51.100.1
			subnet.set net2 b cidr=198.51.100.0/30
			subnet.rm net2 b
			subnet net2 198.51.100.3/32 name=b gw=198.51.100.3
			subnet.set net2 b cidr=198.51.100.0/30 ! inuse|invalid; 198.51.100.3; broadcast
		`},
	})
}

// GA-14: a subnet cannot lose a lease, a reservation or an exclusion. Its pools are trimmed.
func TestGA14Shrink(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"pools are trimmed", `
			network net1 subnet=192.0.2.0/24,name=a
			pool net1 192.0.2.10-192.0.2.19 name=low
			pool net1 192.0.2.100-192.0.2.199 name=mid
			pool net1 192.0.2.200-192.0.2.209 name=high
			take net1 x mid -> 192.0.2.100
			subnet.set net1 a cidr=192.0.2.0/25
			show net1 pools -> low:192.0.2.10-192.0.2.19 mid:192.0.2.100-192.0.2.127
			show net1 free -> 10 26
			subnet.set net1 a cidr=192.0.2.0/24
			show net1 pools -> low:192.0.2.10-192.0.2.19 mid:192.0.2.100-192.0.2.127
			subnet.set net1 a cidr=192.0.2.64/26
			show net1 pools -> mid:192.0.2.100-192.0.2.127
			restart
			take net1 y pool -> 192.0.2.101
		`},
		{"a lease", `
			network net1 subnet=192.0.2.0/24,name=a,pool
			take net1 rtr 192.0.2.200
			subnet.set net1 a cidr=192.0.2.0/25 ! inuse; 192.0.2.200; rtr
			subnet.set net1 a cidr=192.0.2.128/25
			subnet.set net1 a cidr=192.0.2.192/28 
			show net1 pools -> -:192.0.2.192-192.0.2.207
			show net1 maps -> X.......X......X
		`},
		{"a lease that would become the network or the broadcast address", `
			network net1 subnet=192.0.2.0/24,name=a,pool
			take net1 rtr 192.0.2.127
			subnet.set net1 a cidr=192.0.2.0/25 ! inuse|invalid; 192.0.2.127; rtr
			release net1 rtr
			take net1 rtr 192.0.2.128
			subnet.set net1 a cidr=192.0.2.128/25 ! inuse|invalid; 192.0.2.128; rtr
			release net1 rtr
			reserve net1 web 192.0.2.127
			subnet.set net1 a cidr=192.0.2.0/25 ! inuse|invalid; 192.0.2.127; web
			unreserve net1 web
			subnet.set net1 a cidr=192.0.2.0/25
			restart
			take net1 b 192.0.2.126 -> 192.0.2.126
		`},
		{"a reservation", `
			network net1 subnet=192.0.2.0/24,name=a,pool
			reserve net1 web 192.0.2.200
			subnet.set net1 a cidr=192.0.2.0/25 ! inuse; 192.0.2.200; web
			unreserve net1 web
			subnet.set net1 a cidr=192.0.2.0/25
		`},
		{"an exclusion, in whole or in part", `
			network net1 subnet=192.0.2.0/24,name=a,pool
			exclude net1 192.0.2.120-192.0.2.135 note=printers
			subnet.set net1 a cidr=192.0.2.0/25 ! inuse; 192.0.2.12; printers
			subnet.set net1 a cidr=192.0.2.128/25 ! inuse; printers
			include net1 192.0.2.128-192.0.2.135
			subnet.set net1 a cidr=192.0.2.128/25 ! inuse; printers
			subnet.set net1 a cidr=192.0.2.0/25
			show net1 exclusions -> printers:192.0.2.120-192.0.2.127
		`},
		{"the gateway", `
			network net1 subnet=192.0.2.0/24,name=a,gw=192.0.2.254,pool
			subnet.set net1 a cidr=192.0.2.0/25 ! inuse|invalid; 192.0.2.254; gateway
			subnet.set net1 a cidr=192.0.2.0/25 gw=192.0.2.200 ! invalid; 192.0.2.200
			subnet.set net1 a cidr=192.0.2.0/25 gw=192.0.2.127 ! invalid; 192.0.2.127
			subnet.set net1 a cidr=192.0.2.0/25 gw=192.0.2.2
			show net1 subnets -> a:192.0.2.0/25:192.0.2.2:false
			subnet.set net1 a cidr=192.0.2.0/26 gw=none
			show net1 subnets -> a:192.0.2.0/26:-:false
			take net1 x 192.0.2.2 -> 192.0.2.2
			subnet.set net1 a cidr=192.0.2.0/24 gw=192.0.2.254
			take net1 y 192.0.2.254 ! inuse; gateway
		`},
		{"a memory is no lease: it is forgotten", `
			network net1 subnet=192.0.2.0/24,name=a,pool
			take net1 x 192.0.2.200
			take net1 y 192.0.2.127
			take net1 z 192.0.2.9
			release net1 x
			release net1 y
			release net1 z
			subnet.set net1 a cidr=192.0.2.0/25
			restart
			subnet.set net1 a cidr=192.0.2.0/24
			restart
			take net1 x 192.0.2.200 -> 192.0.2.200
		`},
		{"to another place altogether, while nothing is in use", `
			network net1 subnet=192.0.2.0/24,name=a,pool
			take net1 x 192.0.2.200
			subnet.set net1 a cidr=198.51.100.0/24 ! inuse; x
		`},
		{"an exclusion that is not cut off", `
			network net1 subnet=192.0.2.0/24,name=a
			exclude net1 192.0.2.0-192.0.2.9
			subnet.set net1 a cidr=192.0.2.0/25
			show net1 exclusions -> -:192.0.2.0-192.0.2.9
		`},
	})
}
