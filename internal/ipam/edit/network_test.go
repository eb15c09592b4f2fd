package edit_test

import (
	"testing"

	"berth/internal/ipam/ipamtest"
)

// GA-1: networks of every kind.
func TestGA1KindsOfNetwork(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"L2 only", `
			network wire
			show wire subnets ->
			show wire flat -> - - - - -
			take wire rtr pool ! notfound|invalid|exhausted; wire; no subnet
			take wire rtr 192.0.2.1 ! notfound|invalid|exhausted; wire; no subnet
			reserve wire rtr ! notfound|invalid|exhausted; wire; no subnet
			attach A net=wire ! notfound|invalid|exhausted; wire; no subnet
			attach A net=wire six ! notfound|invalid|exhausted; wire
			pool wire 192.0.2.1+3 ! notfound|invalid; wire
			exclude wire 192.0.2.1 ! notfound|invalid; wire
			# one is added later
			subnet wire 192.0.2.0/24 pool -> 192.0.2.0/24
			take wire rtr pool -> 192.0.2.1
		`},
		{"IPv6 only", `
			network six subnet=2001:db8::/64,pool
			show six flat -> - - 2001:db8::/64 - -
			take six rtr pool -> 2001:db8::1
			attach A net=six ! notfound|invalid|exhausted; six; IPv4
			attach A net=six six -> 2001:db8::/64
			ask A -> 2001:db8::2
		`},
		{"without a pool", `
			network bare subnet=192.0.2.0/24,gw=192.0.2.1
			show bare pools ->
			take bare rtr pool ! exhausted; 192.0.2.0/24
			take bare rtr 192.0.2.9 -> 192.0.2.9
		`},
		{"with an IPv6 pool beside IPv4 without", `
			network dual subnet=192.0.2.0/24+2001:db8::/64,gw=2001:db8::1
			pool dual 2001:db8::10+16 name=six
			take dual rtr pool -> 2001:db8::10
			take dual rtr2 six -> 2001:db8::11
		`},
		{"with several pools", `
			network many subnet=192.0.2.0/24
			pool many 192.0.2.10+2 name=a
			pool many 192.0.2.20+2 name=b
			pool many 192.0.2.30
			show many pools -> a:192.0.2.10-192.0.2.11 b:192.0.2.20-192.0.2.21 -:192.0.2.30-192.0.2.30
		`},
		{"made whole or not at all", `
			network net1 subnet=192.0.2.0/24+192.0.2.128/25 ! overlap|invalid; 192.0.2.0/24; 192.0.2.128/25
			network net1 subnet=192.0.2.0/24,gw=198.51.100.1 ! invalid; 198.51.100.1
			network net1 subnet=192.0.2.0/24,dhcp+198.51.100.0/24,dhcp ! invalid|inuse|overlap; dhcp
			network net1 subnet=192.0.2.0/24,name=lan+198.51.100.0/24,name=lan ! invalid|inuse|overlap; lan
			show networks ->
			network net1 subnet=192.0.2.0/24,name=lan+198.51.100.0/24,name=old
			show net1 subnets -> lan:192.0.2.0/24:-:false old:198.51.100.0/24:-:false
		`},
	})
}

// GA-2: a network has a name, an id, a MAC prefix, tags, and its L2 attachment by host.
func TestGA2Network(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 mac=AA:00:01 tag.site=a tag.rack=7 link=h1,bridged,br0
		network net1 ! inuse|invalid|overlap; net1
		network net2 space=lab
		# a name is one network's in the whole store
		network net1 space=lab ! inuse|invalid|overlap; net1
		network.set net2 name=net1 ! inuse|invalid|overlap; net1
		network.set nowhere name=x ! notfound; nowhere
		network.rm nowhere ! notfound; nowhere
		show networks -> net1 net2
	`)
	n := r.Show("net1")
	if n.MACPrefix != "aa:00:01" || n.Tags["site"] != "a" || n.Tags["rack"] != "7" || len(n.Links) != 1 ||
		n.Links[0].Link != "br0" || n.Space != "local" || !n.Planned {
		t.Errorf("%+v", n)
	}
	byID := r.Show(n.ID.String())
	if byID.Name != "net1" {
		t.Errorf("by its id: %+v", byID)
	}
	r.Run(`
		network.set net1 name=core mac=aa:00:02 untag=rack tag.site=b tag.row=3 link=h2,macvlan,eth1 sticky=off quarantine=10m
		show networks -> core net2
		network.set ` + n.ID.String() + ` link=h1,routed,100
	`)
	got := r.Show("core")
	if got.ID != n.ID || got.MACPrefix != "aa:00:02" || len(got.Tags) != 2 || got.Tags["site"] != "b" ||
		got.Tags["row"] != "3" || got.Sticky || got.Quarantine.String() != "10m" {
		t.Errorf("%+v", got)
	}
	if len(got.Links) != 2 || got.Links[0].Mode != "routed" || got.Links[0].Link != "100" || got.Links[1].Host != "h2" {
		t.Errorf("links %+v", got.Links)
	}
	r.Run(`
		network.set core link=h1,, mac=
		network.rm core
		show networks -> net2
		network core space=lab
	`)
}

// GA-2: a bad name, MAC prefix or attachment is refused.
func TestGA2Refusals(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"names", `
			network pool ! invalid; pool
			network none ! invalid; none
			network all ! invalid; all
			network 192.0.2.1 ! invalid; 192.0.2.1
			network -net ! invalid; -net
			network a/b ! invalid; a/b
			network aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ! invalid; 63
			network net1 subnet=192.0.2.0/24,name=pool ! invalid; pool
			network net1 subnet=192.0.2.0/24,name=192.0.2.0 ! invalid
			network net1 space=a/b ! invalid; a/b
			network net1
			network.set net1 name=all ! invalid; all
			subnet net1 192.0.2.0/24 name=none ! invalid; none
			subnet net1 192.0.2.0/24 name=lan
			pool net1 192.0.2.1 name=pool ! invalid; pool
			pool net1 192.0.2.1 name=192.0.2.1 ! invalid; 192.0.2.1
			subnet.set net1 lan name=all ! invalid; all
			reserve net1 a//b ! invalid; a//b
			reserve net1 -web ! invalid; -web
			reserve net1 pro/web/1 192.0.2.7 -> 192.0.2.7
			take net1 a//b 192.0.2.8 ! invalid; a//b
		`},
		{"what reads as an id", `
			# a name that is the id of another network would name both
			network 6ba7b810-9dad-41d1-80b4-00c04fd430c8 ! invalid; 6ba7b810
			network net1
			network.set net1 name=6ba7b810-9dad-41d1-80b4-00c04fd430c8 ! invalid; 6ba7b810
			subnet net1 192.0.2.0/24 name=6ba7b810-9dad-41d1-80b4-00c04fd430c8 ! invalid; 6ba7b810
		`},
		{"MAC prefixes", `
			network net1 mac=aa:00 ! invalid; aa:00
			network net1 mac=aa:00:00:01 ! invalid; aa:00:00:01
			network net1 mac=zz:00:00 ! invalid; zz:00:00
			network net1 mac=aa-00-00 ! invalid; aa-00-00
			# a multicast address is no station's (IEEE 802)
			network net1 mac=01:00:00 ! invalid; 01:00:00
			network net1
			network.set net1 mac=aa ! invalid; aa
		`},
		{"attachments", `
			network net1 link=h1,wired,br0 ! invalid; wired
			network net1 link=,bridged,br0 ! invalid
			network net1 link=h1,bridged, ! invalid
		`},
	})
}
