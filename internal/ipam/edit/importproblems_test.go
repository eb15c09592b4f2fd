package edit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"berth/internal/advice"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// TestImportProblems: an import reports each possible error in a plan with its line and words, and writes nothing.
func TestImportProblems(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
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
	`)
	problems(t, r, `
		=== name
		- name: a/b
		! 3: "a/b" cannot name a network
		=== reserved word
		- name: pool
		- name: none
		- name: all
		! 3: "pool" cannot name a network: the word has a special meaning
		! 4: "none"
		! 5: "all"
		=== address as a name
		- name: 192.0.2.1
		! 3: "192.0.2.1" cannot name a network: it looks like an address
		=== network twice
		- name: a
		- name: b
		- name: a
		! 5: the network a appears twice
		=== network in two spaces
		- name: a
		- {name: a, space: red}
		! 4: the network a is in the space (VRF) red here, but in local on line 3; a network has only one space
		=== space
		- {name: a, space: a b}
		! 3: "a b" cannot name a space
		=== MAC prefix
		- {name: a, mac_prefix: 01:00:00}
		! 3: MAC addresses that begin with 01:00:00 are group addresses
		=== tag
		- name: a
		  tags: {a b: c}
		! 3: "a b" cannot name a tag
		=== tag too long
		- name: a
		  tags: {x: LONG}
		! 3: the tag x has 256 bytes
		=== link
		- name: a
		  links: [{host: h1, mode: bridge, link: br0}]
		! 3: "bridge" is not a link mode on host h1
		=== two links
		- name: a
		  links: [{host: h1, mode: bridged, link: br0}, {host: h1, mode: ovs, link: br0}]
		! 3: the network a has two links on the host h1, and can have only one
		=== other settings
		- {name: net1, mac_prefix: aa:00:01, sticky: false, quarantine: 1h, tags: {site: b, floor: 2}, links: [{host: h1, mode: ovs, link: br0}, {host: h2, mode: ovs, link: br0}]}
		! 3: the tag floor of network net1 is none and not 2
		! 3: the tag site of network net1 is a and not b
		! 3: the link of h1 of network net1 is bridged br0 and not ovs br0
		! 3: the link of h2 of network net1 is none and not ovs br0
		! 3: the mac_prefix of network net1 is aa:00:00 and not aa:00:01
		! 3: the sticky of network net1 is true and not false
		! 3: the quarantine of network net1 is 0s and not 1h
		=== other space
		- {name: net1, space: lab}
		! 3: network net1 is in the space local, not in lab, and cannot move
		=== subnet twice
		- name: a
		  subnets: [{cidr: 10.0.0.0/24}]
		- name: b
		  subnets:
		  - {cidr: 10.0.0.0/24}
		! 7: network a has the subnet 10.0.0.0/24 of space local already
		=== overlap in the plan
		- name: a
		  subnets:
		  - {cidr: 10.0.0.0/24}
		  - {cidr: 10.0.0.0/16}
		! 6: the subnet 10.0.0.0/16 overlaps 10.0.0.0/24, which space local has already (network a); choose another
		=== overlap with what is there
		- name: a
		  subnets: [{cidr: 192.0.2.128/25}]
		! 4: the subnet 192.0.2.128/25 overlaps 192.0.2.0/24, which space local has already (network net1)
		=== another's subnet
		- name: a
		  subnets: [{cidr: 192.0.2.0/24}]
		! 4: network net1 has the subnet 192.0.2.0/24 of space local already
		=== same in another space
		- name: a
		  space: lab
		  subnets: [{cidr: 192.0.2.0/24}]
		=== subnet name
		- name: a
		  subnets: [{cidr: 10.0.0.0/24, name: all}]
		! 4: "all" cannot name a subnet
		=== subnet name twice
		- name: a
		  subnets: [{cidr: 10.0.0.0/24, name: x}, {cidr: 10.0.1.0/24, name: x}]
		! 4: network a has a subnet named x already (10.0.0.0/24)
		=== subnet name there
		- name: net1
		  subnets: [{cidr: 10.0.0.0/24, name: lan}]
		! 4: network net1 has a subnet named lan already (192.0.2.0/24)
		=== gateway outside
		- name: a
		  subnets: [{cidr: 10.0.0.0/24, gateway: 10.0.1.1}]
		! 4: the gateway 10.0.1.1 is outside the subnet 10.0.0.0/24
		=== gateway no host
		- name: a
		  subnets: [{cidr: 10.0.0.0/24, gateway: 10.0.0.255}]
		! 4: the gateway 10.0.0.255 is the broadcast address
		# GA-12
		=== other gateway, name, DHCP
		- name: net1
		  subnets: [{cidr: 192.0.2.0/24, gateway: 192.0.2.2, name: lan2, dhcp: true}]
		! 4: the name of the subnet 192.0.2.0/24 of network net1 is lan and not lan2
		! 4: the gateway of the subnet 192.0.2.0/24 of network net1 is 192.0.2.1 and not 192.0.2.2
		! 4: the dhcp of the subnet 192.0.2.0/24 of network net1 is false and not true
		=== two with DHCP
		- name: a
		  subnets:
		  - {cidr: 10.0.0.0/24, dhcp: true}
		  - {cidr: 10.0.1.0/24, dhcp: true}
		  - {cidr: 2001:db8:1::/64, dhcp: true}
		! 6: network a already has DHCP on the subnet 10.0.0.0/24; a network has one DHCP subnet for each family
		# GA-17
		=== DHCP there
		- name: net2
		  subnets: [{cidr: 2001:db8:1::/64, dhcp: true}]
		! 4: network net2 already has DHCP on the subnet 2001:db8::/64
		=== pool outside
		- name: a
		  subnets:
		  - cidr: 10.0.0.0/24
		    pools: [10.0.0.250-10.0.1.5]
		! 6: the range 10.0.0.250-10.0.1.5 goes past the end of the subnet 10.0.0.0/24 (10.0.0.255)
		=== pool name
		- name: a
		  subnets:
		  - cidr: 10.0.0.0/24
		    pools: [{range: 10.0.0.9, name: none}]
		! 6: "none" cannot name a pool
		=== pools overlap
		- name: a
		  subnets:
		  - cidr: 10.0.0.0/24
		    pools:
		    - 10.0.0.100+50
		    - 10.0.0.9
		    - 10.0.0.0/25
		! 9: the range 10.0.0.0/25 overlaps the pool 10.0.0.9 of the subnet 10.0.0.0/24
		=== pool twice
		- name: a
		  subnets:
		  - cidr: 10.0.0.0/24
		    pools:
		    - 10.0.0.9
		    - 10.0.0.9
		! 8: the range 10.0.0.9 overlaps the pool 10.0.0.9 of the subnet 10.0.0.0/24
		=== pool overlaps one there
		- name: net1
		  pools: [192.0.2.15+10]
		! 4: the range 192.0.2.15-192.0.2.24 overlaps the pool front (192.0.2.10-192.0.2.19) of the subnet 192.0.2.0/24
		=== pool there by another name
		- name: net1
		  pools: [{range: 192.0.2.10+10, name: back}]
		! 4: the name of the pool 192.0.2.10-192.0.2.19 of network net1 is front and not back; leave it out
		=== pool nowhere
		- name: net1
		  pools: [10.0.0.1]
		! 4: no subnet of network net1 holds 10.0.0.1
		# GA-20
		=== pool in another's subnet
		- name: net1
		  pools: [198.51.100.5]
		! 4: no subnet of network net1 holds 198.51.100.5
		=== exclusions overlap
		- name: net1
		  exclusions: [192.0.2.64, 192.0.2.70, 192.0.2.70+2]
		! 4: the range 192.0.2.64 overlaps the exclusion 192.0.2.60-192.0.2.64 (printers) of the subnet 192.0.2.0/24
		! 4: the range 192.0.2.70/31 overlaps the exclusion 192.0.2.70 of the subnet 192.0.2.0/24
		=== exclusion outside
		- name: a
		  subnets:
		  - cidr: 10.0.0.0/24
		    exclusions: [10.0.1.0]
		! 6: no subnet of network a holds 10.0.1.0
		=== note
		- name: net1
		  exclusions: [{range: 192.0.2.70, note: "a\tb"}]
		! 4: the note has characters that cannot be printed
		=== other note
		- name: net1
		  exclusions: [{range: 192.0.2.60+5, note: scanners}]
		! 4: the note of the exclusion 192.0.2.60-192.0.2.64 of network net1 is printers and not scanners; leave it out
		=== reserved for another
		- name: net1
		  reservations: [{owner: db, address: 192.0.2.11}]
		! 4: 192.0.2.11 is held by web (reserved since
		=== reserved in another slot
		- name: net1
		  reservations: [{owner: web, address: 192.0.2.11, slot: 1}]
		! 4: web has 192.0.2.11 reserved in network net1 already (0:ip0)
		=== slot taken
		- name: net1
		  reservations: [{owner: web, address: 192.0.2.12, interface: 0}]
		! 4: the reservation web of network net1 is 192.0.2.11 and not 192.0.2.12
		=== slot twice
		- name: net1
		  reservations:
		  - {owner: db, address: 192.0.2.12, slot: 0}
		  - {owner: db, address: 192.0.2.13, slot: 0}
		! 6: db would have 192.0.2.12 and 192.0.2.13, both as 0:ip0
		=== reserved twice
		- name: net1
		  reservations:
		  - {owner: db, address: 192.0.2.12}
		  - {owner: x, address: 192.0.2.12}
		! 6: 192.0.2.12 is on line 5, too, for another owner; leave one of them out
		=== held
		- name: net1
		  reservations: [{owner: db, address: 192.0.2.10}, {owner: live, address: 192.0.2.10}]
		  addresses: [{owner: db, address: 192.0.2.10}]
		! 4: 192.0.2.10 is held by live
		! 5: 192.0.2.10 is on line 4, too, for another owner; leave one of them out
		=== held by its owner
		- name: net1
		  reservations: [{owner: live, address: 192.0.2.10}]
		=== gateway reserved
		- name: net1
		  reservations: [{owner: db, address: 192.0.2.1, force: true}]
		! 4: 192.0.2.1 is held by the gateway of its subnet
		=== gateway of a new one
		- name: a
		  subnets: [{cidr: 10.0.0.0/24, gateway: 10.0.0.1}]
		  addresses: [{owner: x, address: 10.0.0.1}]
		! 5: 10.0.0.1 is held by the gateway of its subnet
		=== no host
		- name: net1
		  reservations: [{owner: db, address: 192.0.2.0}]
		  addresses: [{owner: db, address: 192.0.2.255}]
		! 4: 192.0.2.0 is the network address of 192.0.2.0/24
		! 5: 192.0.2.255 is the broadcast address of 192.0.2.0/24
		=== nowhere
		- name: net1
		  addresses: [{owner: db, address: 10.0.0.1}]
		! 4: 10.0.0.1 is outside the subnet 192.0.2.0/24 of network net1
		=== owner
		- name: net1
		  addresses: [{owner: a//b, address: 192.0.2.70}]
		! 4: "a//b" is not a valid owner
		# GA-24
		=== slot too high
		- name: net1
		  addresses: [{owner: db, address: 192.0.2.70, slot: 64}]
		! 4: the interface of db: ip64 is not one of ip0 to ip63
		=== gap
		- name: net1
		  addresses: [{owner: db, address: 192.0.2.70, slot: 2}, {owner: db, address: 192.0.2.71, slot: 0}]
		! 4: interface 0 of db would have ip2 (192.0.2.70) and no ip1
		=== taken in another slot
		- name: net1
		  addresses: [{owner: rtr, address: 192.0.2.50, slot: 1}]
		! 4: interface 0 of rtr would have ip1 (192.0.2.50) and no ip0
		! 4: 192.0.2.50 is held by rtr
		=== taken by another
		- name: net1
		  addresses: [{owner: nas, address: 192.0.2.50}]
		! 4: 192.0.2.50 is held by rtr
		# GA-6
		=== taken and reserved for another
		- name: net1
		  addresses: [{owner: nas, address: 192.0.2.11}]
		! 4: 192.0.2.11 is held by web (reserved since
		=== taken and reserved in the plan
		- name: net1
		  reservations: [{owner: x, address: 192.0.2.70}]
		  addresses: [{owner: y, address: 192.0.2.70}]
		! 4: 192.0.2.70 is on line 5, too, for another owner; leave one of them out
	`)
}

// problems imports the networks of each case, which begins with "=== NAME". It compares the problems, each with
// its line, with the lines that begin with "! ". A case without such lines is right, and is a dry run. LONG is 256
// letters.
func problems(t *testing.T, r *ipamtest.Stage, cases string) {
	t.Helper()
	for one := range strings.SplitSeq(cases[strings.Index(cases, "=== ")+4:], "=== ") {
		name, rest, _ := strings.Cut(one, "\n")
		t.Run(name, func(t *testing.T) {
			document, want := "version: 1\nnetworks:\n", []string{}
			for line := range strings.Lines(strings.ReplaceAll(rest, "LONG", strings.Repeat("y", 256))) {
				line = strings.TrimLeft(line, "\t")
				if says, is := strings.CutPrefix(line, "! "); is {
					want = append(want, strings.TrimSpace(says))
				} else {
					document += line
				}
			}
			var got []string
			var wrong *ipam.PlanError
			unchanged(r, "the import", func() {
				_, err := r.S.Import(ctx, read(r, document), ipam.ImportOptions{DryRun: len(want) == 0})
				if err != nil && (!errors.As(err, &wrong) || !errors.Is(err, ipam.ErrInvalid)) {
					t.Fatalf("the error is %v", err)
				}
			})
			if wrong != nil {
				for _, p := range wrong.Problems {
					got = append(got, fmt.Sprintf("%d: %s", p.Line, advice.Join(p.Text, p.Advice)))
				}
			}
			if !slices.EqualFunc(got, want, strings.HasPrefix) {
				t.Errorf("the problems are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// Values that only JSON can have are refused, too: mapped addresses, zones, host bits, missing ranges.
func TestImportProblemsOfJSON(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24")
	for row := range ipamtest.Rows(2, `
		{"name": "a", "subnets": [{}]} | a subnet is missing
		{"name": "a", "subnets": [{"cidr": "10.0.0.1/24"}]} | 10.0.0.1/24 has host bits set
		{"name": "a", "subnets": [{"cidr": "::ffff:10.0.0.0/120"}]} | mapped into IPv6
		{"name": "net1", "pools": [{}]} | a range is missing
		{"name": "a", "subnets": [{"cidr": "10.0.0.0/24", "exclusions": [{}]}]} | a range is missing
		{"name": "a", "subnets": [{"cidr": "10.0.0.0/24", "pools": [{}]}]} | a range is missing
		{"name": "net1", "reservations": [{"owner": "web"}]} | the reservation of web has no address
		{"name": "net1", "reservations": [{"owner": "web", "address": "::ffff:192.0.2.9"}]} | mapped into IPv6; write 192.0.2.9
		{"name": "net1", "reservations": [{"owner": "web", "address": "fe80::1%eth0"}]} | "fe80::1%eth0" has a zone
		{"name": "net1", "addresses": [{"owner": "web", "address": "192.0.2.9", "slot": -1}]} | ip-1 is not one of ip0 to ip63
		{"subnets": [{"cidr": "10.0.0.0/24"}]} | the subnet 10.0.0.0/24 belongs to no network
		{"mac_prefix": "aa:00:00"} | the network has no name
		{"type": "vip"} | the network has no name
		{"name": "a", "type": "static"} | "static" is not a network type
		{"pools": [{"range": "10.0.0.1"}]} | no network of the space local contains 10.0.0.1
		{"space": "lab", "pools": [{"range": "192.0.2.1"}]} | no network of the space lab contains 192.0.2.1
	`) {
		var n ipam.PlannedNetwork
		fine(t, json.Unmarshal([]byte(row[0]), &n))
		_, err := r.S.Import(ctx, ipam.Plan{Networks: []ipam.PlannedNetwork{n}}, ipam.ImportOptions{})
		if !errors.Is(err, ipam.ErrInvalid) || !strings.Contains(err.Error(), row[1]) {
			t.Errorf("%s: %v, want %q", row[0], err, row[1])
		}
	}
	sound(r)
}
