package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
)

// everything is a document with all forms that a person may write.
const everything = `# the plan of a site
version: 1
networks:
  - name: net1
    space: lab
    tags: {site: a, "odd key": "on"}
    mac_prefix: aa:00:00
    links:
      - {host: alpha, mode: bridged, link: br0}
    sticky: no
    quarantine: 10m
    type: manual
    owner_rules:
      - {pattern: web-*, pool: pool1}
      - {pattern: "*_db_*", owner: "shop/db-*/*"}
    subnets:
      - cidr: 192.0.2.0/24
        name: lan
        gateway: 192.0.2.1
        dhcp: true
        static: [192.0.2.8+4, 192.0.2.32/28]
        pools:
          - {range: 192.0.2.10+91, name: pool1}
          - 192.0.2.128/26
        exclusions:
          - {range: 192.0.2.60-192.0.2.64, note: "printers: 2nd floor"}
          - 192.0.2.7
      - cidr: 2001:db8::/64
        gateway:
        pool: true
    static:
      - 192.0.2.48
    pools:
      - 192.0.2.200+4
    exclusions: [192.0.2.201]
    reservations:
      - owner: web
        address: 192.0.2.11
      - {owner: 123, address: "2001:db8::", interface: 1, slot: 2, automatic: true}
      - {owner: web, address: 192.0.2.15, replaced: yes, until: 2026-05-01T18:00:00Z}
      - owner: seen
    addresses:
      - {owner: rtr, address: 192.0.2.12, slot: 1}
  - name: flat
    subnets: []
`

func TestReadYAML(t *testing.T) {
	p, err := ReadYAML(strings.NewReader(everything))
	if err != nil {
		t.Fatal(err)
	}
	plans(t, `[{"name": "net1", "space": "lab", "tags": {"site": "a", "odd key": "on"}, "mac_prefix": "aa:00:00",
	"links": [{"host": "alpha", "mode": "bridged", "link": "br0"}],
	"sticky": false, "quarantine": "10m", "line": 4,
	"type": "manual", "owner_rules": [{"pattern": "web-*", "pool": "pool1"},
		{"pattern": "*_db_*", "owner": "shop/db-*/*"}],
	"subnets": [{"cidr": "192.0.2.0/24", "name": "lan", "gateway": "192.0.2.1", "dhcp": true, "line": 17,
		"static": [{"range": "192.0.2.8-192.0.2.11", "line": 21}, {"range": "192.0.2.32-192.0.2.47", "line": 21}],
		"pools": [{"range": "192.0.2.10-192.0.2.100", "name": "pool1", "line": 23},
			{"range": "192.0.2.128-192.0.2.191", "line": 24}],
		"exclusions": [{"range": "192.0.2.60-192.0.2.64", "note": "printers: 2nd floor", "line": 26},
			{"range": "192.0.2.7", "line": 27}]},
		{"cidr": "2001:db8::/64", "line": 28, "cleared": ["gateway"],
			"pools": [{"range": "2001:db8::-2001:db8::ffff:ffff:ffff:ffff", "line": 30}]}],
	"static": [{"range": "192.0.2.48", "line": 32}],
	"pools": [{"range": "192.0.2.200-192.0.2.203", "line": 34}],
	"exclusions": [{"range": "192.0.2.201", "line": 35}],
	"reservations": [{"owner": "web", "address": "192.0.2.11", "unplaced": true, "line": 37},
		{"owner": "123", "address": "2001:db8::", "interface": 1, "slot": 2, "automatic": true, "line": 39},
		{"owner": "web", "address": "192.0.2.15", "unplaced": true, "replaced": true, "until": "2026-05-01T18:00:00Z",
			"line": 40},
		{"owner": "seen", "unplaced": true, "line": 41}],
	"addresses": [{"owner": "rtr", "address": "192.0.2.12", "slot": 1, "line": 43}]},
{"name": "flat", "space": "local", "subnets": [], "line": 44}]`, p.Networks)
	if p.Elastic != nil {
		t.Errorf("it has elastic addresses: %+v", p.Elastic)
	}
}

// plans compares networks with those that a JSON describes.
func plans(t *testing.T, text string, got []ipam.PlannedNetwork) {
	t.Helper()
	var want []ipam.PlannedNetwork
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, comparers...); diff != "" {
		t.Error(diff)
	}
}

var comparers = []cmp.Option{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	cmp.Comparer(func(a, b ipam.Range) bool { return a == b }),
}

// TestBadYAML checks the line and the text of the error for each kind of bad input. HEAD begins a network.
func TestBadYAML(t *testing.T) {
	const head = "version: 1\nnetworks:\n- name: net1\n"
	refused(t, `
		empty |  | 0: the document is empty
		only a comment | # nothing\n | 0: the document is empty
		no YAML | version: 1\nnetworks: [\n | 3: this is not valid YAML:
		tabs | version: 1\nnetworks:\n\t- name: a\n | 3: this is not valid YAML: found character that cannot start any token
		no mapping | - a\n- b\n | 1: the plan is a list here, and must have keys: version, networks
		a text | hello\n | 1: the plan is "hello" here
		no version | networks: []\n | 1: the document has no version; write version: 1
		newer | version: 2\n | 1: the document has version "2"; this Berth reads 1
		two documents | version: 1\n---\nversion: 1\n | 2: a second YAML document begins here
		bad second document | version: 1\n---\n[\n | 4: this is not valid YAML
		not UTF-8 | version: 1\n# caf\xe9\n | 2: the line is not UTF-8
		UTF-16 | \xff\xfev\x00 | 1: the file is UTF-16; save it as UTF-8
		unknown key | version: 1\nnetwork: []\n | 2: the plan has no key "network"; it has version, networks
		key twice | HEAD   name: net2\n | 4: a network has the key name twice
		key that is a list | version: 1\n[a]: b\n | 2: the plan has no key ""
		networks no list | version: 1\nnetworks: {a: b}\n | 2: networks is a mapping here, and must be a list
		alias | HEAD   tags: &t {a: b}\n- name: net2\n  tags: *t\n | 6: tags is an alias (*t) here
		merge | HEAD   <<: {space: lab}\n | 4: a network has a merge key (<<) here, which a plan cannot have; write out the keys
		no name | version: 1\nnetworks:\n- space: lab\n- \n | 3: the network has no name & 4: a network is nothing here
		name no text | version: 1\nnetworks:\n- name: [a]\n | 3: there is a list here, and a text is expected & 3: the network has no name
		sticky | HEAD   sticky: perhaps\n | 4: "perhaps" is neither on nor off (true or false, yes or no, 1 or 0)
		quarantine | HEAD   quarantine: 10\n | 4: invalid request: "10" is not a duration such as 90s, 10m or 24h
		quarantine negative | HEAD   quarantine: -1m\n | 4: invalid request: "-1m" is not a duration
		subnet unknown key | HEAD   subnets:\n  - cidr: 192.0.2.0/24\n    vlan: 3\n | 6: a subnet has no key "vlan"; it has cidr, name, gateway, gateway_note, dhcp, dhcp_parent, dhcp_id, note, static, pool, pools, exclusions
		subnet without cidr | HEAD   subnets:\n  - name: lan\n | 5: the subnet has no cidr
		host bits | HEAD   subnets:\n  - cidr: 192.0.2.1/24\n | 5: invalid subnet "192.0.2.1/24": it has host bits; the subnet that holds 192.0.2.1 is 192.0.2.0/24
		mapped | HEAD   subnets:\n  - cidr: ::ffff:192.0.2.0/120\n | 5: invalid subnet "::ffff:192.0.2.0/120": ::ffff:192.0.2.0 is an IPv4 address mapped into IPv6
		gateway | HEAD   subnets:\n  - cidr: 192.0.2.0/24\n    gateway: 192.0.2.01\n | 6: "192.0.2.01" has leading zeros
		gateway a mapping | HEAD   subnets:\n  - cidr: 192.0.2.0/24\n    gateway: {a: b}\n | 6: there is a mapping here, and a single value is expected
		reversed | HEAD   pools:\n  - 192.0.2.9-192.0.2.1\n | 5: invalid range "192.0.2.9-192.0.2.1": it is reversed; write 192.0.2.1-192.0.2.9
		mixed | HEAD   pools:\n  - {range: 192.0.2.9-2001:db8::1}\n | 5: invalid range "192.0.2.9-2001:db8::1": one end is IPv4 and the other IPv6
		pool without range | HEAD   pools:\n  - {name: a}\n | 5: a pool has no range
		pool with a note | HEAD   pools:\n  - {range: 192.0.2.9, note: a}\n | 5: a pool has no key "note"; it has range, name
		exclusion without range | HEAD   exclusions:\n  - {note: a}\n | 5: an exclusion has no range
		reservation | HEAD   reservations:\n  - {address: 192.0.2.1}\n  - web\n | 5: a reservation has no owner & 6: a reservation is "web" here
		until | HEAD   reservations:\n  - {owner: web, until: 2026-05-01, replaced: perhaps}\n | 5: "2026-05-01" is not a time such as 2026-05-01T18:00:00Z & 5: "perhaps" is neither on nor off (true or false, yes or no, 1 or 0)
		address without one | HEAD   addresses:\n  - {owner: rtr}\n | 5: an entry of addresses has no address
		address replaced | HEAD   addresses:\n  - {owner: rtr, address: 192.0.2.1, replaced: true}\n | 5: an address has no key "replaced"
		type | HEAD   type: automatic\n | 4: "automatic" is not a network type: write manual, dynamic or vip
		static | HEAD   static: 192.0.2.8/29\n  subnets:\n  - cidr: 192.0.2.0/24\n    static: [x, {range: 192.0.2.1}]\n | 4: static is "192.0.2.8/29" here, and must be a list & 7: invalid range "x" & 7: there is a mapping here, and a single value is expected
		owner rule | HEAD   owner_rules:\n  - web-*=pool:web\n  - {name: web}\n | 5: a rule for owners is "web-*=pool:web" here, and must have keys: pattern, owner, pool & 6: a rule for owners has no key "name"; it has pattern, owner, pool
		reservation of a range | HEAD   reservations:\n  - {owner: web, address: 192.0.2.0/24}\n | 5: "192.0.2.0/24" is not an IPv4 or IPv6 address
		slot | HEAD   addresses:\n  - {owner: rtr, address: 192.0.2.1, slot: one, interface: -1}\n | 5: "one" is not a whole number, 0 or more & 5: "-1" is not a whole number, 0 or more
		address automatic | HEAD   addresses:\n  - {owner: rtr, address: 192.0.2.1, automatic: true}\n | 5: an address has no key "automatic"
		link | HEAD   links:\n  - {hostname: alpha}\n | 5: a link has no key "hostname"; it has host, mode, link
		several | HEAD   sticky: a\n  space: [b]\n  colour: c\n | 4: "a" is neither & 5: there is a list & 6: a network has no key
	`, func(_, text string) error {
		_, err := ReadYAML(strings.NewReader(strings.Replace(text, "HEAD ", head, 1)))
		return err
	})
}

// refused reads each text of a table, with a line "WHAT | TEXT | PROBLEM & PROBLEM..." for each. A problem is
// "LINE: WORDS". A text has the escapes of Go.
func refused(t *testing.T, table string, read func(what, text string) error) {
	t.Helper()
	for line := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		text, err := strconv.Unquote(`"` + strings.ReplaceAll(cells[1], `"`, `\"`) + `"`)
		if err != nil || len(cells) != 3 {
			t.Fatalf("%s: %v", line, err)
		}
		t.Run(cells[0]+" "+cells[2], func(t *testing.T) {
			problems(t, read(cells[0], text), strings.Split(cells[2], " & "))
		})
	}
}

// problems compares a PlanError with the problems it must list.
func problems(t *testing.T, err error, want []string) {
	t.Helper()
	var e *ipam.PlanError
	if !errors.As(err, &e) || !errors.Is(err, ipam.ErrInvalid) {
		t.Fatalf("the error is %v", err)
	}
	var got []string
	for _, p := range e.Problems {
		got = append(got, fmt.Sprintf("%d: %s", p.Line, p.Text))
	}
	if len(got) != len(want) {
		t.Fatalf("%d problems, want %d: %q", len(got), len(want), got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("problem %d is %q, want %q", i, got[i], want[i])
		}
	}
}

// A document that is too large is refused before it is parsed.
func TestTooLarge(t *testing.T) {
	_, err := ReadYAML(&endless{})
	if err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("the error is %v", err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	copy(b, bytes.Repeat([]byte("#\n"), len(b)/2+1))
	return len(b), nil
}

// For a thousand bad lines the error has a hundred problems and the number of the rest.
func TestManyProblems(t *testing.T) {
	_, err := ReadYAML(strings.NewReader("version: 1\nnetworks:\n" + strings.Repeat("- colour: red\n", 1000)))
	var e *ipam.PlanError
	if !errors.As(err, &e) || len(e.Problems) != ipam.MaxProblems || e.More != 1900 {
		t.Errorf("%d problems and %d more", len(e.Problems), e.More)
	}
}
