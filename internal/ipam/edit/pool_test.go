package edit_test

import (
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// GA-7: a range is start-end, start+size, a CIDR, or one address.
func TestGA7Ranges(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 subnet=192.0.2.0/24+2001:db8::/64
		pool net1 192.0.2.10-192.0.2.19 name=ends
		pool net1 192.0.2.20+10 name=size
		pool net1 192.0.2.128/26 name=cidr
		pool net1 192.0.2.200 name=one
		pool net1 2001:db8::10+256 name=six
		show net1 pools -> ends:192.0.2.10-192.0.2.19 size:192.0.2.20-192.0.2.29 cidr:192.0.2.128-192.0.2.191 one:192.0.2.200-192.0.2.200 six:2001:db8::10-2001:db8::10f
	`)
	for _, text := range []string{"192.0.2.19-192.0.2.10", "192.0.2.1-2001:db8::1", "192.0.2.1/24", "192.0.2.1+0",
		"192.0.2.1+", "192.0.2.1-",
		"::ffff:192.0.2.1", "::ffff:192.0.2.0/120", "192.0.2.256", "192.0.2.01", "255.255.255.255+2",
		"192.0.2.1-192.0.2.5/24", "fe80::1%eth0", "a-b"} {
		var rng ipam.Range
		if err := rng.UnmarshalText([]byte(text)); ipamtest.KindOf(err) != "invalid" {
			t.Errorf("%s is %s, %v", text, rng, err)
		}
	}
}

// GA-15: without a pool Berth chooses no address. A given one still works.
func TestGA15NoPool(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/24,gw=192.0.2.1,name=lan
		take net1 a pool ! exhausted; net1; pool
		reserve net1 a pool ! exhausted; pool
		take net1 a front ! notfound|exhausted; front
		take net1 a 192.0.2.7 -> 192.0.2.7
		reserve net1 b 192.0.2.8 -> 192.0.2.8
		attach A net=net1 -> 192.0.2.0/24 192.0.2.1
		ask A mac=1 ! exhausted; 192.0.2.0/24; pool
		ask A mac=1 ip=192.0.2.9 -> 192.0.2.9
		# a reserved one is no dynamic one
		ask A b mac=2 -> 192.0.2.8
		back A 192.0.2.9
		# asked for by address then: it is what the same endpoint gets back
		ask A mac=1 -> 192.0.2.9
		pool net1 192.0.2.100+2
		ask A mac=3 -> 192.0.2.100
		pool.rm net1 192.0.2.100+2
		ask A mac=4 ! exhausted
		has A mac=3 -> 192.0.2.100
	`}})
}

// GA-16: `pool` searches the pools of the first subnet, then of the next. A name searches only the ranges with that
// name.
func TestGA16Order(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"pools, then subnets, in the order in which they were added", `
			network net1
			subnet net1 198.51.100.0/29 name=first
			subnet net1 192.0.2.0/29 name=second
			pool net1 192.0.2.1
			pool net1 198.51.100.2+2
			pool net1 198.51.100.5
			take net1 a pool -> 198.51.100.2
			take net1 b pool -> 198.51.100.3
			take net1 c pool -> 198.51.100.5
			take net1 d pool -> 192.0.2.1
			take net1 e pool ! exhausted; net1
			# whose pool has room again: the first that does
			release net1 b
			take net1 e pool -> 198.51.100.3
			restart
			release net1 d
			release net1 c
			take net1 f pool -> 198.51.100.5
			take net1 g pool -> 192.0.2.1
		`},
		{"a released address of the first pool goes before one of the next that nobody had", `
			network net1 subnet=192.0.2.0/24
			pool net1 192.0.2.10+2 name=a
			pool net1 192.0.2.20+2 name=b
			take net1 x pool -> 192.0.2.10
			take net1 y pool -> 192.0.2.11
			release net1 y
			take net1 z pool -> 192.0.2.11
			release net1 x
			release net1 z
			# released longest ago
			take net1 w pool -> 192.0.2.10
		`},
		{"a name is searched over its ranges and subnets, and never spills", `
			network net1 subnet=192.0.2.0/24+198.51.100.0/24+2001:db8::/64
			pool net1 192.0.2.10 name=front
			pool net1 192.0.2.20+5
			pool net1 198.51.100.10 name=front
			pool net1 198.51.100.20 name=back
			pool net1 192.0.2.12 name=front
			pool net1 2001:db8::10 name=front
			take net1 a front -> 192.0.2.10
			take net1 b front -> 192.0.2.12
			take net1 c front -> 198.51.100.10
			take net1 d front -> 2001:db8::10
			take net1 e front ! exhausted; front
			take net1 e back -> 198.51.100.20
			take net1 f back ! exhausted; back
			take net1 f nowhere ! notfound; nowhere
			take net1 f pool -> 192.0.2.20
			reserve net1 g front ! exhausted; front
			release net1 c
			reserve net1 g front -> 198.51.100.10
		`},
		{"only one subnet", `
			network net1 subnet=192.0.2.0/30,name=a,pool+198.51.100.0/30,name=b,pool
			pool.set net1 192.0.2.0/30 front
			pool.set net1 198.51.100.0/30 front
			take net1 x pool subnet=b -> 198.51.100.1
			take net1 y front subnet=b -> 198.51.100.2
			take net1 z pool subnet=b ! exhausted; 198.51.100.0/30
			take net1 z 192.0.2.1 subnet=b ! invalid; 192.0.2.1; 198.51.100.0/30
			take net1 z pool subnet=c ! notfound; c
			take net1 z pool -> 192.0.2.1
		`},
		{"Docker: over the pools of one subnet, never to the next", `
			network net1 subnet=192.0.2.0/24,name=a+198.51.100.0/24,pool
			pool net1 192.0.2.10+2 name=front
			pool net1 192.0.2.20 name=back
			attach A net=net1 -> 192.0.2.0/24
			ask A mac=1 -> 192.0.2.10
			ask A mac=2 -> 192.0.2.11
			ask A mac=3 -> 192.0.2.20
			ask A mac=4 ! exhausted; 192.0.2.0/24
			take net1 x pool -> 198.51.100.1
		`},
		{"Docker: a named pool never spills", `
			network net1 subnet=192.0.2.0/24,name=a+198.51.100.0/24,pool
			pool net1 192.0.2.10+2 name=front
			pool net1 192.0.2.20+2 name=back
			pool net1 192.0.2.30 name=front
			attach A net=net1 pool=front -> 192.0.2.0/24
			ask A mac=1 -> 192.0.2.10
			ask A mac=2 -> 192.0.2.11
			ask A mac=3 -> 192.0.2.30
			ask A mac=4 ! exhausted; front
			# a wanted address may lie anywhere in the subnet
			ask A mac=4 ip=192.0.2.99 -> 192.0.2.99
			attach B net=net1 cidr=192.0.2.0/24 pool=back -> 192.0.2.0/24
			ask B mac=5 -> 192.0.2.20
		`},
	})
}

// GA-17: a pool lies in one subnet, overlaps no other pool, and shows what is in use already.
func TestGA17PoolAdd(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/25,name=a+192.0.2.128/25,name=b
		network net2 subnet=198.51.100.0/24
		pool net1 198.51.100.1+5 ! notfound|invalid; 198.51.100.1; net1
		pool net1 192.0.2.120-192.0.2.135 ! invalid|notfound; 192.0.2.120
		pool net1 192.0.2.0/24 ! invalid|notfound; 192.0.2.0/24
		pool net1 192.0.2.10-192.0.2.20 subnet=b ! invalid|notfound; 192.0.2.128/25
		pool net1 192.0.2.10-192.0.2.20 subnet=c ! notfound; c
		pool nowhere 192.0.2.10 ! notfound; nowhere
		take net1 x 192.0.2.12
		reserve net1 y 192.0.2.13
		exclude net1 192.0.2.15-192.0.2.16
		pool net1 192.0.2.10-192.0.2.20 name=p
		show net1 maps -> ..XX.XX....
		show net1 free -> 7
		pool net1 192.0.2.20-192.0.2.30 ! overlap; 192.0.2.20; 192.0.2.10-192.0.2.20
		pool net1 192.0.2.5-192.0.2.10 ! overlap; p
		pool net1 192.0.2.11-192.0.2.12 name=p ! overlap
		pool net1 192.0.2.0/25 ! overlap
		pool net1 192.0.2.21-192.0.2.30 name=p
		pool net1 192.0.2.9
		take net1 z p -> 192.0.2.10
		take net1 w pool -> 192.0.2.11
	`}, {"the order of the pools is that of their addition", `
		network net1 subnet=192.0.2.0/24
		pool net1 192.0.2.20 name=b
		pool net1 192.0.2.10 name=a
		take net1 x pool -> 192.0.2.20
		take net1 y pool -> 192.0.2.10
	`}, {"ranges without a host address", `
		network net1 subnet=192.0.2.0/24+2001:db8::/64
		pool net1 192.0.2.0 ! invalid; 192.0.2.0
		pool net1 192.0.2.255 ! invalid; 192.0.2.255
		pool net1 2001:db8:: ! invalid; 2001:db8::
		pool net1 192.0.2.254+2
		take net1 x pool -> 192.0.2.254
		take net1 x2 pool ! exhausted
	`}})
}

// GA-18: shortcuts: a subnet with a pool of the whole subnet, a pool by the name of its subnet, a pool by CIDR.
func TestGA18Shortcuts(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1
		subnet net1 10.0.0.0/27 pool
		subnet net1 10.0.1.0/27 name=lan
		subnet net1 10.0.2.0/27
		pool net1 - subnet=lan name=all-of-it
		pool net1 10.0.2.0/27 name=third
		show net1 pools -> -:10.0.0.0-10.0.0.31 all-of-it:10.0.1.0-10.0.1.31 third:10.0.2.0-10.0.2.31
		show net1 free -> 30 30 30
		pool net1 - subnet=lan ! overlap; 10.0.1.0/27
		pool net1 - subnet=10.0.0.0/27 ! overlap
		pool net1 - subnet=old ! notfound; old
		pool net1 - ! invalid
		take net1 x third -> 10.0.2.1
		pool.rm net1 third
		pool net1 - subnet=10.0.2.0/27
		show net1 maps -> X..............................X X..............................X XX.............................X
	`}})
}

// GA-19: removing a range splits pools, and both parts keep the name. Addresses in use stay in use.
func TestGA19PoolRemove(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"the seed's own", `
			network net1 subnet=192.0.2.0/24
			pool net1 192.0.2.10-192.0.2.100 name=pool1
			pool.rm net1 192.0.2.20-192.0.2.50
			show net1 pools -> pool1:192.0.2.10-192.0.2.19 pool1:192.0.2.51-192.0.2.100
			pool.rm net1 192.0.2.10
			pool.rm net1 192.0.2.100
			show net1 pools -> pool1:192.0.2.11-192.0.2.19 pool1:192.0.2.51-192.0.2.99
			pool.rm net1 192.0.2.15-192.0.2.60
			show net1 pools -> pool1:192.0.2.11-192.0.2.14 pool1:192.0.2.61-192.0.2.99
			pool.rm net1 192.0.2.61-192.0.2.99
			show net1 pools -> pool1:192.0.2.11-192.0.2.14
			pool.rm net1 192.0.2.0/24
			show net1 pools ->
			pool.rm net1 192.0.2.0/24 ! notfound; 192.0.2.0/24
		`},
		{"by name: all of its ranges, in all subnets", `
			network net1 subnet=192.0.2.0/24+198.51.100.0/24
			pool net1 192.0.2.10 name=a
			pool net1 192.0.2.11 name=b
			pool net1 192.0.2.12 name=a
			pool net1 198.51.100.1 name=a
			pool.rm net1 a
			show net1 pools -> b:192.0.2.11-192.0.2.11
			pool.rm net1 a ! notfound; a
			pool.rm net1 192.0.2.10 ! notfound; 192.0.2.10
			pool.rm net1 203.0.113.0/24 ! notfound|invalid; 203.0.113.0/24
		`},
		{"over several pools at once", `
			network net1 subnet=192.0.2.0/24
			pool net1 192.0.2.10-192.0.2.19 name=a
			pool net1 192.0.2.20-192.0.2.29 name=b
			pool net1 192.0.2.30-192.0.2.39 name=c
			pool.rm net1 192.0.2.15-192.0.2.34
			show net1 pools -> a:192.0.2.10-192.0.2.14 c:192.0.2.35-192.0.2.39
		`},
		{"the parts stand where the whole stood", `
			network net1 subnet=192.0.2.0/24
			pool net1 192.0.2.10-192.0.2.19 name=a
			pool net1 192.0.2.5 name=b
			pool.rm net1 192.0.2.11-192.0.2.18
			take net1 x pool -> 192.0.2.10
			take net1 y pool -> 192.0.2.19
			take net1 z pool -> 192.0.2.5
		`},
		{"in use stays in use", `
			network net1 subnet=192.0.2.0/24
			pool net1 192.0.2.10-192.0.2.19 name=a
			attach A net=net1 pool=a
			ask A mac=1 -> 192.0.2.10
			take net1 x pool -> 192.0.2.11
			reserve net1 y pool -> 192.0.2.12
			pool.rm net1 192.0.2.10-192.0.2.13
			show net1 pools -> a:192.0.2.14-192.0.2.19
			has A mac=1 -> 192.0.2.10
			take net1 x pool -> 192.0.2.11
			ask A y mac=2 -> 192.0.2.12
			take net1 z 192.0.2.10 ! inuse; 02:00:00:00:00:01
			ask A mac=3 -> 192.0.2.14
			back A 192.0.2.10
			# an automatic address outside of the pools is not remembered
			ask A mac=1 -> 192.0.2.15
			ask A mac=4 -> 192.0.2.16
		`},
	})
}

// GA-21: a pool is modified alone; a name that covers several ranges is modified as one.
func TestGA21PoolModify(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"", `
			network net1 subnet=192.0.2.0/24+198.51.100.0/24
			pool net1 192.0.2.10+2 name=a
			pool net1 192.0.2.20+2 name=b
			pool net1 198.51.100.10 name=a
			pool.set net1 a front
			show net1 pools -> front:192.0.2.10-192.0.2.11 b:192.0.2.20-192.0.2.21 front:198.51.100.10-198.51.100.10
			pool.set net1 192.0.2.10+2 c
			show net1 pools -> c:192.0.2.10-192.0.2.11 b:192.0.2.20-192.0.2.21 front:198.51.100.10-198.51.100.10
			pool.set net1 192.0.2.10 d ! notfound; 192.0.2.10
			pool.set net1 a d ! notfound; a
			pool.set net1 c pool ! invalid; pool
			pool.set net1 c 192.0.2.10 ! invalid; 192.0.2.10
			pool.set net1 c -
			pool.set net1 198.51.100.10 b
			show net1 pools -> -:192.0.2.10-192.0.2.11 b:192.0.2.20-192.0.2.21 b:198.51.100.10-198.51.100.10
			take net1 x b -> 192.0.2.20
			take net1 y b -> 192.0.2.21
			take net1 z b -> 198.51.100.10
		`},
		{"an attachment follows", `
			network net1 subnet=192.0.2.0/24
			pool net1 192.0.2.10+2 name=a
			pool net1 192.0.2.20+2 name=b
			attach A net=net1 pool=a
			ask A mac=1 -> 192.0.2.10
			pool.set net1 a front
			ask A mac=2 -> 192.0.2.11
			ask A mac=3 ! exhausted; front
			restart
			pool.set net1 front b
			ask A mac=3 -> 192.0.2.20
			pool net1 192.0.2.30 name=a
			ask A mac=4 -> 192.0.2.21
			ask A mac=5 ! exhausted; b
			ask A mac=1 -> 192.0.2.10
		`},
		{"one range of a name goes: the attachment stays with the name", `
			network net1 subnet=192.0.2.0/24
			pool net1 192.0.2.10 name=a
			pool net1 192.0.2.20 name=a
			attach A net=net1 pool=a
			pool.set net1 192.0.2.10 b
			ask A mac=1 -> 192.0.2.20
			ask A mac=2 ! exhausted; a
			pool.rm net1 a
			ask A mac=2 ! exhausted|notfound; a
			has A mac=1 -> 192.0.2.20
			pool net1 192.0.2.30+2 name=a
			ask A mac=2 -> 192.0.2.30
		`},
	})
}
