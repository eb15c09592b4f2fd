package edit_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/advice"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/plan"
)

// TestImportProblems holds each thing that can be wrong with a plan to its line and words, and sees nothing written.
func TestImportProblems(t *testing.T) {
	state := `
		network net1 subnet=192.0.2.0/24,gw=192.0.2.1,name=lan tag.site=a mac=aa:00:00
		network.set net1 link=h1,bridged,br0
		pool net1 192.0.2.10-192.0.2.19 name=front
		exclude net1 192.0.2.60+5 note=printers
		reserve net1 web 192.0.2.11
		take net1 rtr 192.0.2.50
		network net2 subnet=198.51.100.0/24 quarantine=10m
		subnet net2 2001:db8::/64 dhcp
		attach P net=net1
		ask P live mac=1 -> 192.0.2.10
	`
	r := ipamtest.New(t)
	r.Run(state)
	problems(t, r, []badPlan{
		{"name", "- name: a/b\n", []string{`3: "a/b" cannot name a network`}},
		{"reserved word", "- name: pool\n- name: none\n- name: all\n",
			[]string{`3: "pool" cannot name a network: the word has a meaning`, `4: "none"`, `5: "all"`}},
		{"address as a name", "- name: 192.0.2.1\n",
			[]string{`3: "192.0.2.1" cannot name a network: it reads as an address`}},
		{"network twice", "- name: a\n- name: b\n- name: a\n",
			[]string{"5: the network a is there twice"}},
		{"space", "- {name: a, space: a b}\n", []string{`3: "a b" cannot name a space`}},
		{"MAC prefix", "- {name: a, mac_prefix: 01:00:00}\n",
			[]string{"3: MAC addresses that begin with 01:00:00 are those of groups"}},
		{"tag", "- name: a\n  tags: {a b: c}\n", []string{`3: "a b" cannot name a tag`}},
		{"tag too long", "- name: a\n  tags: {x: " + strings.Repeat("y", 256) + "}\n",
			[]string{"3: the tag x has 256 bytes"}},
		{"link", "- name: a\n  links: [{host: h1, mode: bridge, link: br0}]\n",
			[]string{`3: "bridge" is no mode of a link on host h1`}},
		{"two links",
			"- name: a\n  links: [{host: h1, mode: bridged, link: br0}, {host: h1, mode: ovs, link: br0}]\n",
			[]string{"3: the network a has two links on the host h1, and can have one"}},
		{"other settings", "- {name: net1, mac_prefix: aa:00:01, sticky: false, quarantine: 1h, tags: {site: b, " +
			"floor: 2}, links: [{host: h1, mode: ovs, link: br0}, {host: h2, mode: ovs, link: br0}]}\n",
			[]string{"3: the tag floor of network net1 is none and not 2",
				"3: the tag site of network net1 is a and not b",
				"3: the link of h1 of network net1 is bridged br0 and not ovs br0",
				"3: the link of h2 of network net1 is none and not ovs br0",
				"3: the mac_prefix of network net1 is aa:00:00 and not aa:00:01",
				"3: the sticky of network net1 is true and not false",
				"3: the quarantine of network net1 is 0s and not 1h"}},
		{"other space", "- {name: net1, space: lab}\n",
			[]string{"3: network net1 is in the space local and not in lab, and no network moves to another"}},
		{"subnet twice", "- name: a\n  subnets: [{cidr: 10.0.0.0/24}]\n- name: b\n  subnets:\n  - {cidr: " +
			"10.0.0.0/24}\n", []string{"7: network a has the subnet 10.0.0.0/24 of space local already"}},
		{"overlap in the plan", "- name: a\n  subnets:\n  - {cidr: 10.0.0.0/24}\n  - {cidr: 10.0.0.0/16}\n",
			[]string{"6: the subnet 10.0.0.0/16 overlaps 10.0.0.0/24, which space local has already (network a); choose another"}},
		{"overlap with what is there", "- name: a\n  subnets: [{cidr: 192.0.2.128/25}]\n",
			[]string{"4: the subnet 192.0.2.128/25 overlaps 192.0.2.0/24, which space local has already (network net1)"}},
		{"another's subnet", "- name: a\n  subnets: [{cidr: 192.0.2.0/24}]\n",
			[]string{"4: network net1 has the subnet 192.0.2.0/24 of space local already"}},
		{"same in another space", "- name: a\n  space: lab\n  subnets: [{cidr: 192.0.2.0/24}]\n", nil},
		{"subnet name", "- name: a\n  subnets: [{cidr: 10.0.0.0/24, name: all}]\n",
			[]string{`4: "all" cannot name a subnet`}},
		{"subnet name twice", "- name: a\n  subnets: [{cidr: 10.0.0.0/24, name: x}, {cidr: 10.0.1.0/24, name: x}]\n",
			[]string{"4: network a has a subnet named x already (10.0.0.0/24)"}},
		{"subnet name there", "- name: net1\n  subnets: [{cidr: 10.0.0.0/24, name: lan}]\n",
			[]string{"4: network net1 has a subnet named lan already (192.0.2.0/24)"}},
		{"gateway outside", "- name: a\n  subnets: [{cidr: 10.0.0.0/24, gateway: 10.0.1.1}]\n",
			[]string{"4: the gateway 10.0.1.1 is outside the subnet 10.0.0.0/24"}},
		{"gateway no host", "- name: a\n  subnets: [{cidr: 10.0.0.0/24, gateway: 10.0.0.255}]\n",
			[]string{"4: the gateway 10.0.0.255 is the broadcast address"}},
		{"other gateway, name, DHCP",
			"- name: net1\n  subnets: [{cidr: 192.0.2.0/24, gateway: 192.0.2.2, name: lan2, dhcp: true}]\n",
			[]string{"4: the name of the subnet 192.0.2.0/24 of network net1 is lan and not lan2",
				"4: the gateway of the subnet 192.0.2.0/24 of network net1 is 192.0.2.1 and not 192.0.2.2",
				"4: the dhcp of the subnet 192.0.2.0/24 of network net1 is false and not true"}},
		// GA-12
		{"two with DHCP",
			"- name: a\n  subnets:\n  - {cidr: 10.0.0.0/24, dhcp: true}\n  - {cidr: 10.0.1.0/24, dhcp: " +
				"true}\n  - {cidr: 2001:db8:1::/64, dhcp: true}\n",
			[]string{"6: network a has DHCP on the subnet 10.0.0.0/24 already, and one cable has one for each family"}},
		{"DHCP there", "- name: net2\n  subnets: [{cidr: 2001:db8:1::/64, dhcp: true}]\n",
			[]string{"4: network net2 has DHCP on the subnet 2001:db8::/64 already"}},
		// GA-17
		{"pool outside", "- name: a\n  subnets:\n  - cidr: 10.0.0.0/24\n    pools: [10.0.0.250-10.0.1.5]\n",
			[]string{"6: the range 10.0.0.250-10.0.1.5 runs over the end of the subnet 10.0.0.0/24 (10.0.0.255)"}},
		{"pool name", "- name: a\n  subnets:\n  - cidr: 10.0.0.0/24\n    pools: [{range: 10.0.0.9, name: none}]\n",
			[]string{`6: "none" cannot name a pool`}},
		{"pools overlap", "- name: a\n  subnets:\n  - cidr: 10.0.0.0/24\n    pools:\n    - 10.0.0.100+50\n    - " +
			"10.0.0.9\n    - 10.0.0.0/25\n",
			[]string{"9: the range 10.0.0.0/25 overlaps the pool 10.0.0.9 of the subnet 10.0.0.0/24"}},
		{"pool twice", "- name: a\n  subnets:\n  - cidr: 10.0.0.0/24\n    pools:\n    - 10.0.0.9\n    - 10.0.0.9\n",
			[]string{"8: the range 10.0.0.9 overlaps the pool 10.0.0.9 of the subnet 10.0.0.0/24"}},
		{"pool overlaps one there", "- name: net1\n  pools: [192.0.2.15+10]\n",
			[]string{"4: the range 192.0.2.15-192.0.2.24 overlaps the pool front (192.0.2.10-192.0.2.19) of the subnet 192.0.2.0/24"}},
		{"pool there by another name", "- name: net1\n  pools: [{range: 192.0.2.10+10, name: back}]\n",
			[]string{"4: the name of the pool 192.0.2.10-192.0.2.19 of network net1 is front and not back; leave it out"}},
		{"pool nowhere", "- name: net1\n  pools: [10.0.0.1]\n",
			[]string{"4: no subnet of network net1 holds 10.0.0.1"}},
		{"pool in another's subnet", "- name: net1\n  pools: [198.51.100.5]\n",
			[]string{"4: no subnet of network net1 holds 198.51.100.5"}},
		// GA-20
		{"exclusions overlap", "- name: net1\n  exclusions: [192.0.2.64, 192.0.2.70, 192.0.2.70+2]\n",
			[]string{"4: the range 192.0.2.64 overlaps the exclusion 192.0.2.60-192.0.2.64 (printers) of the subnet 192.0.2.0/24", "4: the range 192.0.2.70/31 overlaps the exclusion 192.0.2.70 of the subnet 192.0.2.0/24"}},
		{"exclusion outside", "- name: a\n  subnets:\n  - cidr: 10.0.0.0/24\n    exclusions: [10.0.1.0]\n",
			[]string{"6: no subnet of network a holds 10.0.1.0"}},
		{"note", "- name: net1\n  exclusions: [{range: 192.0.2.70, note: \"a\\tb\"}]\n",
			[]string{"4: the note has characters that cannot be printed"}},
		{"other note", "- name: net1\n  exclusions: [{range: 192.0.2.60+5, note: scanners}]\n",
			[]string{"4: the note of the exclusion 192.0.2.60-192.0.2.64 of network net1 is printers and not scanners; leave it out"}},
		{"reserved for another", "- name: net1\n  reservations: [{owner: db, address: 192.0.2.11}]\n",
			[]string{"4: NetworkReservationAlreadyInUse: 192.0.2.11 is held by web (reserved since"}},
		{"reserved in another slot", "- name: net1\n  reservations: [{owner: web, address: 192.0.2.11, slot: 1}]\n",
			[]string{"4: NetworkReservationAlreadyExists: web has 192.0.2.11 reserved in network net1 already (0:ip0)"}},
		{"slot taken", "- name: net1\n  reservations: [{owner: web, address: 192.0.2.12, interface: 0}]\n",
			[]string{"4: the reservation web of network net1 is 192.0.2.11 and not 192.0.2.12"}},
		{"slot twice", "- name: net1\n  reservations:\n  - {owner: db, address: 192.0.2.12, slot: 0}\n  - {owner: " +
			"db, address: 192.0.2.13, slot: 0}\n",
			[]string{"6: db is to have 192.0.2.12 and 192.0.2.13, both as 0:ip0"}},
		{"reserved twice", "- name: net1\n  reservations:\n  - {owner: db, address: 192.0.2.12}\n  - {owner: x, " +
			"address: 192.0.2.12}\n", []string{"6: NetworkReservationAlreadyInUse: 192.0.2.12 is held by db (reserved since"}},
		{"held", "- name: net1\n  reservations: [{owner: db, address: 192.0.2.10}, {owner: live, address: " +
			"192.0.2.10}]\n  addresses: [{owner: db, address: 192.0.2.10}]\n",
			[]string{
				"4: NetworkReservationAlreadyInUse: 192.0.2.10 is held by live",
				"5: NetworkReservationAlreadyInUse: 192.0.2.10 is held by live"}},
		{"held by its owner", "- name: net1\n  reservations: [{owner: live, address: 192.0.2.10}]\n", nil},
		{"gateway reserved", "- name: net1\n  reservations: [{owner: db, address: 192.0.2.1, force: true}]\n",
			[]string{"4: NetworkReservationAlreadyInUse: 192.0.2.1 is held by the gateway of its subnet"}},
		{"gateway of a new one",
			"- name: a\n  subnets: [{cidr: 10.0.0.0/24, gateway: 10.0.0.1}]\n  addresses: [{owner: x, address: " +
				"10.0.0.1}]\n", []string{"5: NetworkReservationAlreadyInUse: 10.0.0.1 is held by the gateway of its subnet"}},
		{"no host", "- name: net1\n  reservations: [{owner: db, address: 192.0.2.0}]\n  addresses: [{owner: db, " +
			"address: 192.0.2.255}]\n",
			[]string{"4: NetworkReservationIpOutsideSubnet: 192.0.2.0 is the network address of 192.0.2.0/24",
				"5: NetworkReservationIpOutsideSubnet: 192.0.2.255 is the broadcast address of 192.0.2.0/24"}},
		{"nowhere", "- name: net1\n  addresses: [{owner: db, address: 10.0.0.1}]\n",
			[]string{"4: NetworkReservationIpOutsideSubnet: 10.0.0.1 is outside the subnet 192.0.2.0/24 of network net1"}},
		{"owner", "- name: net1\n  addresses: [{owner: a//b, address: 192.0.2.70}]\n",
			[]string{`4: "a//b" names no owner`}},
		{"slot too high", "- name: net1\n  addresses: [{owner: db, address: 192.0.2.70, slot: 64}]\n",
			[]string{"4: the interface of db: ip64 is not one of ip0 to ip63"}},
		// GA-24
		{"gap", "- name: net1\n  addresses: [{owner: db, address: 192.0.2.70, slot: 2}, {owner: db, address: " +
			"192.0.2.71, slot: 0}]\n", []string{"4: interface 0 of db would have ip2 (192.0.2.70) and no ip1"}},
		{"taken in another slot", "- name: net1\n  addresses: [{owner: rtr, address: 192.0.2.50, slot: 1}]\n",
			[]string{"4: interface 0 of rtr would have ip1 (192.0.2.50) and no ip0",
				"4: NetworkReservationAlreadyInUse: 192.0.2.50 is held by rtr"}},
		{"taken by another", "- name: net1\n  addresses: [{owner: nas, address: 192.0.2.50}]\n",
			[]string{"4: NetworkReservationAlreadyInUse: 192.0.2.50 is held by rtr"}},
		{"taken and reserved for another", "- name: net1\n  addresses: [{owner: nas, address: 192.0.2.11}]\n",
			[]string{"4: NetworkReservationAlreadyInUse: 192.0.2.11 is held by web (reserved since"}},
		// GA-6
		{"taken and reserved in the plan",
			"- name: net1\n  reservations: [{owner: x, address: 192.0.2.70}]\n  addresses: [{owner: y, address: " +
				"192.0.2.70}]\n", []string{"4: NetworkReservationAlreadyInUse: 192.0.2.70 is held by y"}},
	})
}

// badPlan is networks of a plan, and what is wrong with them as "line: words"; nil where nothing is.
type badPlan struct {
	name, networks string
	problems       []string
}

// problems holds each plan to what is wrong with it.
func problems(t *testing.T, r *ipamtest.Room, plans []badPlan) {
	for _, c := range plans {
		t.Run(c.name, func(t *testing.T) {
			before := ipamtest.Dump(t, r.Store)
			p, err := plan.ReadYAML(strings.NewReader("version: 1\nnetworks:\n" + c.networks))
			fine(t, err)
			// what is right must not add to the state
			_, err = r.S.Import(ctx, p, ipam.ImportOptions{DryRun: c.problems == nil})
			if diff := cmp.Diff(before, ipamtest.Dump(t, r.Store)); diff != "" {
				t.Errorf("records changed:\n%s", diff)
			}
			if c.problems == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *ipam.PlanError
			if !errors.As(err, &e) || !errors.Is(err, ipam.ErrInvalid) {
				t.Fatalf("the error is %v", err)
			}
			var got []string
			for _, p := range e.Problems {
				got = append(got, fmt.Sprintf("%d: %s", p.Line, advice.Join(p.Text, p.Advice)))
			}
			if len(got) != len(c.problems) {
				t.Fatalf("%d problems, want %d: %q", len(got), len(c.problems), got)
			}
			for i, want := range c.problems {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("problem %d is %q, want %q", i, got[i], want)
				}
			}
		})
	}
}

// What only JSON can say is refused, too: mapped and zoned addresses, host bits, ranges that are none.
func TestImportProblemsOfJSON(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24")
	for _, c := range []struct {
		network ipam.PlannedNetwork
		want    string
	}{
		{ipam.PlannedNetwork{Name: "a", Subnets: []ipam.PlannedSubnet{{}}}, "a subnet is missing"},
		{ipam.PlannedNetwork{Name: "a", Subnets: []ipam.PlannedSubnet{{CIDR: netip.MustParsePrefix("10.0.0.1/24")}}},
			"10.0.0.1/24 has host bits set"},
		{ipam.PlannedNetwork{Name: "a",
			Subnets: []ipam.PlannedSubnet{{CIDR: netip.MustParsePrefix("::ffff:10.0.0.0/120")}}}, "mapped into IPv6"},
		{ipam.PlannedNetwork{Name: "net1", Pools: []ipam.PlannedPool{{}}}, "a range is missing"},
		{ipam.PlannedNetwork{Name: "a",
			Subnets: []ipam.PlannedSubnet{{CIDR: netip.MustParsePrefix("10.0.0.0/24"),
				Exclusions: []ipam.PlannedExclusion{{}}}}}, "a range is missing"},
		{ipam.PlannedNetwork{Name: "a",
			Subnets: []ipam.PlannedSubnet{{CIDR: netip.MustParsePrefix("10.0.0.0/24"), Pools: []ipam.PlannedPool{{}}}}},
			"a range is missing"},
		{ipam.PlannedNetwork{Name: "net1", Reservations: []ipam.PlannedReservation{{Owner: "web"}}},
			"the reservation of web has no address"},
		{ipam.PlannedNetwork{Name: "net1",
			Reservations: []ipam.PlannedReservation{{Owner: "web", Address: netip.MustParseAddr("::ffff:192.0.2.9")}}},
			"mapped into IPv6; write 192.0.2.9"},
		{ipam.PlannedNetwork{Name: "net1",
			Reservations: []ipam.PlannedReservation{{Owner: "web", Address: netip.MustParseAddr("fe80::1%eth0")}}},
			"\"fe80::1%eth0\" has a zone"},
		{ipam.PlannedNetwork{Name: "net1",
			Addresses: []ipam.PlannedAddress{{Owner: "web", Address: netip.MustParseAddr("192.0.2.9"), Slot: -1}}},
			"ip-1 is not one of ip0 to ip63"},
		{ipam.PlannedNetwork{Subnets: []ipam.PlannedSubnet{{CIDR: netip.MustParsePrefix("10.0.0.0/24")}}},
			"the subnet 10.0.0.0/24 is of no network"},
		{ipam.PlannedNetwork{MACPrefix: "aa:00:00"}, "the network has no name"},
		{ipam.PlannedNetwork{Pools: []ipam.PlannedPool{{Range: ipamtest.MustRange("10.0.0.1")}}},
			"no network of the space local has 10.0.0.1"},
		{ipam.PlannedNetwork{Space: "lab", Pools: []ipam.PlannedPool{{Range: ipamtest.MustRange("192.0.2.1")}}},
			"no network of the space lab has 192.0.2.1"},
	} {
		_, err := r.S.Import(ctx, ipam.Plan{Networks: []ipam.PlannedNetwork{c.network}}, ipam.ImportOptions{})
		if !errors.Is(err, ipam.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.network, err, c.want)
		}
	}
	sound(r)
}
