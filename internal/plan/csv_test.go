package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
)

// TestReadCSV reads tables as spreadsheets and NetBox write them.
func TestReadCSV(t *testing.T) {
	addr, prefix := netip.MustParseAddr, netip.MustParsePrefix
	no, hour := false, ipam.Duration(3600e9)
	for _, c := range []struct {
		name  string
		table Table
		text  string
		want  []ipam.PlannedNetwork
		notes Notes
	}{
		{"networks", Table{Noun: "networks"},
			"name,space,mac_prefix,sticky,quarantine,type,owner_rules,tags,links\nnet1,lab,aa:00:00,FALSE,1h,vip,\"web-*=pool:web; db-*=pool:db,owner:shop/*\",\"site=a;odd\\=key=x\\;y\",alpha bridged br0;beta routed 100\nflat,,,,,,,,\n",
			[]ipam.PlannedNetwork{{Name: "net1", Space: "lab", MACPrefix: "aa:00:00", Sticky: &no, Quarantine: &hour,
				Line: 2,
				Type: "vip", OwnerRules: []ipam.OwnerRule{{Pattern: "web-*", Pool: "web"},
					{Pattern: "db-*", Pool: "db", Owner: "shop/*"}},
				Tags: map[string]string{"site": "a", "odd=key": "x;y"},
				Links: []ipam.Link{{Host: "alpha", Mode: "bridged", Link: "br0"},
					{Host: "beta", Mode: "routed", Link: "100"}}},
				{Name: "flat", Line: 3}}, Notes{}},
		{"subnets of a spreadsheet", Table{Noun: "subnets"},
			"\ufeffCIDR;Network;Gateway;DHCP;Pool;Name\r\n192.0.2.0/24;net1;192.0.2.1;WAHR;;\r\n;;;;;\r\n",
			nil, Notes{}},
		{"subnets with a mark, semicolons and CRLF", Table{Noun: "subnets"},
			"\ufeffCIDR;Network;Gateway;DHCP;Pool;Name\r\n192.0.2.0/24;net1;192.0.2.1;TRUE;;lan\r\n;;;;;\r\n2001:db8::/64;net1;;;yes;\r\n198.51.100.0/24;net2;;;;\r\n",
			[]ipam.PlannedNetwork{{Name: "net1", Line: 2, Subnets: []ipam.PlannedSubnet{
				{CIDR: prefix("192.0.2.0/24"), Gateway: addr("192.0.2.1"), DHCP: true, Name: "lan", Line: 2},
				{CIDR: prefix("2001:db8::/64"), Line: 4,
					Pools: []ipam.PlannedPool{{Range: wholeOf(prefix("2001:db8::/64")), Line: 4}}}}},
				{Name: "net2", Line: 5, Subnets: []ipam.PlannedSubnet{{CIDR: prefix("198.51.100.0/24"), Line: 5}}}},
			Notes{}},
		{"subnets with static bands", Table{Noun: "subnets", Network: "net1"},
			"prefix,static\n192.0.2.0/24,192.0.2.8/29; 192.0.2.64\n",
			[]ipam.PlannedNetwork{{Name: "net1", Line: 2,
				Subnets: []ipam.PlannedSubnet{{CIDR: prefix("192.0.2.0/24"), Line: 2,
					Static: []ipam.PlannedBand{{Range: ranged("192.0.2.8-192.0.2.15"), Line: 2},
						{Range: ranged("192.0.2.64-192.0.2.64"), Line: 2}}}}}}, Notes{}},
		{"subnets with tabs", Table{Noun: "subnets", Network: "net9", Space: "lab"}, "prefix\tname\n192.0.2.0/24\t\n",
			[]ipam.PlannedNetwork{{Name: "net9", Space: "lab", Line: 2,
				Subnets: []ipam.PlannedSubnet{{CIDR: prefix("192.0.2.0/24"), Line: 2}}}}, Notes{}},
		{"NetBox's table of prefixes", Table{Noun: "subnets", Network: "site"},
			"ID,Prefix,Status,Children,VRF,Tenant,Pool,Description\n1,10.0.0.0/8,Container,2,Global,,False,\n2,10.0.1.0/24,Active,0,Global,ACME,False,\"the, lan\"\n3,10.0.1.0/24,Active,0,red (65000:1),,True,\n",
			[]ipam.PlannedNetwork{
				{Name: "site", Line: 3, Subnets: []ipam.PlannedSubnet{{CIDR: prefix("10.0.1.0/24"), Note: "the, lan", Line: 3}}},
				{Name: "site", Space: "red", Line: 4,
					Subnets: []ipam.PlannedSubnet{{CIDR: prefix("10.0.1.0/24"), Line: 4,
						Pools: []ipam.PlannedPool{{Range: wholeOf(prefix("10.0.1.0/24")), Line: 4}}}}}},
			Notes{Ignored: []string{"ID", "Status", "Children", "Tenant"}, Prefixes: 1}},
		{"NetBox's ip-ranges", Table{Noun: "pools"},
			"start_address,end_address,vrf,status,description\n10.0.1.10/24,10.0.1.99/24,,active,\n2001:db8::1/64,2001:db8::ff/64,red,active,\n",
			[]ipam.PlannedNetwork{
				{Line: 2, Pools: []ipam.PlannedPool{{Range: ranged("10.0.1.10-10.0.1.99"), Line: 2}}},
				{Space: "red", Line: 3,
					Pools: []ipam.PlannedPool{{Range: ranged("2001:db8::1-2001:db8::ff"), Line: 3}}}},
			Notes{Ignored: []string{"status", "description"}}},
		{"pools by range", Table{Noun: "pools"}, "network,range,name\nnet1,192.0.2.10+91,front\nnet1,192.0.2.128/26,\n",
			[]ipam.PlannedNetwork{{Name: "net1", Line: 2, Pools: []ipam.PlannedPool{
				{Range: ranged("192.0.2.10-192.0.2.100"), Name: "front", Line: 2},
				{Range: ranged("192.0.2.128-192.0.2.191"), Line: 3}}}}, Notes{}},
		{"exclusions", Table{Noun: "exclusions"},
			"network,start,note\nnet1,192.0.2.60,\"two\nlines\"\nnet1,192.0.2.61,'=1+1\nnet1,192.0.2.62, blank \n",
			[]ipam.PlannedNetwork{{Name: "net1", Line: 2, Exclusions: []ipam.PlannedExclusion{
				{Range: ranged("192.0.2.60-192.0.2.60"), Note: "two\nlines", Line: 2},
				{Range: ranged("192.0.2.61-192.0.2.61"), Note: "=1+1", Line: 4},
				{Range: ranged("192.0.2.62-192.0.2.62"), Note: " blank ", Line: 5}}}}, Notes{}},
		{"reservations", Table{Noun: "reservations"},
			"network,owner,address,interface,slot,automatic\nnet1,web,192.0.2.11,,,\nnet1,web,192.0.2.12,0,1,true\n",
			[]ipam.PlannedNetwork{{Name: "net1", Line: 2, Reservations: []ipam.PlannedReservation{
				{Owner: "web", Address: addr("192.0.2.11"), Unplaced: true, Line: 2},
				{Owner: "web", Address: addr("192.0.2.12"), Slot: 1, Automatic: true, Line: 3}}}}, Notes{}},
		{"reservations that end", Table{Noun: "reservations", Network: "net1"},
			"owner,address,slot,replaced,until\nweb,192.0.2.11,1,yes,\njob,,,,2026-05-01T20:00:00+02:00\n",
			[]ipam.PlannedNetwork{{Name: "net1", Line: 2, Reservations: []ipam.PlannedReservation{
				{Owner: "web", Address: addr("192.0.2.11"), Slot: 1, Terms: ipam.Terms{Replaced: true}, Line: 2},
				{Owner: "job", Unplaced: true, Terms: ipam.Terms{Until: time.Date(2026, 5, 1, 18, 0, 0, 0, time.UTC)},
					Line: 3}}}},
			Notes{}},
		{"NetBox's ip-addresses", Table{Noun: "addresses"},
			"ID,IP Address,VRF,Status,DNS " +
				"Name,Interface,Parent\n1,10.0.1.5/24,Global,Active,rtr.example.net,eth0,rtr\n2,10.0.1.6/24,Global,Active,nas.example.net,,\n",
			[]ipam.PlannedNetwork{{Line: 2, Addresses: []ipam.PlannedAddress{
				{Owner: "rtr", Address: addr("10.0.1.5"), Unplaced: true, Line: 2},
				{Owner: "nas.example.net", Address: addr("10.0.1.6"), Unplaced: true, Line: 3}}}},
			Notes{Ignored: []string{"ID", "Status"}}},
		{"unknown columns left out", Table{Noun: "subnets", Network: "net1", Ignore: true},
			"prefix,colour\n192.0.2.0/24,red\n",
			[]ipam.PlannedNetwork{{Name: "net1", Line: 2,
				Subnets: []ipam.PlannedSubnet{{CIDR: prefix("192.0.2.0/24"), Line: 2}}}},
			Notes{Ignored: []string{"colour"}}},
		{"header only", Table{Noun: "subnets"}, "prefix\n", nil, Notes{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, notes, err := ReadCSV(strings.NewReader(c.text), c.table)
			if strings.Contains(c.text, "WAHR") { // a word of another language is refused with its line
				problems(t, err, []string{`2: DHCP: "WAHR" is neither true nor false`})
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, p.Networks, comparers...); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.notes, notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestBadCSV checks the line and the text of the error for each kind of bad input.
func TestBadCSV(t *testing.T) {
	for _, c := range []struct {
		noun, text string
		problems   []string
	}{
		{"subnets", "", []string{"0: the table is empty; its first row names the columns: network, space, prefix, " +
			"name, gateway, gateway_note, dhcp, dhcp_parent, dhcp_id, note, static, pool"}},
		{"subnets", "network,name\nnet1,lan\n", []string{"1: there is no column prefix, which subnets need"}},
		{"subnets", "prefix,colour\n192.0.2.0/24,red\n",
			[]string{`1: there is no column "colour"; there are network, space, prefix`}},
		{"subnets", "prefix,CIDR\n,\n", []string{`1: the column "prefix" is there twice, perhaps under another name`}},
		{"subnets", "prefix,name\n192.0.2.0/24\n", []string{"2: the row has 1 cells, and the header has 2"}},
		{"subnets", "prefix,name\n,lan\n", []string{"2: the subnet has no prefix"}},
		{"subnets", "prefix\n\"192.0.2.0/24\n",
			[]string{"2: the row cannot be read from its line 2, character 15, on: extraneous or missing"}},
		{"subnets", "prefix,name\n192.0.2.0/24,a\"b\n",
			[]string{"2: the row cannot be read from its line 2, character 15, on: bare"}},
		{"subnets", "prefix\n192.0.2.5/24\n", []string{`2: prefix: invalid subnet "192.0.2.5/24": it has host bits`}},
		{"subnets", "prefix,gateway\n192.0.2.0/24,gw\n", []string{`2: gateway: "gw" is not an IPv4 or IPv6 address`}},
		{"subnets", "prefix\ncaf\xe9\n", []string{"2: the line is not UTF-8"}},
		{"subnets", "prefix;network\n10.0.0.0/24;a\n10.0.0.1;b\n",
			[]string{`3: prefix: invalid subnet "10.0.0.1": it has no length`}},
		{"networks", "name\n\n  \nnet1\n,x\n", []string{"5: the row has 2 cells, and the header has 1"}},
		{"networks", "name,space\n,lab\n", []string{"2: the network has no name"}},
		{"networks", "name,tags,links\na,site,alpha\nb,x=1;x=2,\n",
			[]string{`2: tags: "site" is not of the form KEY=VALUE`,
				`2: links: "alpha" is not of the form HOST MODE LINK`, `3: tags: the tag "x" is given twice`}},
		{"pools", "network,name\nnet1,a\n", []string{"1: there is no column start_address or range, which pools need"}},
		{"pools", "start_address,range\n,\n10.0.0.1,10.0.0.2\n",
			[]string{"3: the row has a start and a range; give one of them"}},
		{"pools",
			"start_address,end_address,name\n,10.0.0.2,a\n10.0.0.9,10.0.0.2,\n10.0.0.9/33,,\n10.0.0.9,2001:db8::1,\n",
			[]string{"2: the row has no start", `3: invalid range "10.0.0.9-10.0.0.2": it is reversed`,
				`4: start_address: "33" is not a prefix length`, "5: invalid range"}},
		{"reservations", "address\n10.0.0.1\n",
			[]string{"1: there is no column owner or device or dns_name, which reservations need"}},
		{"reservations", "address,owner,slot,until\n10.0.0.1,,,\n10.0.0.1,web,two,\n10.0.0.1,web,-1,tomorrow\n,,1,\n",
			[]string{"2: 10.0.0.1 has no owner",
				`3: slot: "two" is not a number from 0 on`, `4: slot: "-1" is not a number`,
				`4: until: "tomorrow" is not a time such as 2026-05-01T18:00:00Z`,
				"5: the row has no owner"}},
		{"addresses", "owner\nrtr\n", []string{"1: there is no column address, which addresses need"}},
		{"addresses", "address,owner\n,rtr\n", []string{"2: the row has no address"}},
		{"networks",
			"name,type,owner_rules\na,static,\nb,vip,web-*\nc,,web-*=pool\nd,,\"a=pool:x;b=pool:x,pool:y\"\ne,,a=pool:x;\n", []string{
				`2: type: "static" is no type of network: write manual, dynamic or vip`,
				`3: owner_rules: "web-*" is no rule for owners; write PATTERN=pool:NAME`,
				`4: owner_rules: "pool" is neither pool:NAME nor owner:PATH, in the rule for web-*`,
				"5: owner_rules: the rule for b says pool: twice", `6: owner_rules: "" is no rule`}},
		{"subnets", "prefix,static\n10.0.0.0/24,10.0.0.8+4;x\n", []string{`2: static: invalid range "x"`}},
		{"addresses", "address,owner,automatic\n10.0.0.1,rtr,true\n", []string{`1: there is no column "automatic"`}},
	} {
		t.Run(c.noun+" "+c.problems[0], func(t *testing.T) {
			_, _, err := ReadCSV(strings.NewReader(c.text), Table{Noun: c.noun})
			problems(t, err, c.problems)
		})
	}
	if _, _, err := ReadCSV(strings.NewReader("a\n"), Table{Noun: "leases"}); err == nil ||
		!strings.Contains(err.Error(), "there are networks, subnets,") {
		t.Errorf("an unknown noun: %v", err)
	}
}

// One bad line among ten thousand is reported, and nothing else.
func TestBadLineAmongMany(t *testing.T) {
	var b strings.Builder
	b.WriteString("network,prefix\n")
	for i := range 10_000 {
		if i == 7_654 {
			b.WriteString("net1,10.0.0.0/33\n")
			continue
		}
		fmt.Fprintf(&b, "net1,10.%d.%d.0/24\n", i/256, i%256)
	}
	_, _, err := ReadCSV(strings.NewReader(b.String()), Table{Noun: "subnets"})
	problems(t, err, []string{`7656: prefix: invalid subnet "10.0.0.0/33": "33" is not a length of an IPv4 prefix`})
}

// No written cell begins like a formula, and each is read back unchanged.
func TestFormulas(t *testing.T) {
	for _, text := range []string{"=1+1", "+1", "-1", "@sum", "\tx", "'=1", "''-x", "'tis", "plain", "'", ""} {
		cell := guarded(text)
		if cell != "" && slices.Contains([]byte(formula), cell[0]) {
			t.Errorf("%q goes out as %q", text, cell)
		}
		if back := unguarded(cell); back != text {
			t.Errorf("%q came back as %q", text, back)
		}
	}
	if unguarded("'tis") != "'tis" {
		t.Error("a mark that nobody put there was taken away")
	}
}
