package edit_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/plan"
)

// ownersHarness is a state with everything that a plan says about owners: types, rules, bands, and reservations of
// every kind. auto has an automatic address in a band that was made later, and job has an end.
const ownersHarness = `
	network net1 subnet=192.0.2.0/24,pool rule=web-*=pool:web+db-*=owner:shop/db/*,pool:db
	subnet net1 2001:db8::/64 pool
	reserve net1 auto
	reserve net1 web 192.0.2.20
	reserve net1 web 192.0.2.21 replace
	reserve net1 web 192.0.2.22 replace
	reserve net1 job 192.0.2.30 for=1h30m
	reserve net1 both 192.0.2.31,2001:db8::31 nic=1
	reserve net1 both 192.0.2.32,2001:db8::31 nic=1 replace
	network.set net1 static=192.0.2.1,192.0.2.8/29,2001:db8::10-2001:db8::1f
	reserve net1 db 192.0.2.9
	network vips type=vip subnet=203.0.113.0/28,pool static=203.0.113.4/31
	reserve vips front 203.0.113.5
	reserve vips back 203.0.113.6
	network seen type=dynamic subnet=198.51.100.0/24
	reserve seen vm1
	reserve seen vm2 for=2h
	reserve seen vm3 198.51.100.7 automatic
	owned net1 -> auto=192.0.2.1:a db=192.0.2.9 web=192.0.2.20! web=192.0.2.21! web=192.0.2.22 job=192.0.2.30~ both=192.0.2.31! both=192.0.2.32 both=2001:db8::31
`

// BO-8, BO-10, BO-11, BO-13: an export and import keeps what a plan says about owners, byte for byte and in
// meaning.
func TestExportImportOwners(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(ownersHarness)
	document := exported(r)
	for _, part := range []string{
		"    - {pattern: \"web-*\", pool: web}\n    - {pattern: \"db-*\", owner: \"shop/db/*\", pool: db}\n",
		"      static:\n        - 192.0.2.1\n        - 192.0.2.8/29\n", "        - 2001:db8::10/124\n",
		"    - {owner: auto, address: 192.0.2.1}\n", "    - {owner: web, address: 192.0.2.20, replaced: " +
			"true}\n", "    - {owner: web, address: 192.0.2.22}\n",
		"    - {owner: job, address: 192.0.2.30, until: \"2026-01-02T04:34:05Z\"}\n",
		"    - {owner: both, address: 192.0.2.31, interface: 1, slot: 0, replaced: true}\n", "    - {owner: both, " +
			"address: 192.0.2.32, interface: 1, slot: 0}\n",
		"  type: vip\n", "  type: dynamic\n", "    - {owner: vm1}\n    - {owner: vm2, until: " +
			"\"2026-01-02T05:04:05Z\"}\n    - {owner: vm3, address: 198.51.100.7, automatic: true}\n",
	} {
		if !strings.Contains(document, part) {
			t.Errorf("the export does not have\n%s\n%s", part, document)
		}
	}
	unchanged(r, "importing the same again", func() {
		if report := imports(r, document); report.Added != (ipam.Counts{}) || report.Unchanged.Reservations != 14 {
			t.Errorf("imported again: %+v", report)
		}
	})
	empty := ipamtest.New(t)
	if report := imports(empty, document); report.Added.Reservations != 14 {
		t.Errorf("imported: %+v", report)
	}
	if again := exported(empty); again != document {
		t.Errorf("the export of what was imported differs:\n%s", cmp.Diff(document, again))
	}
	empty.Run(`
		owned net1 -> auto=192.0.2.1 db=192.0.2.9 web=192.0.2.20! web=192.0.2.21! web=192.0.2.22 job=192.0.2.30~ both=192.0.2.31! both=192.0.2.32 both=2001:db8::31
		attach P net=net1 cidr=192.0.2.0/24
		ask P web mac=1 -> 192.0.2.22
		end web replaced -> 192.0.2.20 192.0.2.21
		ask P other mac=2 -> 192.0.2.2
		wait 90m
		reserve net1 x 192.0.2.30
		reserve seen vm2 198.51.100.8 automatic
		reserve vips x ! invalid; =WrongType
	`)
}

// The tables of all nouns, in the order of docs/import-netbox.md, give the same plan.
func TestExportImportOwnersByTables(t *testing.T) {
	r, empty := ipamtest.New(t), ipamtest.New(t)
	r.Run(ownersHarness)
	for _, noun := range plan.Nouns {
		var b strings.Builder
		w, err := plan.NewCSV(&b, noun)
		fine(t, err)
		for n, err := range r.S.Export(ctx, "") {
			if err == nil {
				err = w.Write(&n)
			}
			fine(t, err)
		}
		fine(t, w.Close())
		p, _, err := plan.ReadCSV(strings.NewReader(b.String()), plan.Table{Noun: noun})
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		importsPlan(empty, p)
	}
	if diff := cmp.Diff(exported(r), exported(empty)); diff != "" {
		t.Error(diff)
	}
}

// Each error in types, rules, bands and reservations is reported, and nothing is written.
func TestImportProblemsOfOwners(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(ownersHarness)
	problems(t, r, `
		=== rule twice
		- name: a
		  owner_rules: [{pattern: web, pool: x}, {pattern: web, owner: y}]
		! 3: the network a has two rules for the owners web, and can have only one
		=== rule without a meaning
		- name: a
		  owner_rules: [{pattern: web}]
		! 3: network a has no rule for web
		# the first of a network's
		=== rule that matches nothing
		- name: a
		  owner_rules: [{pattern: 'a b', pool: x}, {pattern: 'a*', owner: '*/*'}, {pattern: c, pool: all}]
		! 3: the pattern "a b" matches no name
		=== owner that is none
		- name: a
		  owner_rules: [{pattern: 'a*', owner: '*/*'}]
		! 3: the owner "*/*" has 2 stars
		=== pool that is none
		- name: a
		  owner_rules: [{pattern: c, pool: all}]
		! 3: "all" cannot name a pool
		=== other rules
		- name: net1
		  owner_rules: [{pattern: web-*, pool: web}, {pattern: db-*, pool: db}, {pattern: new, owner: x}]
		! 3: the owner_rules of network net1 is web-*=pool:web;db-*=pool:db,owner:shop/db/* and not web-*=pool:web;db-*=pool:db;new=owner:x; change it with
		=== other type
		- {name: net1, type: vip}
		- {name: vips, type: dynamic}
		- {name: seen, type: dynamic}
		! 3: network net1 has the type manual, not vip, and its type cannot change
		! 4: network vips has the type vip, not dynamic
		=== nothing said of type and bands
		- name: vips
		  subnets: [{cidr: 203.0.113.0/28}]
		- {name: net1, type: manual}
		=== same bands
		- name: net1
		  static: [192.0.2.8/29]
		  subnets:
		  - {cidr: 192.0.2.0/24, static: [192.0.2.1]}
		=== other bands
		- name: net1
		  static: [192.0.2.64/29]
		  subnets:
		  - {cidr: 192.0.2.0/24, static: [192.0.2.8+4]}
		! 4: the static band of network net1 is none and not 192.0.2.64/29
		! 6: the static band of network net1 is none and not 192.0.2.8/30
		=== band outside
		- name: a
		  subnets:
		  - cidr: 10.0.0.0/24
		    static:
		    - 10.0.0.250+10
		! 7: the static band 10.0.0.250-10.0.1.3: the range 10.0.0.250-10.0.1.3 goes past the end of the subnet 10.0.0.0/24 (10.0.0.255)
		=== band nowhere
		- name: a
		  static: [10.0.1.0]
		  subnets:
		  - cidr: 10.0.0.0/24
		! 4: the static band 10.0.1.0: no subnet of network a holds 10.0.1.0
		=== bands overlap
		- name: a
		  static: [10.0.0.9]
		  subnets:
		  - cidr: 10.0.0.0/24
		    static:
		    - 10.0.0.8/29
		! 4: the static bands 10.0.0.8/29 and 10.0.0.9 of network a overlap
		=== band and exclusion
		- name: a
		  subnets:
		  - cidr: 10.0.0.0/24
		    static: [10.0.0.8/29]
		    exclusions:
		    - 10.0.0.1
		    - 10.0.0.15+2
		! 9: the range 10.0.0.15-10.0.0.16 overlaps the static band 10.0.0.8/29 of the subnet 10.0.0.0/24
		=== band there and exclusion
		- name: net1
		  exclusions: [192.0.2.0/28]
		! 4: the range 192.0.2.0/28 overlaps the static band 192.0.2.1
		=== automatic in a band
		- name: a
		  subnets:
		  - cidr: 10.0.0.0/24
		    static: [10.0.0.8/29]
		  reservations:
		  - {owner: x, address: 10.0.0.9, automatic: true}
		  - {owner: y, address: 10.0.0.16, automatic: true}
		  - {owner: z, address: 10.0.0.10}
		! 8: 10.0.0.9 cannot be an automatic address of x: it lies in the static band 10.0.0.8/29 of network a
		=== automatic in a band there
		- name: net1
		  reservations: [{owner: x, address: 192.0.2.10, automatic: true}]
		! 4: 192.0.2.10 cannot be
		=== automatic of a vip
		- name: a
		  type: vip
		  subnets:
		  - cidr: 10.0.0.0/24
		  reservations: [{owner: x, address: 10.0.0.9, automatic: true}, {owner: y, address: 10.0.0.10}]
		! 7: network a has the type vip, which allows only static reservations
		=== automatic of a vip there
		- name: vips
		  reservations: [{owner: x, address: 203.0.113.9, automatic: true}]
		! 4: network vips has the type vip
		=== static of a dynamic one
		- name: a
		  type: dynamic
		  subnets:
		  - cidr: 10.0.0.0/24
		  reservations: [{owner: x, address: 10.0.0.9}, {owner: y, address: 10.0.0.10, automatic: true}]
		! 7: network a has the type dynamic
		=== static of a dynamic one there
		- name: seen
		  reservations: [{owner: x, address: 198.51.100.9}]
		! 4: network seen has the type dynamic
		=== without an address
		- name: net1
		  reservations: [{owner: x}]
		- name: vips
		  reservations: [{owner: x}]
		! 4: the reservation of x has no address; only networks of the type dynamic allow that
		! 6: the reservation of x has no address; only networks of the type dynamic allow that
		# y is known by its address
		=== owner twice
		- name: seen
		  reservations:
		  - {owner: x}
		  - {owner: x}
		  - {owner: y}
		  - {owner: y, address: 198.51.100.9, automatic: true}
		! 6: x is planned twice in network seen
		=== no owner
		- name: seen
		  reservations: [{owner: a//b}]
		! 4: "a//b" is not a valid owner
		=== known by an address
		- name: seen
		  reservations: [{owner: vm3}, {owner: vm1, address: 198.51.100.9, automatic: true}]
		=== another end
		- name: net1
		  reservations: [{owner: job, address: 192.0.2.30, until: 2026-01-03T00:00:00Z}, {owner: web, address: 192.0.2.22, until: 2026-01-03T00:00:00Z}]
		- name: seen
		  reservations:
		  - {owner: vm2, until: 2026-01-03T00:00:00Z}
		! 4: the until of the reservation job of network net1 is 2026-01-02T04:34:05Z and not 2026-01-03T00:00:00Z
		! 4: the until of the reservation web of network net1 is none and not 2026-01-03T00:00:00Z
		! 7: the until of the reservation vm2 of network seen is 2026-01-02T05:04:05Z and not 2026-01-03T00:00:00Z
		=== replaced, and is not
		- name: net1
		  reservations: [{owner: web, address: 192.0.2.22, replaced: true}, {owner: web, address: 192.0.2.20}]
		! 4: web has 192.0.2.22 reserved in network net1 already (0:ip0)
		=== replaced in any slot
		- name: a
		  subnets:
		  - cidr: 10.0.0.0/24
		  reservations:
		  - {owner: x, address: 10.0.0.9, slot: 0}
		  - {owner: x, address: 10.0.0.10, slot: 0, replaced: true}
		  - {owner: x, address: 10.0.0.11, slot: 0}
		! 9: x would have 10.0.0.9 and 10.0.0.11, both as 0:ip0
	`)
}

// An import of an old export adds only what still counts. It leaves out expired owners, and the remains of an
// expired owner block nobody (BO-11).
func TestImportAfterTheEnd(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24\nreserve net1 job 192.0.2.30 for=1h\nreserve net1 web " +
		"192.0.2.31\nnetwork seen type=dynamic\nreserve seen vm for=1h")
	document := exported(r)
	r.Clock.Time = r.Clock.Time.Add(time.Hour)
	if after := exported(r); strings.Contains(after, "job") || strings.Contains(after, "vm") {
		t.Errorf("what is over is exported:\n%s", after)
	}
	report := imports(r, strings.Replace(document, "{owner: web, address: 192.0.2.31}",
		"{owner: db, address: 192.0.2.30}", 1))
	if report.Added.Reservations != 1 || report.Unchanged.Reservations != 0 {
		t.Errorf("%+v", report)
	}
	r.Run("owned net1 -> db=192.0.2.30 web=192.0.2.31\nowned seen ->")
	if report := imports(r, "version: 1\nnetworks: [{name: seen, reservations: [{owner: vm, until: "+
		"2026-02-01T00:00:00Z}]}]\n"); report.Added.Reservations != 1 {
		t.Errorf("one whose first life is over: %+v", report)
	}
	if got := r.Reservations(ipam.AddressFilter{Network: "seen"}); len(got) != 1 ||
		got[0].Until.Format(time.DateOnly) != "2026-02-01" {
		t.Errorf("%+v", got)
	}
}

// An owner that was known without an address gets the one that an import brings.
func TestImportAddressOfKnown(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network seen type=dynamic subnet=198.51.100.0/24\nreserve seen vm")
	document := "version: 1\nnetworks: [{name: seen, reservations: [{owner: vm, address: 198.51.100.7, automatic: " +
		"true}]}]\n"
	imports(r, document)
	if got := r.Reservations(ipam.AddressFilter{Network: "seen"}); len(got) != 1 ||
		got[0].Address != netip.MustParseAddr("198.51.100.7") {
		t.Errorf("%+v", got)
	}
	if report := imports(r, document); report.Added.Sum() > 0 {
		t.Errorf("again: %+v", report)
	}
}
