package view_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// GA-23: networks show their subnets, and the pools of these with start, end, map and what is free.
func TestGA23Show(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"maps", `
			network net1 subnet=192.0.2.0/28,gw=192.0.2.1,pool
			show net1 maps -> XX.............X
			show net1 free -> 13
			attach A net=net1
			ask A mac=1 -> 192.0.2.2
			take net1 rtr 192.0.2.9
			reserve net1 web 192.0.2.4
			exclude net1 192.0.2.13-192.0.2.14
			show net1 maps -> XXX.X....X...XXX
			show net1 free -> 8
			pool.rm net1 192.0.2.3-192.0.2.5
			show net1 pools -> -:192.0.2.0-192.0.2.2 -:192.0.2.6-192.0.2.15
			show net1 maps -> XXX ...X...XXX
			show net1 free -> 0 6
			# what is only remembered is free
			back A 192.0.2.2
			show net1 maps -> XX. ...X...XXX
			show net1 counts -> held 2 reserved 1 docker 1 planned true
		`},
		{"the smallest and the largest", `
			network p31 subnet=192.0.2.0/31,pool
			network p32 subnet=192.0.2.2/32,pool
			network p127 subnet=2001:db8::/127,pool
			network p128 subnet=2001:db8::2/128,pool
			network p1 space=lab subnet=8000::/1,pool
			show p31 maps -> ..
			show p32 maps -> .
			show p127 maps -> ..
			show p128 maps -> .
			show p1 maps -> -
			show p1 free -> 170141183460469231731687303715884105727
			take p32 a pool -> 192.0.2.2
			take p32 b pool ! exhausted
			show p32 maps -> X
		`},
	})
}

func TestGA23MapLimit(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network full subnet=10.0.0.0/16,pool
		network large subnet=10.2.0.0/15,pool
		pool.rm large 10.3.0.0-10.3.255.254
		show large pools -> -:10.2.0.0-10.2.255.255 -:10.3.255.255-10.3.255.255
		take full a 10.0.255.254
		show full free -> 65533
	`)
	got := r.Show("full").Subnets[0].Pools[0]
	if want := "X" + strings.Repeat(".", 65533) + "XX"; got.Map != want {
		t.Errorf("the map of a /16 has %d addresses", len(got.Map))
	}
	r.Run(`
		subnet.rm large 10.2.0.0/15
		subnet large 10.2.0.0/15 name=l
		pool large 10.2.0.0-10.3.0.0
		show large maps -> -
		show large free -> 65536
	`)
}

// The JSON of a network has the fields of GA-23 and GA-26.
func TestGA23JSON(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 mac=aa:00:00 tag.site=a subnet=192.0.2.0/30,gw=192.0.2.1,name=lan,pool+2001:db8::/64,pool
		exclude net1 192.0.2.2 note=x
	`)
	raw, err := json.Marshal(r.Show("net1"))
	must(t, err)
	var got struct {
		ID, Name, Space, CIDR, Gateway, CIDR6, Gateway6, Map string
		MACPrefix                                            string `json:"mac_prefix"`
		Tags                                                 map[string]string
		Subnets                                              []struct {
			ID, Name, CIDR, Gateway string
			DHCP                    *bool
			Pools                   []struct {
				Name, Start, End, Map string
				Free                  any
			}
			Exclusions []struct{ Start, End, Note string }
		}
	}
	must(t, json.Unmarshal(raw, &got))
	four, six := got.Subnets[0], got.Subnets[1]
	if got.Name != "net1" || got.Space != "local" || got.MACPrefix != "aa:00:00" || got.Tags["site"] != "a" ||
		len(got.ID) != 36 ||
		got.CIDR != "192.0.2.0/30" || got.Gateway != "192.0.2.1" || got.CIDR6 != "2001:db8::/64" ||
		got.Gateway6 != "" || got.Map != "XXXX" {
		t.Errorf("%s", raw)
	}
	if four.Name != "lan" || four.CIDR != "192.0.2.0/30" || four.DHCP == nil || *four.DHCP ||
		four.Pools[0].Free != 0.0 || four.Pools[0].Start != "192.0.2.0" ||
		four.Pools[0].End != "192.0.2.3" || four.Pools[0].Map != "XXXX" || four.Exclusions[0].Start != "192.0.2.2" ||
		four.Exclusions[0].End != "192.0.2.2" || four.Exclusions[0].Note != "x" {
		t.Errorf("%s", raw)
	}
	if six.Gateway != "" || six.Pools[0].Free != "18446744073709551615" || six.Pools[0].Map != "" ||
		strings.Contains(string(raw), `"exclusions":null`) || strings.Contains(string(raw), `"pools":null`) {
		t.Errorf("%s", raw)
	}
	// Empty lists are lists.
	r.Run("network wire")
	raw, err = json.Marshal(r.Show("wire"))
	if err != nil || !strings.Contains(string(raw), `"subnets":[]`) || !strings.Contains(string(raw), `"tags":{}`) {
		t.Errorf("%s, %v", raw, err)
	}
}

// Networks come by name, in pages, of one space or of all, and without maps.
func TestNetworksList(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network b subnet=192.0.2.0/24,pool
		network a space=lab
		network d
		network c
		attach A cidr=198.51.100.0/24
		show b maps
	`)
	names := func(f ipam.NetworkFilter) (names []string) {
		all, err := r.S.Networks(ctx, f)
		must(t, err)
		for _, n := range all {
			names = append(names, n.Name)
			for _, sub := range n.Subnets {
				for _, p := range sub.Pools {
					if p.Map != "" || n.Map != "" {
						t.Errorf("network %s is listed with a map", n.Name)
					}
				}
			}
		}
		return names
	}
	all := names(ipam.NetworkFilter{})
	if len(all) != 5 || !slices.Equal(all[:4], []string{"a", "b", "c", "d"}) || !strings.HasPrefix(all[4], "net-") {
		t.Errorf("%q", all)
	}
	if got := names(ipam.NetworkFilter{Space: "lab"}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%q", got)
	}
	if got := names(ipam.NetworkFilter{After: "a", Limit: 2}); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("%q", got)
	}
	if got := names(ipam.NetworkFilter{Space: "local", After: "c", Limit: 1}); !slices.Equal(got, []string{"d"}) {
		t.Errorf("%q", got)
	}
	if _, err := r.S.Network(ctx, "nowhere"); ipamtest.KindOf(err) != "notfound" {
		t.Error(err)
	}
	if _, err := r.S.Network(ctx, ipam.NewID().String()); ipamtest.KindOf(err) != "notfound" {
		t.Error(err)
	}
}

// Reservations and taken addresses are listed in pages, of a network, an owner, or all.
func TestAddressLists(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network a subnet=192.0.2.0/24+2001:db8::/64
		network b space=lab subnet=192.0.2.0/24
		reserve a x 192.0.2.7,2001:db8::7
		reserve a y 192.0.2.9
		reserve b x 192.0.2.8
		take a x 192.0.2.7
		take a z 0:ip0=192.0.2.1,ip1=2001:db8::1
		take b z 192.0.2.1
	`)
	list := func(f ipam.AddressFilter) string {
		var out []string
		for _, res := range r.Reservations(f) {
			out = append(out, res.Network+"/"+res.Owner+"="+res.Address.String())
		}
		out = append(out, "|")
		for _, a := range r.Taken(f) {
			out = append(out, a.Network+"/"+a.Owner+"="+a.Address.String())
		}
		return strings.Join(out, " ")
	}
	second := r.Addr("192.0.2.8")
	for _, tc := range []struct {
		filter ipam.AddressFilter
		want   string
	}{
		{ipam.AddressFilter{}, "b/x=192.0.2.8 a/x=192.0.2.7 a/y=192.0.2.9 a/x=2001:db8::7 | b/z=192.0.2.1 " +
			"a/z=192.0.2.1 a/x=192.0.2.7 a/z=2001:db8::1"},
		{ipam.AddressFilter{Network: "a"},
			"a/x=192.0.2.7 a/y=192.0.2.9 a/x=2001:db8::7 | a/z=192.0.2.1 a/x=192.0.2.7 a/z=2001:db8::1"},
		{ipam.AddressFilter{Owner: "x"}, "b/x=192.0.2.8 a/x=192.0.2.7 a/x=2001:db8::7 | a/x=192.0.2.7"},
		{ipam.AddressFilter{Network: "b", Owner: "y"}, "|"},
		{ipam.AddressFilter{AfterSpace: "lab", After: second},
			"a/x=192.0.2.7 a/y=192.0.2.9 a/x=2001:db8::7 | a/z=192.0.2.1 a/x=192.0.2.7 a/z=2001:db8::1"},
		{ipam.AddressFilter{AfterSpace: "local", After: r.Addr("192.0.2.7")},
			"a/y=192.0.2.9 a/x=2001:db8::7 | a/z=2001:db8::1"},
		{ipam.AddressFilter{AfterSpace: "local", After: r.Addr("192.0.2.255"), Limit: 1},
			"a/x=2001:db8::7 | a/z=2001:db8::1"},
		{ipam.AddressFilter{Limit: 2}, "b/x=192.0.2.8 a/x=192.0.2.7 | b/z=192.0.2.1 a/z=192.0.2.1"},
	} {
		if got := list(tc.filter); got != tc.want {
			t.Errorf("%+v\ngot  %s\nwant %s", tc.filter, got, tc.want)
		}
	}
	for _, err := range r.S.Reservations(ctx, ipam.AddressFilter{Network: "nowhere"}) {
		if ipamtest.KindOf(err) != "notfound" {
			t.Error(err)
		}
	}
}

// TestReservationsOfSubnet: a subnet counts its own reservations, and the network all of them.
func TestReservationsOfSubnet(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network a subnet=192.0.2.0/24+2001:db8::/64
		reserve a x 192.0.2.7,2001:db8::7
		reserve a y 192.0.2.9
		take a x 192.0.2.7
	`)
	n, err := r.S.Network(ctx, "a")
	must(t, err)
	got := []string{n.Use.ReservedText()}
	for _, sub := range n.Subnets {
		got = append(got, sub.Use.ReservedText())
	}
	if want := []string{"3 reserved (2 idle)", "2 reserved (1 idle)", "1 reserved (1 idle)"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Available lists the addresses that automatic requests can get, the lowest first.
func TestAvailable(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 subnet=192.0.2.0/28,gw=192.0.2.1,name=a+198.51.100.0/24
		pool net1 192.0.2.8-192.0.2.15
		pool net1 192.0.2.0-192.0.2.3
		take net1 x 192.0.2.2
		reserve net1 y 192.0.2.9
		exclude net1 192.0.2.11-192.0.2.12
		take net1 z 192.0.2.13
		release net1 z
	`)
	subs := r.Show("net1").Subnets
	for limit, want := range map[int]string{10: "192.0.2.3 192.0.2.8 192.0.2.10 192.0.2.13 192.0.2.14",
		2: "192.0.2.3 192.0.2.8"} {
		if got, err := r.S.Available(ctx, subs[0].ID, limit); err != nil || ipamtest.Joined(got) != want {
			t.Errorf("%d of them: %v, %v", limit, got, err)
		}
	}
	if got, err := r.S.Available(ctx, subs[1].ID, 10); err != nil || len(got) != 0 {
		t.Errorf("without a pool: %v, %v", got, err)
	}
	if _, err := r.S.Available(ctx, ipam.NewID(), 10); ipamtest.KindOf(err) != "notfound" {
		t.Error(err)
	}
}

// GA-26: the short form makes one subnet with a pool of the whole subnet. The flat fields show the first subnet of
// each family, and its first pool.
func TestGA26FlatFields(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network flat subnet=10.7.0.0/29,pool
		show flat flat -> 10.7.0.0/29 - - - X......X
		show flat pools -> -:10.7.0.0-10.7.0.7
		network net1 subnet=2001:db8::/64,gw=2001:db8::1
		show net1 flat -> - - 2001:db8::/64 2001:db8::1 -
		subnet net1 192.0.2.64/29 gw=192.0.2.65
		subnet net1 192.0.2.0/29 gw=192.0.2.6 pool
		subnet net1 2001:db8:1::/64 pool
		show net1 flat -> 192.0.2.64/29 192.0.2.65 2001:db8::/64 2001:db8::1 -
		pool net1 192.0.2.70
		pool net1 192.0.2.66+2
		take net1 a 192.0.2.67
		show net1 flat -> 192.0.2.64/29 192.0.2.65 2001:db8::/64 2001:db8::1 .
		pool.rm net1 192.0.2.70
		show net1 flat -> 192.0.2.64/29 192.0.2.65 2001:db8::/64 2001:db8::1 .X
		release net1 a
		subnet.rm net1 192.0.2.64/29
		show net1 flat -> 192.0.2.0/29 192.0.2.6 2001:db8::/64 2001:db8::1 X.....XX
	`}})
}

// GA-27: the words that the documentation shows do what it says.
func TestGA27Examples(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/24,gw=192.0.2.1,name=lan+2001:db8::/64,pool tag.site=a
		network flat subnet=10.7.0.0/24,pool
		pool net1 192.0.2.10-192.0.2.100 name=pool1
		pool.rm net1 192.0.2.20-192.0.2.50
		pool.set net1 pool1 front
		exclude net1 192.0.2.60+5 note=printers
		include net1 192.0.2.62
		subnet net1 198.51.100.0/24 gw=198.51.100.1 dhcp name=old pool
		subnet.set net1 lan cidr=192.0.2.0/25 gw=192.0.2.2 dhcp=false name=lan2
		subnet.rm net1 old
		reserve net1 web 192.0.2.11 -> 192.0.2.11
		unreserve net1 web
		take net1 rtr 0:ip0=192.0.2.12,ip1=pool,ip2=front -> 192.0.2.12 192.0.2.10 192.0.2.11
		show net1 pools -> front:192.0.2.10-192.0.2.19 front:192.0.2.51-192.0.2.100 -:2001:db8::-2001:db8::ffff:ffff:ffff:ffff
		show net1 exclusions -> printers:192.0.2.60-192.0.2.61 printers:192.0.2.63-192.0.2.64
		show net1 subnets -> lan2:192.0.2.0/25:192.0.2.2:false -:2001:db8::/64:-:false
		release net1 rtr
	`}})
}
