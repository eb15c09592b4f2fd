package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReadCSV reads tables as spreadsheets and NetBox write them, into plans, which are here in JSON.
func TestReadCSV(t *testing.T) {
	for _, c := range []struct {
		name  string
		table Table
		text  string
		want  string
		notes Notes
	}{
		{"networks", Table{Noun: "networks"}, `name,space,mac_prefix,sticky,quarantine,type,owner_rules,tags,links
net1,lab,aa:00:00,FALSE,1h,vip,"web-*=pool:web; db-*=pool:db,owner:shop/*","site=a;odd\=key=x\;y",alpha bridged br0;beta routed 100
flat,,,,,,,,
`, `[{"name": "net1", "space": "lab", "mac_prefix": "aa:00:00", "sticky": false, "quarantine": "1h", "line": 2,
	"type": "vip", "owner_rules": [{"pattern": "web-*", "pool": "web"},
		{"pattern": "db-*", "pool": "db", "owner": "shop/*"}],
	"tags": {"site": "a", "odd=key": "x;y"},
	"links": [{"host": "alpha", "mode": "bridged", "link": "br0"}, {"host": "beta", "mode": "routed", "link": "100"}]},
{"name": "flat", "line": 3}]`, Notes{}},
		{"subnets with a mark, semicolons and CRLF", Table{Noun: "subnets"},
			"\ufeffCIDR;Network;Gateway;DHCP;Pool;Name\r\n192.0.2.0/24;net1;192.0.2.1;TRUE;;lan\r\n;;;;;\r\n2001:db8::/64;net1;;;yes;\r\n198.51.100.0/24;net2;;;;\r\n",
			`[{"name": "net1", "line": 2, "subnets": [
	{"cidr": "192.0.2.0/24", "gateway": "192.0.2.1", "dhcp": true, "name": "lan", "line": 2},
	{"cidr": "2001:db8::/64", "line": 4, "pools": [{"range": "2001:db8::/64", "line": 4}]}]},
{"name": "net2", "line": 5, "subnets": [{"cidr": "198.51.100.0/24", "line": 5}]}]`, Notes{}},
		{"subnets with static bands", Table{Noun: "subnets", Network: "net1"},
			"prefix,static\n192.0.2.0/24,192.0.2.8/29; 192.0.2.64\n",
			`[{"name": "net1", "line": 2, "subnets": [{"cidr": "192.0.2.0/24", "line": 2,
	"static": [{"range": "192.0.2.8-192.0.2.15", "line": 2}, {"range": "192.0.2.64", "line": 2}]}]}]`, Notes{}},
		{"subnets with tabs", Table{Noun: "subnets", Network: "net9", Space: "lab"}, "prefix\tname\n192.0.2.0/24\t\n",
			`[{"name": "net9", "space": "lab", "line": 2, "subnets": [{"cidr": "192.0.2.0/24", "line": 2}]}]`, Notes{}},
		{"NetBox's table of prefixes", Table{Noun: "subnets", Network: "site"},
			`ID,Prefix,Status,Children,VRF,Tenant,Pool,Description
1,10.0.0.0/8,Container,2,Global,,False,
2,10.0.1.0/24,Active,0,Global,ACME,False,"the, lan"
3,10.0.1.0/24,Active,0,red (65000:1),,True,
`, `[{"name": "site", "line": 3, "subnets": [{"cidr": "10.0.1.0/24", "note": "the, lan", "line": 3}]},
{"name": "site", "space": "red", "line": 4, "subnets": [{"cidr": "10.0.1.0/24", "line": 4,
	"pools": [{"range": "10.0.1.0/24", "line": 4}]}]}]`,
			Notes{Ignored: []string{"ID", "Status", "Children", "Tenant"}, Prefixes: 1}},
		{"NetBox's ip-ranges", Table{Noun: "pools"},
			"start_address,end_address,vrf,status,description\n10.0.1.10/24,10.0.1.99/24,,active,\n2001:db8::1/64,2001:db8::ff/64,red,active,\n",
			`[{"line": 2, "pools": [{"range": "10.0.1.10-10.0.1.99", "line": 2}]},
{"space": "red", "line": 3, "pools": [{"range": "2001:db8::1-2001:db8::ff", "line": 3}]}]`,
			Notes{Ignored: []string{"status", "description"}}},
		{"pools by range", Table{Noun: "pools"}, "network,range,name\nnet1,192.0.2.10+91,front\nnet1,192.0.2.128/26,\n",
			`[{"name": "net1", "line": 2, "pools": [{"range": "192.0.2.10-192.0.2.100", "name": "front", "line": 2},
	{"range": "192.0.2.128-192.0.2.191", "line": 3}]}]`, Notes{}},
		{"exclusions", Table{Noun: "exclusions"},
			"network,start,note\nnet1,192.0.2.60,\"two\nlines\"\nnet1,192.0.2.61,'=1+1\nnet1,192.0.2.62, blank \n",
			`[{"name": "net1", "line": 2, "exclusions": [{"range": "192.0.2.60", "note": "two\nlines", "line": 2},
	{"range": "192.0.2.61", "note": "=1+1", "line": 4}, {"range": "192.0.2.62", "note": " blank ", "line": 5}]}]`,
			Notes{}},
		{"reservations", Table{Noun: "reservations"},
			"network,owner,address,interface,slot,automatic\nnet1,web,192.0.2.11,,,\nnet1,web,192.0.2.12,0,1,true\n",
			`[{"name": "net1", "line": 2, "reservations": [
	{"owner": "web", "address": "192.0.2.11", "unplaced": true, "line": 2},
	{"owner": "web", "address": "192.0.2.12", "slot": 1, "automatic": true, "line": 3}]}]`, Notes{}},
		{"reservations that end", Table{Noun: "reservations", Network: "net1"},
			"owner,address,slot,replaced,until\nweb,192.0.2.11,1,yes,\njob,,,,2026-05-01T20:00:00+02:00\n",
			`[{"name": "net1", "line": 2, "reservations": [
	{"owner": "web", "address": "192.0.2.11", "slot": 1, "replaced": true, "line": 2},
	{"owner": "job", "unplaced": true, "until": "2026-05-01T18:00:00Z", "line": 3}]}]`, Notes{}},
		{"NetBox's ip-addresses", Table{Noun: "addresses"}, `ID,IP Address,VRF,Status,DNS Name,Interface,Parent
1,10.0.1.5/24,Global,Active,rtr.example.net,eth0,rtr
2,10.0.1.6/24,Global,Active,nas.example.net,,
`, `[{"line": 2, "addresses": [{"owner": "rtr", "address": "10.0.1.5", "unplaced": true, "line": 2},
	{"owner": "nas.example.net", "address": "10.0.1.6", "unplaced": true, "line": 3}]}]`,
			Notes{Ignored: []string{"ID", "Status"}}},
		{"NetBox's ip-addresses as it imports them", Table{Noun: "addresses"},
			`address,vrf,device,virtual_machine,dns_name
10.0.1.5/24,,rtr,,
10.0.1.6/255.255.255.0,,,vm1,vm1.example.net
10.0.1.7/24,,vm2,vm2,
10.0.1.8/24,Kunde A (65000:1),Core Switch (rack 3),,
10.0.1.9/24,Kunde A,Core Switch (rack 3),,
10.0.1.10/24,a/b,rack 3/sw#1,,
10.0.1.11/24,,,,_x.a-name-of-more-than-sixty-three-letters.and-of-more-than-one-domain.example.net
`, `[{"line": 2, "addresses": [{"owner": "rtr", "address": "10.0.1.5", "unplaced": true, "line": 2},
	{"owner": "vm1", "address": "10.0.1.6", "unplaced": true, "line": 3},
	{"owner": "vm2", "address": "10.0.1.7", "unplaced": true, "line": 4},
	{"owner": "x.a-name-of-more-than-sixty-three-letters.and-of-more-than-one", "address": "10.0.1.11",
		"unplaced": true, "line": 8}]},
{"space": "Kunde-A", "line": 5, "addresses": [
	{"owner": "Core-Switch-rack-3", "address": "10.0.1.8", "unplaced": true, "line": 5},
	{"owner": "Core-Switch-rack-3", "address": "10.0.1.9", "unplaced": true, "line": 6}]},
{"space": "a-b", "line": 7, "addresses": [
	{"owner": "rack-3/sw-1", "address": "10.0.1.10", "unplaced": true, "line": 7}]}]`,
			Notes{Renamed: []Renamed{{5, "space", "Kunde A", "Kunde-A"},
				{5, "owner", "Core Switch (rack 3)", "Core-Switch-rack-3"}, {7, "space", "a/b", "a-b"},
				{7, "owner", "rack 3/sw#1", "rack-3/sw-1"},
				{8, "owner", "_x.a-name-of-more-than-sixty-three-letters.and-of-more-than-one-domain.example.net",
					"x.a-name-of-more-than-sixty-three-letters.and-of-more-than-one"}}}},
		{"owners and devices", Table{Noun: "addresses"}, "address,owner,device\n10.0.1.5,,A b\n10.0.1.6,c d,\n",
			`[{"line": 2, "addresses": [{"owner": "A-b", "address": "10.0.1.5", "unplaced": true, "line": 2},
	{"owner": "c d", "address": "10.0.1.6", "unplaced": true, "line": 3}]}]`,
			Notes{Renamed: []Renamed{{2, "owner", "A b", "A-b"}}}},
		{"masks", Table{Noun: "subnets", Network: "site"},
			"Subnet,Mask,Description\n10.0.1.0,255.255.255.0,\n10.0.2.0,24,\n2001:db8::,64,\n10.0.3.0/255.255.255.128,,\n" +
				"10.0.4.0/24,255.255.255.0,\n",
			`[{"name": "site", "line": 2, "subnets": [{"cidr": "10.0.1.0/24", "line": 2}, {"cidr": "10.0.2.0/24", "line": 3},
	{"cidr": "2001:db8::/64", "line": 4}, {"cidr": "10.0.3.0/25", "line": 5}, {"cidr": "10.0.4.0/24", "line": 6}]}]`,
			Notes{}},
		{"unknown columns left out", Table{Noun: "subnets", Network: "net1", Ignore: true},
			"prefix,colour\n192.0.2.0/24,red\n",
			`[{"name": "net1", "line": 2, "subnets": [{"cidr": "192.0.2.0/24", "line": 2}]}]`,
			Notes{Ignored: []string{"colour"}}},
		{"header only", Table{Noun: "subnets"}, "prefix\n", "null", Notes{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, notes, err := ReadCSV(strings.NewReader(c.text), c.table)
			if err != nil {
				t.Fatal(err)
			}
			plans(t, c.want, p.Networks)
			if diff := cmp.Diff(c.notes, notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestBadCSV checks the line and the text of the error for each kind of bad input.
func TestBadCSV(t *testing.T) {
	refused(t, `
		subnets |  | 0: the table is empty; its first row names the columns: network, space, prefix, mask, name, gateway, gateway_note, dhcp, dhcp_parent, dhcp_id, note, static, pool
		subnets | network,name\nnet1,lan\n | 1: there is no column prefix, which a table of subnets needs
		subnets | prefix,colour\n192.0.2.0/24,red\n | 1: there is no column "colour"; the columns are network, space, prefix
		subnets | prefix,CIDR,vrf,space\n10.0.0.0/24,10.0.0.0/25,,\n10.0.0.0/24,,red,blue\n | 2: prefix is "10.0.0.0/24" and CIDR is "10.0.0.0/25", but both columns mean the same; leave one of them empty & 3: vrf is "red" and space is "blue", but both columns mean the same
		addresses | address,device,virtual_machine\n10.0.0.1,a,b\n10.0.0.2,a,a\n | 2: device is "a" and virtual_machine is "b", but both columns mean the same
		addresses | address,device\n10.0.0.1,A b\n10.0.0.2,A (b)\n10.0.0.3,A-b\n10.0.0.4,A b\n10.0.0.5,***\n | 3: "A b" and "A (b)" would both be the owner A-b; rename one of them & 4: "A b" and "A-b" would both be the owner & 6: "***" is not a valid owner: write a name such as web, a path such as shop/web/1, or a MAC address; a name has 1 to 63 letters, digits, '_', '.' and '-'
		subnets | prefix,vrf\n10.0.0.0/24,***\n10.0.0.0/24,a b\n10.0.0.0/24,a-b\n | 2: "***" cannot name a space: use 1 to 63 letters & 4: "a b" and "a-b" would both be the space a-b
		subnets | subnet,mask\n10.0.0.0,255.255.0.255\n10.0.0.0/24,255.255.255.128\n10.0.0.1,24\n10.0.0.0,\n,24\n | 2: prefix: invalid subnet "10.0.0.0/255.255.0.255": "255.255.0.255" is not a length & 3: the prefix is 10.0.0.0/24, but the mask is 255.255.255.128; give only one of them & 4: prefix: invalid subnet "10.0.0.1/24": it has host bits & 5: prefix: invalid subnet "10.0.0.0": it has no length & 6: the subnet has no prefix
		subnets | prefix,name\n192.0.2.0/24\n | 2: the row has 1 cells, but the header has 2
		subnets | prefix,name\n,lan\n | 2: the subnet has no prefix
		subnets | prefix\n"192.0.2.0/24\n | 2: the row cannot be read: line 2, character 15: extraneous or missing
		subnets | prefix,name\n192.0.2.0/24,a"b\n | 2: the row cannot be read: line 2, character 15: bare
		subnets | prefix\n192.0.2.5/24\n | 2: prefix: invalid subnet "192.0.2.5/24": it has host bits
		subnets | prefix,gateway\n192.0.2.0/24,gw\n | 2: gateway: "gw" is not an IPv4 or IPv6 address
		subnets | prefix\ncaf\xe9\n | 2: the line is not UTF-8
		subnets | \ufeffCIDR;Network;Gateway;DHCP;Pool;Name\r\n192.0.2.0/24;net1;192.0.2.1;WAHR;;\r\n;;;;;\r\n | 2: DHCP: "WAHR" is neither on nor off (true or false, yes or no, 1 or 0)
		subnets | prefix;network\n10.0.0.0/24;a\n10.0.0.1;b\n | 3: prefix: invalid subnet "10.0.0.1": it has no length
		networks | name\n\n  \nnet1\n,x\n | 5: the row has 2 cells, but the header has 1
		networks | name,space\n,lab\n | 2: the network has no name
		networks | name,tags,links\na,site,alpha\nb,x=1;x=2,\n | 2: tags: "site" is not of the form KEY=VALUE & 2: links: "alpha" is not of the form HOST MODE LINK & 3: tags: the tag "x" is given twice
		pools | network,name\nnet1,a\n | 1: there is no column start_address or range, which a table of pools needs
		pools | start_address,range\n,\n10.0.0.1,10.0.0.2\n | 3: the row has a start and a range; give only one of them
		pools | start_address,end_address,name\n,10.0.0.2,a\n10.0.0.9,10.0.0.2,\n10.0.0.9/33,,\n10.0.0.9,2001:db8::1,\n | 2: the row has no start address & 3: invalid range "10.0.0.9-10.0.0.2": it is reversed & 4: start_address: "33" is not a prefix length & 5: invalid range
		reservations | address\n10.0.0.1\n | 1: there is no column owner or device or dns_name, which a table of reservations needs
		reservations | address,owner,slot,until\n10.0.0.1,,,\n10.0.0.1,web,two,\n10.0.0.1,web,-1,tomorrow\n,,1,\n | 2: 10.0.0.1 has no owner & 3: slot: "two" is not a whole number, 0 or more & 4: slot: "-1" is not a whole number, 0 or more & 4: until: "tomorrow" is not a time such as 2026-05-01T18:00:00Z & 5: the row has no owner
		addresses | owner\nrtr\n | 1: there is no column address, which a table of addresses needs
		addresses | address,owner\n,rtr\n | 2: the row has no address
		networks | name,type,owner_rules\na,static,\nb,vip,web-*\nc,,web-*=pool\nd,,"a=pool:x;b=pool:x,pool:y"\ne,,a=pool:x;\n | 2: type: "static" is not a network type: write manual, dynamic or vip & 3: owner_rules: "web-*" is not an owner rule; write PATTERN=pool:NAME & 4: owner_rules: "pool" in the rule for web-* is neither pool:NAME nor owner:PATH & 5: owner_rules: the rule for b gives more than one pool: & 6: owner_rules: "" is not an owner rule
		subnets | prefix,static\n10.0.0.0/24,10.0.0.8+4;x\n | 2: static: invalid range "x"
		addresses | address,owner,automatic\n10.0.0.1,rtr,true\n | 1: there is no column "automatic"
	`, func(noun, text string) error {
		_, _, err := ReadCSV(strings.NewReader(text), Table{Noun: noun})
		return err
	})
	if _, _, err := ReadCSV(strings.NewReader("a\n"), Table{Noun: "leases"}); err == nil ||
		!strings.Contains(err.Error(), "the tables are networks, subnets,") {
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
