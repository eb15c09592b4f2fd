package edit_test

import (
	"fmt"
	"net/netip"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// GA-3: a network has many subnets. Subnets of one space never overlap; those of different spaces may.
func TestGA3SubnetsDoNotOverlap(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"within a network and across those of a space", `
			network net1 subnet=192.0.2.0/25
			network net2
			subnet net1 192.0.2.0/25 ! overlap; 192.0.2.0/25; net1
			subnet net1 192.0.2.0/24 ! overlap; 192.0.2.0/24; 192.0.2.0/25
			subnet net1 192.0.2.64/26 ! overlap; 192.0.2.0/25
			subnet net1 192.0.2.127/32 ! overlap; 192.0.2.0/25
			subnet net2 192.0.2.0/25 ! overlap; net1
			subnet net2 192.0.0.0/16 ! overlap; net1
			subnet net2 192.0.2.100/31 ! overlap; net1
			subnet net2 0.0.0.0/0 ! invalid|overlap; 0.0.0.0/0
			subnet net2 192.0.2.128/25
			subnet net1 192.0.3.0/24
			subnet net1 2001:db8::/32
			subnet net2 2001:db8:1::/48 ! overlap; 2001:db8::/32
			subnet net2 2000::/3 ! overlap; 2001:db8::/32
			show net1 subnets -> -:192.0.2.0/25:-:false -:192.0.3.0/24:-:false -:2001:db8::/32:-:false
		`},
		{"what Docker made counts, whoever came first", `
			attach A cidr=192.0.2.0/24 -> 192.0.2.0/24
			network net1
			subnet net1 192.0.2.0/25 ! overlap; 192.0.2.0/24
			subnet net1 192.0.2.0/24 ! overlap; 192.0.2.0/24
			subnet net1 198.51.100.0/24
			attach B cidr=198.51.100.0/25 ! overlap; 198.51.100.0/24; net1
		`},
		{"other spaces", `
			network net1 subnet=192.0.2.0/24,pool
			network net2 space=lab subnet=192.0.2.0/24,pool
			network net3 space=lab
			subnet net3 192.0.2.0/25 ! overlap; net2
			take net1 a pool -> 192.0.2.1
			take net2 a pool -> 192.0.2.1
			take net2 b pool -> 192.0.2.2
		`},
	})
}

// GA-4: a subnet needs only its CIDR.
func TestGA4Subnet(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1
		subnet net1 192.0.2.0/24 -> 192.0.2.0/24
		subnet net1 198.51.100.0/24 gw=198.51.100.1 name=old dhcp pool
		exclude net1 198.51.100.9 note=printer
		show net1 subnets -> -:192.0.2.0/24:-:false old:198.51.100.0/24:198.51.100.1:true
		show net1 pools -> -:198.51.100.0-198.51.100.255
		show net1 exclusions -> printer:198.51.100.9-198.51.100.9
	`)
	seen := map[ipam.ID]bool{{}: true}
	for _, sub := range r.Show("net1").Subnets {
		if seen[sub.ID] {
			t.Errorf("the id %s is not its own", sub.ID)
		}
		seen[sub.ID] = true
	}
	for text, why := range map[string]string{"192.0.2.1/24": "192.0.2.0/24", "::ffff:203.0.113.0/120": "203.0.113.0"} {
		_ = refused(r, "subnet "+text, "invalid;"+why, ipam.EditOptions{},
			&ipam.AddSubnet{Network: "net1", SubnetSpec: ipam.SubnetSpec{CIDR: netip.MustParsePrefix(text)}})
	}
	for _, spec := range []ipam.SubnetSpec{{}, {Bits: 26}, {From: netip.MustParsePrefix("10.0.0.0/16")},
		{CIDR: netip.MustParsePrefix("203.0.113.0/24"), Bits: 26, From: netip.MustParsePrefix("10.0.0.0/16")},
		{Bits: 15, From: netip.MustParsePrefix("10.0.0.0/16")}, {Bits: 33, From: netip.MustParsePrefix("10.0.0.0/16")},
		{Bits: -1, From: netip.MustParsePrefix("10.0.0.0/16")},
		{Bits: 26, From: netip.MustParsePrefix("10.0.0.1/16")},
		{Bits: 124, From: netip.MustParsePrefix("::ffff:10.0.0.0/112")}} {
		_ = refused(r, fmt.Sprintf("%+v", spec), "invalid", ipam.EditOptions{},
			&ipam.AddSubnet{Network: "net1", SubnetSpec: spec})
	}
}

// The next free prefix of a length in a larger one is the lowest that overlaps nothing of the space.
func TestNextFreePrefix(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1
		network net2
		network far space=lab
		subnet net2 10.0.0.64/26
		attach A cidr=10.0.0.192/27
		subnet net1 /26 from=10.0.0.0/24 pool name=a -> 10.0.0.0/26
		subnet net1 /26 from=10.0.0.0/24 -> 10.0.0.128/26
		subnet net1 /26 from=10.0.0.0/24 ! exhausted; 10.0.0.0/24; /26
		subnet net1 /27 from=10.0.0.0/24 -> 10.0.0.224/27
		subnet net1 /27 from=10.0.0.0/24 ! exhausted; 10.0.0.0/24
		subnet far /24 from=10.0.0.0/24 -> 10.0.0.0/24
		subnet net1 /64 from=2001:db8::/48 -> 2001:db8::/64
		subnet net1 /64 from=2001:db8::/48 -> 2001:db8:0:1::/64
		subnet.rm net1 2001:db8::/64
		subnet net1 /64 from=2001:db8::/48 gw=2001:db8::1 -> 2001:db8::/64
		show net1 pools -> -:10.0.0.0-10.0.0.63
	`}})
}

// GA-5: a gateway is optional. It is a host address of its subnet, and nobody else has it.
func TestGA5Gateway(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"none", `
			network net1 subnet=192.0.2.0/29,pool
			take net1 a pool -> 192.0.2.1
			show net1 flat -> 192.0.2.0/29 - - - XX.....X
		`},
		{"it is nobody's else", `
			network net1 subnet=192.0.2.0/29,gw=192.0.2.1,pool
			take net1 a pool -> 192.0.2.2
			take net1 b 192.0.2.1 ! inuse; 192.0.2.1; gateway
			take net1 b 192.0.2.1 force ! inuse; gateway
			reserve net1 b 192.0.2.1 ! inuse; gateway
			show net1 maps -> XXX....X
		`},
		{"where it cannot be", `
			network net1 subnet=192.0.2.0/24+2001:db8::/64
			subnet.set net1 192.0.2.0/24 gw=192.0.2.0 ! invalid; 192.0.2.0; network
			subnet.set net1 192.0.2.0/24 gw=192.0.2.255 ! invalid; 192.0.2.255; broadcast
			subnet.set net1 192.0.2.0/24 gw=198.51.100.1 ! invalid; 198.51.100.1; 192.0.2.0/24
			subnet.set net1 192.0.2.0/24 gw=2001:db8::1 ! invalid; 2001:db8::1; 192.0.2.0/24
			subnet.set net1 2001:db8::/64 gw=2001:db8:: ! invalid; 2001:db8::
			subnet.set net1 2001:db8::/64 gw=2001:db8:1::1 ! invalid
			subnet net1 198.51.100.0/24 gw=198.51.100.0 ! invalid; network
			subnet net1 198.51.100.0/24 gw=198.51.100.255 ! invalid; broadcast
			subnet net1 198.51.100.0/24 gw=192.0.2.1 ! invalid; 192.0.2.1
			subnet.set net1 2001:db8::/64 gw=2001:db8::ffff
			subnet net1 198.51.100.0/31 gw=198.51.100.0
			show net1 subnets -> -:192.0.2.0/24:-:false -:2001:db8::/64:2001:db8::ffff:false -:198.51.100.0/31:198.51.100.0:false
		`},
		{"changed and taken away", `
			network net1 subnet=192.0.2.0/29,gw=192.0.2.1,pool
			subnet.set net1 192.0.2.0/29 gw=192.0.2.6
			show net1 maps -> X.....XX
			take net1 a pool -> 192.0.2.1
			subnet.set net1 192.0.2.0/29 gw=192.0.2.1 ! inuse; 192.0.2.1; a
			subnet.set net1 192.0.2.0/29 gw=192.0.2.6
			subnet.set net1 192.0.2.0/29 gw=none
			take net1 b 192.0.2.6 -> 192.0.2.6
			show net1 subnets -> -:192.0.2.0/29:-:false
			release net1 a
			# only remembered now
			subnet.set net1 192.0.2.0/29 gw=192.0.2.1
			show net1 maps -> XX....XX
			restart
			take net1 a pool -> 192.0.2.2
		`},
		{"reserved", `
			network net1 subnet=192.0.2.0/29,pool
			reserve net1 web 192.0.2.3
			subnet.set net1 192.0.2.0/29 gw=192.0.2.3 ! inuse; 192.0.2.3; web
			unreserve net1 web
			subnet.set net1 192.0.2.0/29 gw=192.0.2.3
		`},
		{"a Docker network is attached", `
			network net1 subnet=192.0.2.0/24,gw=192.0.2.1,pool
			attach A net=net1 -> 192.0.2.0/24 192.0.2.1
			subnet.set net1 192.0.2.0/24 gw=192.0.2.2 ! inuse; 192.0.2.0/24; Docker
			subnet.set net1 192.0.2.0/24 gw=none ! inuse; Docker
			subnet.set net1 192.0.2.0/24 gw=192.0.2.1
			detach A
			subnet.set net1 192.0.2.0/24 gw=192.0.2.2
			attach A net=net1 -> 192.0.2.0/24 192.0.2.2
		`},
	})
}

// GA-11: subnets are named by CIDR, name or id. A subnet in use cannot be removed.
func TestGA11SubnetModifyRemove(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"by CIDR, name and id", `
			network net1 subnet=192.0.2.0/26,name=a+192.0.2.64/26,name=b+192.0.2.128/26
			network net2 subnet=198.51.100.0/24,name=a
			subnet.set net1 a name=aa
			subnet.set net1 192.0.2.64/26 name=bb
			subnet.set net1 ID:192.0.2.128/26 name=cc
			show net1 subnets -> aa:192.0.2.0/26:-:false bb:192.0.2.64/26:-:false cc:192.0.2.128/26:-:false
			subnet.set net1 bb name=aa ! inuse|invalid|overlap; aa
			subnet.set net1 a name=x ! notfound; a; net1
			subnet.set net1 198.51.100.0/24 name=x ! notfound; 198.51.100.0/24; net1
			subnet net1 192.0.2.192/26 name=aa ! inuse|invalid|overlap; aa
			subnet.set net1 bb name=
			show net1 subnets -> aa:192.0.2.0/26:-:false -:192.0.2.64/26:-:false cc:192.0.2.128/26:-:false
			subnet.rm net1 ID:192.0.2.0/26
			subnet.rm net1 192.0.2.64/26
			subnet.rm net1 cc
			subnet.rm net1 cc ! notfound; cc
			show net1 subnets ->
			show net2 subnets -> a:198.51.100.0/24:-:false
			subnet net2 192.0.2.0/24
		`},
		{"only when unused", `
			network net1 subnet=192.0.2.0/24,gw=192.0.2.1,name=lan,pool
			exclude net1 192.0.2.9
			take net1 rtr 192.0.2.7
			subnet.rm net1 lan ! inuse; 192.0.2.0/24; rtr
			network.rm net1 ! inuse; rtr
			network.rm net1 force ! inuse; rtr
			release net1 rtr
			reserve net1 web 192.0.2.8
			subnet.rm net1 lan ! inuse; web
			network.rm net1 ! inuse; web
			unreserve net1 web
			attach A net=net1
			subnet.rm net1 lan ! inuse; Docker
			network.rm net1 force ! inuse; Docker
			detach A
			subnet.rm net1 lan
			# nothing is left of what was remembered there
			subnet net1 192.0.2.0/24 pool
			take net1 x pool -> 192.0.2.1
		`},
		{"a network with reservations goes by force", `
			network net1 subnet=192.0.2.0/24,pool+198.51.100.0/24,pool
			reserve net1 web 192.0.2.8,198.51.100.8
			reserve net1 db pool
			network.rm net1 force
			show networks ->
			network net1 subnet=192.0.2.0/24,pool
			show net1 reserved ->
			take net1 a 192.0.2.8 -> 192.0.2.8
		`},
		{"the CIDR stays while a Docker network is attached", `
			network net1 subnet=192.0.2.0/24,name=lan,pool
			attach A net=net1
			subnet.set net1 lan cidr=192.0.2.0/25 ! inuse; 192.0.2.0/24; Docker
			subnet.set net1 lan cidr=192.0.2.0/23 ! inuse; Docker
			subnet.set net1 lan cidr=192.0.2.0/24 name=lan2
			pool.rm net1 192.0.2.0/24
			pool net1 192.0.2.10+3 name=front
			exclude net1 192.0.2.10
			network.set net1 name=core quarantine=1h
			ask A -> 192.0.2.11
			detach A
			subnet.set core lan2 cidr=192.0.2.0/25
		`},
	})
}

// GA-12: at most one subnet of a family has the DHCP flag in a network.
func TestGA12DHCP(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/25,name=a,dhcp+192.0.2.128/25,name=b+2001:db8::/64,name=six
		network net2 subnet=198.51.100.0/24,dhcp
		subnet.set net1 b dhcp=true ! invalid|inuse|overlap; 192.0.2.0/25; dhcp
		subnet net1 203.0.113.0/24 dhcp ! invalid|inuse|overlap; 192.0.2.0/25; dhcp
		subnet.set net1 six dhcp=true
		subnet net1 2001:db8:1::/64 dhcp ! invalid|inuse|overlap; 2001:db8::/64; dhcp
		subnet.set net1 a dhcp=true
		subnet.set net1 a dhcp=false
		subnet.set net1 b dhcp=true
		subnet.set net1 a dhcp=true ! invalid|inuse|overlap; 192.0.2.128/25; dhcp
		show net1 subnets -> a:192.0.2.0/25:-:false b:192.0.2.128/25:-:true six:2001:db8::/64:-:true
		subnet.rm net1 b
		subnet.set net1 a dhcp=true
		attach A net=net1
		subnet.set net1 a dhcp=false
	`}})
}
