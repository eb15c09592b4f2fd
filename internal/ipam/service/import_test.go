package service_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/advice"
	"berth/internal/ipam"
	"berth/internal/plan"

	"github.com/google/go-cmp/cmp"
)

// exported is the document of the plan.
func (r *room) exported() string {
	r.t.Helper()
	var b bytes.Buffer
	w := plan.NewYAML(&b)
	for n, err := range r.s.Export(ctx, "") {
		if err != nil {
			r.t.Fatal(err)
		}
		if err := w.Write(&n); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		r.t.Fatal(err)
	}
	return b.String()
}

func (r *room) read(document string) ipam.Plan {
	r.t.Helper()
	p, err := plan.ReadYAML(strings.NewReader(document))
	if err != nil {
		r.t.Fatalf("%v\n%s", err, document)
	}
	return p
}

// imports imports a document, which must succeed.
func (r *room) imports(document string) ipam.ImportReport {
	r.t.Helper()
	report, err := r.s.Import(ctx, r.read(document), ipam.ImportOptions{})
	if err != nil {
		r.t.Fatalf("%v\n%s", err, document)
	}
	r.sound()
	return report
}

// sound asks whether the records fit one another, and whether an import has left anything behind.
func (r *room) sound() {
	r.t.Helper()
	if problems, err := r.s.Check(ctx); err != nil || len(problems) > 0 {
		r.t.Fatalf("berth fsck says: %q, %v", problems, err)
	}
	if state, err := r.s.ImportState(ctx); err != nil || state != nil {
		r.t.Fatalf("an import is open: %+v, %v", state, err)
	}
	for key := range dump(r.t, r.store) {
		if strings.HasPrefix(key, `"j`) {
			r.t.Fatalf("a journal was left: %s", key)
		}
	}
}

// plannedHouse is a state with everything in it that a plan can have, and things of Docker's that it cannot.
const plannedHouse = `
	network net1 mac=aa:00:00 sticky=off quarantine=10m tag.site=a
	network.set net1 link=h1,bridged,br0
	subnet net1 192.0.2.0/24 gw=192.0.2.1 name=lan dhcp
	subnet net1 2001:db8::/64 pool
	subnet net1 198.51.100.0/24
	pool net1 192.0.2.10-192.0.2.100 name=pool1
	pool net1 192.0.2.128/26
	exclude net1 192.0.2.60+5 note=printers
	exclude net1 192.0.2.7
	reserve net1 web 192.0.2.11,2001:db8::11
	reserve net1 shop/web/1 pool
	reserve net1 02:42:0a:00:00:01 192.0.2.13
	take net1 rtr 0:ip0=192.0.2.12,ip1=pool,ip2=198.51.100.9
	take net1 rtr 1:ip0=192.0.2.60 force
	reserve net1 spare 192.0.2.12 force
	network flat subnet=10.7.0.0/24,pool
	network cable
	network lab1 space=lab subnet=10.7.0.0/24,gw=10.7.0.254
	attach P net=flat
	ask P web mac=1
	attach D cidr=10.99.0.0/24
	ask D own mac=2
`

// TestExportImport: importing an export into the same daemon changes nothing, and importing it into an empty one gives
// the same export back, byte for byte.
func TestExportImport(t *testing.T) {
	r := newRoom(t)
	r.run(plannedHouse)
	document := r.exported()
	for _, part := range []string{"name: net1", `mac_prefix: "aa:00:00"`, "sticky: false", "quarantine: 10m\n",
		"site: a", "host: h1", "dhcp: true",
		"{range: 192.0.2.10-192.0.2.100, name: pool1}", "note: printers", "pool: true", "owner: shop/web/1",
		"automatic: true", "interface: 1, slot: 0",
		"force: true", "name: cable", "space: lab", `"02:42:0a:00:00:01"`} {
		if !strings.Contains(document, part) {
			t.Errorf("the export has no %s:\n%s", part, document)
		}
	}
	if strings.Contains(document, "10.99.0.0") {
		t.Errorf("what Docker made is in the export:\n%s", document)
	}
	before := dump(t, r.store)
	report := r.imports(document)
	want := ipam.Counts{Networks: 4, Subnets: 5, Pools: 4, Exclusions: 2, Reservations: 5, Addresses: 4}
	if report.Added != (ipam.Counts{}) || report.Unchanged != want {
		t.Errorf("imported again: %+v", report)
	}
	if diff := cmp.Diff(before, dump(t, r.store)); diff != "" {
		t.Errorf("importing the same again changed records:\n%s", diff)
	}

	empty := newRoom(t)
	if report := empty.imports(document); report.Added != want || report.Unchanged != (ipam.Counts{}) {
		t.Errorf("imported: %+v", report)
	}
	if again := empty.exported(); again != document {
		t.Errorf("the export of what was imported differs:\n%s", cmp.Diff(document, again))
	}
	empty.reopened()

	var one []string
	for n, err := range r.s.Export(ctx, "lab1") {
		if err != nil {
			t.Fatal(err)
		}
		one = append(one, n.Name)
	}
	if len(one) != 1 || one[0] != "lab1" {
		t.Errorf("the export of one network has %q", one)
	}
	for _, err := range r.s.Export(ctx, "nowhere") {
		if !errors.Is(err, ipam.ErrNotFound) {
			t.Errorf("the export of a network that is not there: %v", err)
		}
	}
}

// A network that an import has made is like one that was made by hand: Docker takes from it, and its events tell who.
func TestImportedIsUsed(t *testing.T) { // GA-1, GA-8, GA-15, GA-24
	r := newRoom(t)
	r.run(plannedHouse)
	document := r.exported()
	r = newRoom(t)
	who := ipam.WithActor(ctx, "uid 0")
	if _, err := r.s.Import(who, r.read(document), ipam.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	r.run(`
		attach P net=net1 cidr=192.0.2.0/24
		ask P shop/web/1 mac=7 -> 192.0.2.10
		ask P db mac=8 -> 192.0.2.15
		take net1 nas 192.0.2.60 force ! inuse; held by rtr
		take net1 rtr 1:add,ip0=pool ! inuse; has interface 1 already
		subnet.rm net1 192.0.2.0/24 ! inuse
	`)
	events, err := r.s.Events(ctx, ipam.EventFilter{})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for _, e := range events {
		if e.Actor == "uid 0" {
			told[e.Verb.String()]++
		}
	}
	want := map[string]int{"import.begin": 1, "import.end": 1, "space.create": 1, "network.create": 4,
		"subnet.create": 5, "subnet.gateway": 2,
		"exclusion.add": 2, "reservation.add": 5, "lease.take": 4}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

// TestImportAdds: what a network lacks is added to it, and a dry run says what that is and changes nothing.
func TestImportAdds(t *testing.T) {
	r := newRoom(t)
	r.run(`
		network net1 subnet=192.0.2.0/24,gw=192.0.2.1,name=lan tag.site=a
		pool net1 192.0.2.10-192.0.2.19
		reserve net1 web 192.0.2.11
		take net1 rtr 192.0.2.50
		attach D cidr=10.99.0.0/24
	`)
	document := `version: 1
networks:
- name: net1
  subnets:
  - cidr: 192.0.2.0/24
    pools: [192.0.2.10-192.0.2.19, {range: 192.0.2.30+10, name: front}]
    exclusions: [192.0.2.35]
  - {cidr: 198.51.100.0/24, name: wan, pool: true}
  pools: [192.0.2.40+5]
  exclusions: [198.51.100.7]
  reservations:
  - {owner: web, address: 192.0.2.11}
  - {owner: web, address: 192.0.2.12}
  - {owner: db, address: 198.51.100.7}
  addresses:
  - {owner: rtr, address: 192.0.2.50}
  - {owner: rtr, address: 192.0.2.51}
- name: net2
`
	before := dump(t, r.store)
	dry, err := r.s.Import(ctx, r.read(document), ipam.ImportOptions{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	added := ipam.Counts{Networks: 1, Subnets: 1, Pools: 3, Exclusions: 2, Reservations: 2, Addresses: 1}
	unchanged := ipam.Counts{Networks: 1, Subnets: 1, Pools: 1, Reservations: 1, Addresses: 1}
	want := ipam.ImportReport{DryRun: true, Added: added, Unchanged: unchanged, Networks: []ipam.ImportedNetwork{
		{Name: "net1", Added: ipam.Counts{Subnets: 1, Pools: 3, Exclusions: 2, Reservations: 2, Addresses: 1}},
		{Name: "net2", New: true, Added: ipam.Counts{Networks: 1}}}}
	if diff := cmp.Diff(want, dry); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, dump(t, r.store)); diff != "" {
		t.Errorf("a dry run changed records:\n%s", diff)
	}
	if report := r.imports(document); report.Added != added || report.Unchanged != unchanged {
		t.Errorf("%+v", report)
	}
	r.run(`
		pool net1 192.0.2.30+10 ! overlap
		exclude net1 192.0.2.35 ! overlap
		take net1 rtr 0:modify,ip3=192.0.2.52 ! invalid; without gaps
		reserve net1 x 198.51.100.7 force ! inuse; held by db
	`)
	if got := r.taken(ipam.AddressFilter{Owner: "rtr"}); len(got) != 2 || got[1].Slot != 1 {
		t.Errorf("rtr has %+v", got)
	}
	if again := r.imports(document); again.Added != (ipam.Counts{}) {
		t.Errorf("again: %+v", again)
	}

	// A network of Docker's own that something is added to is planned from then on.
	name := ""
	for _, n := range r.everything().Networks {
		if !n.Planned {
			name = n.Name
		}
	}
	r.imports("version: 1\nnetworks:\n- {name: " + name + ", reservations: [{owner: own, address: 10.99.0.9}]}\n")
	if !r.show(name).Planned {
		t.Error("the network is not planned")
	}
	r.run("detach D")
	r.show(name)
}

// A plan without the names of networks finds them by address: the tables of other programs have none.
func TestImportByAddress(t *testing.T) {
	r := newRoom(t)
	r.run(`
		network net1 subnet=192.0.2.0/24
		network net2 subnet=198.51.100.0/24
		network lab1 space=lab subnet=192.0.2.0/24
	`)
	table := func(noun, text string) ipam.Plan {
		p, _, err := plan.ReadCSV(strings.NewReader(text), plan.Table{Noun: noun})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, p := range []ipam.Plan{
		table("pools", "start_address,end_address,vrf\n198.51.100.128/24,198.51.100.130/24,\n"),
		table("exclusions", "range,note,space\n192.0.2.9,printer,lab\n"),
		table("addresses", "IP Address,DNS "+
			"Name,VRF\n192.0.2.20/24,nas.example.net,Global\n198.51.100.20/24,nas.example.net,Global\n192.0.2.20/24,nas,lab (65000:1)\n"),
		table("reservations", "address,owner\n192.0.2.21,web\n198.51.100.21,web\n"),
	} {
		if _, err := r.s.Import(ctx, p, ipam.ImportOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r.sound()
	var got []string
	for _, a := range r.taken(ipam.AddressFilter{}) {
		got = append(got, fmt.Sprintf("%s %s %s %d", a.Network, a.Address, a.Owner, a.Slot))
	}
	for _, a := range r.reservations(ipam.AddressFilter{}) {
		got = append(got, fmt.Sprintf("%s %s %s %d", a.Network, a.Address, a.Owner, a.Slot))
	}
	want := []string{"lab1 192.0.2.20 nas 0", "net1 192.0.2.20 nas.example.net 0",
		"net2 198.51.100.20 nas.example.net 0",
		"net1 192.0.2.21 web 0", "net2 198.51.100.21 web 0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if pools := r.show("net2").Subnets[0].Pools; len(pools) != 1 || pools[0].Start.String() != "198.51.100.128" ||
		pools[0].End.String() != "198.51.100.130" {
		t.Errorf("%+v", pools)
	}
	if x := r.show("lab1").Subnets[0].Exclusions; len(x) != 1 || x[0].Note != "printer" {
		t.Errorf("%+v", x)
	}
}

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
	r := newRoom(t)
	r.run(state)
	problems(t, r, []badPlan{
		{"name", "- name: a/b\n", []string{`3: "a/b" cannot name a network`}},
		{"reserved word", "- name: pool\n- name: none\n- name: all\n",
			[]string{`3: "pool" cannot name a network: the word has a meaning`, `4: "none"`, `5: "all"`}},
		{"address as a name", "- name: 192.0.2.1\n",
			[]string{`3: "192.0.2.1" cannot name a network: it reads as an address`}},
		{"network twice", "- name: a\n- name: b\n- name: a\n",
			[]string{"5: the network a is planned twice, before in line 3"}},
		{"space", "- {name: a, space: a b}\n", []string{`3: "a b" cannot name a space`}},
		{"MAC prefix", "- {name: a, mac_prefix: 01:00:00}\n",
			[]string{"3: MAC addresses that begin with 01:00:00 are those of groups"}},
		{"tag", "- name: a\n  tags: {a b: c}\n", []string{`3: "a b" cannot name a tag`}},
		{"tag too long", "- name: a\n  tags: {x: " + strings.Repeat("y", 256) + "}\n",
			[]string{"3: the tag x has 256 bytes"}},
		{"link", "- name: a\n  links: [{host: h1, mode: bridge, link: br0}]\n",
			[]string{`3: "bridge" is no mode of a link on host h1`}},
		{"two links", "- name: a\n  links: [{host: h1, mode: bridged, link: br0}, {host: h1, mode: ovs, link: br0}]\n",
			[]string{"3: the network a has two links on the host h1"}},
		{"other settings", "- {name: net1, mac_prefix: aa:00:01, sticky: false, quarantine: 1h, tags: {site: b, " +
			"floor: 2}, links: [{host: h1, mode: ovs, link: br0}, {host: h2, mode: ovs, link: br0}]}\n",
			[]string{"3: the MAC prefix of network net1 is aa:00:00 and not aa:00:01",
				"3: the tag floor of network net1 is none and not 2",
				"3: the tag site of network net1 is a and not b", "3: the link on the host h1 of network net1 is " +
					"bridged br0 and not ovs br0",
				"3: the link on the host h2 of network net1 is none and not ovs br0", "3: the stickiness of network " +
					"net1 is true and not false",
				"3: the quarantine of network net1 is 0s and not 1h"}},
		{"other space", "- {name: net1, space: lab}\n",
			[]string{"3: there is a network net1 in the space local, and a name is one network's only"}},
		{"subnet twice", "- name: a\n  subnets: [{cidr: 10.0.0.0/24}]\n- name: b\n  subnets:\n  - {cidr: " +
			"10.0.0.0/24}\n", []string{"7: the subnet 10.0.0.0/24 of space local is planned twice, before in line 4"}},
		{"overlap in the plan", "- name: a\n  subnets:\n  - {cidr: 10.0.0.0/24}\n  - {cidr: 10.0.0.0/16}\n",
			[]string{"6: the subnet 10.0.0.0/16 overlaps 10.0.0.0/24 of network a, before in line 5"}},
		{"overlap with what is there", "- name: a\n  subnets: [{cidr: 192.0.2.128/25}]\n",
			[]string{"4: the subnet 192.0.2.128/25 overlaps 192.0.2.0/24, which network net1 has in the space local"}},
		{"another's subnet", "- name: a\n  subnets: [{cidr: 192.0.2.0/24}]\n",
			[]string{"4: network net1 has the subnet 192.0.2.0/24 of space local already"}},
		{"same in another space", "- name: a\n  space: lab\n  subnets: [{cidr: 192.0.2.0/24}]\n", nil},
		{"subnet name", "- name: a\n  subnets: [{cidr: 10.0.0.0/24, name: all}]\n",
			[]string{`4: "all" cannot name a subnet`}},
		{"subnet name twice", "- name: a\n  subnets: [{cidr: 10.0.0.0/24, name: x}, {cidr: 10.0.1.0/24, name: x}]\n",
			[]string{"4: two subnets of network a would be named x: 10.0.0.0/24 and 10.0.1.0/24"}},
		{"subnet name there", "- name: net1\n  subnets: [{cidr: 10.0.0.0/24, name: lan}]\n",
			[]string{"4: two subnets of network net1 would be named lan: 192.0.2.0/24 and 10.0.0.0/24"}},
		{"gateway outside", "- name: a\n  subnets: [{cidr: 10.0.0.0/24, gateway: 10.0.1.1}]\n",
			[]string{"4: the gateway 10.0.1.1 is outside the subnet 10.0.0.0/24"}},
		{"gateway no host", "- name: a\n  subnets: [{cidr: 10.0.0.0/24, gateway: 10.0.0.255}]\n",
			[]string{"4: the gateway 10.0.0.255 is the broadcast address"}},
		{"other gateway, name, DHCP",
			"- name: net1\n  subnets: [{cidr: 192.0.2.0/24, gateway: 192.0.2.2, name: lan2, dhcp: true}]\n",
			[]string{"4: the name of the subnet 192.0.2.0/24 is lan and not lan2",
				"4: the gateway of the subnet 192.0.2.0/24 is 192.0.2.1 and not 192.0.2.2",
				"4: the DHCP flag of the subnet 192.0.2.0/24 is off and not on"}},
		// GA-12
		{"two with DHCP", "- name: a\n  subnets:\n  - {cidr: 10.0.0.0/24, dhcp: true}\n  - {cidr: 10.0.1.0/24, dhcp: " +
			"true}\n  - {cidr: 2001:db8:1::/64, dhcp: true}\n",
			[]string{"6: two subnets of network a would have DHCP: 10.0.0.0/24 and 10.0.1.0/24"}},
		{"DHCP there", "- name: net2\n  subnets: [{cidr: 2001:db8:1::/64, dhcp: true}]\n",
			[]string{"4: two subnets of network net2 would have DHCP: 2001:db8::/64 and 2001:db8:1::/64"}},
		// GA-17
		{"pool outside", "- name: a\n  subnets:\n  - cidr: 10.0.0.0/24\n    pools: [10.0.0.250-10.0.1.5]\n",
			[]string{"6: the pool 10.0.0.250-10.0.1.5 is not inside the subnet 10.0.0.0/24"}},
		{"pool name", "- name: a\n  subnets:\n  - cidr: 10.0.0.0/24\n    pools: [{range: 10.0.0.9, name: none}]\n",
			[]string{`6: "none" cannot name a pool`}},
		{"pools overlap", "- name: a\n  subnets:\n  - cidr: 10.0.0.0/24\n    pools:\n    - 10.0.0.100+50\n    - " +
			"10.0.0.9\n    - 10.0.0.0/25\n",
			[]string{"9: the pool 10.0.0.0/25 of the subnet 10.0.0.0/24 overlaps 10.0.0.9, before in line 8",
				"9: the pool 10.0.0.0/25 of the subnet 10.0.0.0/24 overlaps 10.0.0.100-10.0.0.149, before in line 7"}},
		{"pool twice", "- name: a\n  subnets:\n  - cidr: 10.0.0.0/24\n    pools:\n    - 10.0.0.9\n    - 10.0.0.9\n",
			[]string{"8: the pool 10.0.0.9 of the subnet 10.0.0.0/24 is planned twice, before in line 7"}},
		{"pool overlaps one there", "- name: net1\n  pools: [192.0.2.15+10]\n",
			[]string{"4: the pool 192.0.2.15-192.0.2.24 of the subnet 192.0.2.0/24 overlaps 192.0.2.10-192.0.2.19, " +
				"which is there"}},
		{"pool there by another name", "- name: net1\n  pools: [{range: 192.0.2.10+10, name: back}]\n",
			[]string{`4: the pool 192.0.2.10-192.0.2.19 of the subnet 192.0.2.0/24 is there as "front" and not as "back"`}},
		{"pool nowhere", "- name: net1\n  pools: [10.0.0.1]\n",
			[]string{"4: no subnet of network net1 holds 10.0.0.1"}},
		{"pool in another's subnet", "- name: net1\n  pools: [198.51.100.5]\n",
			[]string{"4: 198.51.100.5 is in the subnet 198.51.100.0/24 of network net2, and not in network net1"}},
		// GA-20
		{"exclusions overlap", "- name: net1\n  exclusions: [192.0.2.64, 192.0.2.70, 192.0.2.70+2]\n",
			[]string{"4: the exclusion 192.0.2.64 of the subnet 192.0.2.0/24 overlaps 192.0.2.60-192.0.2.64, which " +
				"is there", "4: the exclusion 192.0.2.70/31"}},
		{"exclusion outside", "- name: a\n  subnets:\n  - cidr: 10.0.0.0/24\n    exclusions: [10.0.1.0]\n",
			[]string{"6: the exclusion 10.0.1.0 is not inside the subnet 10.0.0.0/24"}},
		{"note", "- name: net1\n  exclusions: [{range: 192.0.2.70, note: \"a\\tb\"}]\n",
			[]string{"4: the note has characters that cannot be printed"}},
		{"other note", "- name: net1\n  exclusions: [{range: 192.0.2.60+5, note: scanners}]\n",
			[]string{`4: the exclusion 192.0.2.60-192.0.2.64 of the subnet 192.0.2.0/24 is there as "printers" and not as "scanners"`}},
		{"reserved for another", "- name: net1\n  reservations: [{owner: db, address: 192.0.2.11}]\n",
			[]string{"4: 192.0.2.11 is reserved for web already, and not for db"}},
		{"reserved in another slot", "- name: net1\n  reservations: [{owner: web, address: 192.0.2.11, slot: 1}]\n",
			[]string{"4: 192.0.2.11 is reserved for web as 0:ip0 already, and not as 0:ip1"}},
		{"slot taken", "- name: net1\n  reservations: [{owner: web, address: 192.0.2.12, interface: 0}]\n",
			[]string{"4: web has 192.0.2.11 as 0:ip0, and cannot have 192.0.2.12 there"}},
		{"slot twice", "- name: net1\n  reservations:\n  - {owner: db, address: 192.0.2.12, slot: 0}\n  - {owner: " +
			"db, address: 192.0.2.13, slot: 0}\n",
			[]string{"6: db has 192.0.2.12 as 0:ip0, before in line 5, and cannot have 192.0.2.13 there"}},
		{"reserved twice", "- name: net1\n  reservations:\n  - {owner: db, address: 192.0.2.12}\n  - {owner: x, " +
			"address: 192.0.2.12}\n", []string{"6: 192.0.2.12 is to be reserved for db and for x, before in line 5"}},
		{"held", "- name: net1\n  reservations: [{owner: db, address: 192.0.2.10}, {owner: live, address: " +
			"192.0.2.10}]\n  addresses: [{owner: db, address: 192.0.2.10}]\n",
			[]string{"4: 192.0.2.10 is to be reserved for db and for live", "4: 192.0.2.10 is held by live",
				"5: 192.0.2.10 is held by live"}},
		{"held by its owner", "- name: net1\n  reservations: [{owner: live, address: 192.0.2.10}]\n", nil},
		{"gateway reserved", "- name: net1\n  reservations: [{owner: db, address: 192.0.2.1, force: true}]\n",
			[]string{"4: 192.0.2.1 is the gateway of the subnet 192.0.2.0/24"}},
		{"gateway of a new one",
			"- name: a\n  subnets: [{cidr: 10.0.0.0/24, gateway: 10.0.0.1}]\n  addresses: [{owner: x, address: " +
				"10.0.0.1}]\n", []string{"5: 10.0.0.1 is the gateway of the subnet 10.0.0.0/24"}},
		{"no host", "- name: net1\n  reservations: [{owner: db, address: 192.0.2.0}]\n  addresses: [{owner: db, " +
			"address: 192.0.2.255}]\n",
			[]string{"4: 192.0.2.0 is the network address", "5: 192.0.2.255 is the broadcast address"}},
		{"nowhere", "- name: net1\n  addresses: [{owner: db, address: 10.0.0.1}]\n",
			[]string{"4: no subnet of network net1 holds 10.0.0.1"}},
		{"owner", "- name: net1\n  addresses: [{owner: a//b, address: 192.0.2.70}]\n",
			[]string{`4: "a//b" names no owner`}},
		{"slot too high", "- name: net1\n  addresses: [{owner: db, address: 192.0.2.70, slot: 64}]\n",
			[]string{"4: 192.0.2.70 is to be at interface 0, slot 64; there are 0 to 63"}},
		// GA-24
		{"gap", "- name: net1\n  addresses: [{owner: db, address: 192.0.2.70, slot: 2}, {owner: db, address: " +
			"192.0.2.71, slot: 0}]\n", []string{"4: interface 0 of db would have ip2 (192.0.2.70) and no ip1"}},
		{"taken in another slot", "- name: net1\n  addresses: [{owner: rtr, address: 192.0.2.50, slot: 1}]\n",
			[]string{"4: rtr has 192.0.2.50 as 0:ip0 already, and not as 0:ip1"}},
		{"taken by another", "- name: net1\n  addresses: [{owner: nas, address: 192.0.2.50}]\n",
			[]string{"4: 192.0.2.50 is held by rtr"}},
		{"taken and reserved for another", "- name: net1\n  addresses: [{owner: nas, address: 192.0.2.11}]\n",
			[]string{"4: 192.0.2.11 is reserved for web, and cannot be taken for nas"}},
		// GA-6
		{"taken and reserved in the plan",
			"- name: net1\n  reservations: [{owner: x, address: 192.0.2.70}]\n  addresses: [{owner: y, address: " +
				"192.0.2.70}]\n", []string{"4: 192.0.2.70 is to be reserved for x and taken by y, before in line 5"}},
	})
}

// badPlan is networks of a plan, and what is wrong with them as "line: words"; nil where nothing is.
type badPlan struct {
	name, networks string
	problems       []string
}

// problems holds each plan to what is wrong with it.
func problems(t *testing.T, r *room, plans []badPlan) {
	for _, c := range plans {
		t.Run(c.name, func(t *testing.T) {
			before := dump(t, r.store)
			p, err := plan.ReadYAML(strings.NewReader("version: 1\nnetworks:\n" + c.networks))
			if err != nil {
				t.Fatal(err)
			}
			// what is right must not add to the state
			_, err = r.s.Import(ctx, p, ipam.ImportOptions{DryRun: c.problems == nil})
			if diff := cmp.Diff(before, dump(t, r.store)); diff != "" {
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
	r := newRoom(t)
	r.run("network net1 subnet=192.0.2.0/24")
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
			"the address of web is missing"},
		{ipam.PlannedNetwork{Name: "net1",
			Reservations: []ipam.PlannedReservation{{Owner: "web", Address: netip.MustParseAddr("::ffff:192.0.2.9")}}},
			"mapped into IPv6; write 192.0.2.9"},
		{ipam.PlannedNetwork{Name: "net1",
			Reservations: []ipam.PlannedReservation{{Owner: "web", Address: netip.MustParseAddr("fe80::1%eth0")}}},
			"no subnet of network net1 holds fe80::1%eth0"},
		{ipam.PlannedNetwork{Name: "net1",
			Addresses: []ipam.PlannedAddress{{Owner: "web", Address: netip.MustParseAddr("192.0.2.9"), Slot: -1}}},
			"slot -1"},
		{ipam.PlannedNetwork{Subnets: []ipam.PlannedSubnet{{CIDR: netip.MustParsePrefix("10.0.0.0/24")}}},
			"the subnet 10.0.0.0/24 is of no network"},
		{ipam.PlannedNetwork{MACPrefix: "aa:00:00"}, "the network has no name"},
		{ipam.PlannedNetwork{Pools: []ipam.PlannedPool{{Range: mustRange("10.0.0.1")}}},
			"no subnet of the space local holds 10.0.0.1"},
		{ipam.PlannedNetwork{Space: "lab", Pools: []ipam.PlannedPool{{Range: mustRange("192.0.2.1")}}},
			"no subnet of the space lab holds 192.0.2.1"},
	} {
		_, err := r.s.Import(ctx, ipam.Plan{Networks: []ipam.PlannedNetwork{c.network}}, ipam.ImportOptions{})
		if !errors.Is(err, ipam.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.network, err, c.want)
		}
	}
	r.sound()
}

// An owner has so many slots at an interface and no more; those that say none fill what is left.
func TestImportSlots(t *testing.T) {
	r := newRoom(t)
	r.run("network net1 subnet=192.0.2.0/24")
	n := ipam.PlannedNetwork{Name: "net1",
		Addresses: []ipam.PlannedAddress{{Owner: "rtr", Address: netip.MustParseAddr("192.0.2.200"), Slot: 1}}}
	for i := range 64 {
		n.Addresses = append(n.Addresses,
			ipam.PlannedAddress{Owner: "rtr", Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), Unplaced: true,
				Line: i})
	}
	_, err := r.s.Import(ctx, ipam.Plan{Networks: []ipam.PlannedNetwork{n}}, ipam.ImportOptions{})
	if err == nil || !strings.Contains(err.Error(),
		"rtr has 64 addresses at interface 0, and cannot have more; say another interface for 192.0.2.64") {
		t.Fatalf("65 addresses of one interface: %v", err)
	}
	n.Addresses = n.Addresses[:64]
	if _, err := r.s.Import(ctx, ipam.Plan{Networks: []ipam.PlannedNetwork{n}}, ipam.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	slots := map[int]string{}
	for _, a := range r.taken(ipam.AddressFilter{Owner: "rtr"}) {
		slots[a.Slot] = a.Address.String()
	}
	if len(slots) != 64 || slots[0] != "192.0.2.1" || slots[1] != "192.0.2.200" || slots[2] != "192.0.2.2" ||
		slots[63] != "192.0.2.63" {
		t.Errorf("%v", slots)
	}
}

// A subnet has so many ranges and no more: its record is one.
func TestImportTooManyRanges(t *testing.T) {
	r := newRoom(t)
	n := ipam.PlannedNetwork{Name: "a",
		Subnets: []ipam.PlannedSubnet{{CIDR: netip.MustParsePrefix("10.0.0.0/8"), Line: 7}}}
	addr := netip.MustParseAddr("10.0.0.1")
	for range 3000 {
		n.Exclusions = append(n.Exclusions,
			ipam.PlannedExclusion{Range: mustRange(addr.String()), Note: strings.Repeat("n", 200)})
		addr = addr.Next().Next()
	}
	_, err := r.s.Import(ctx, ipam.Plan{Networks: []ipam.PlannedNetwork{n}}, ipam.ImportOptions{})
	if err == nil || !strings.Contains(err.Error(),
		"line 7: the subnet 10.0.0.0/8 would have 0 pools and 3000 exclusions, which are more than one subnet "+
			"can keep") {
		t.Fatalf("%v", err)
	}
	n.Exclusions = n.Exclusions[:1500]
	if _, err := r.s.Import(ctx, ipam.Plan{Networks: []ipam.PlannedNetwork{n}}, ipam.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	r.sound()
	if got := len(r.show("a").Subnets[0].Exclusions); got != 1500 {
		t.Errorf("%d exclusions", got)
	}
}
