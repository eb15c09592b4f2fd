package edit_test

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/plan"
)

// exported returns the plan as a document, with its elastic addresses.
func exported(r *ipamtest.Stage) string {
	r.T.Helper()
	var b bytes.Buffer
	w := plan.NewYAML(&b)
	for n, err := range r.S.Export(ctx, "") {
		fine(r.T, err)
		fine(r.T, w.Write(&n))
	}
	fine(r.T, w.Close())
	return b.String() + exportedElastic(r)
}

func read(r *ipamtest.Stage, document string) ipam.Plan {
	r.T.Helper()
	p, err := plan.ReadYAML(strings.NewReader(document))
	if err != nil {
		r.T.Fatalf("%v\n%s", err, document)
	}
	return p
}

// imports imports a document, which must succeed.
func imports(r *ipamtest.Stage, document string) ipam.ImportReport {
	r.T.Helper()
	return importsPlan(r, read(r, document))
}

// importsPlan imports a plan, which must succeed.
func importsPlan(r *ipamtest.Stage, p ipam.Plan) ipam.ImportReport {
	r.T.Helper()
	report, err := r.S.Import(ctx, p, ipam.ImportOptions{})
	fine(r.T, err)
	sound(r)
	return report
}

// sound checks that the records are consistent, and that no import has left anything behind.
func sound(r *ipamtest.Stage) {
	r.T.Helper()
	if problems, err := r.S.Check(ctx); err != nil || len(problems) > 0 {
		r.T.Fatalf("berth state check says: %q, %v", problems, err)
	}
	for key, record := range ipamtest.Dump(r.T, r.Store) {
		if strings.HasPrefix(key, `"n`) && strings.Contains(record, `"stage":`) {
			r.T.Fatalf("a network is not there as a whole: %s", record)
		}
	}
}

// plannedHarness is a state with everything that a plan can have, and with things of Docker that it cannot have.
const plannedHarness = `
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

// TestExportImport: an import of an export into the same daemon changes nothing. An import into an empty one gives
// the same export again, byte for byte.
func TestExportImport(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(plannedHarness)
	document := exported(r)
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
	var report ipam.ImportReport
	unchanged(r, "importing the same again", func() { report = imports(r, document) })
	want := ipam.Counts{Networks: 4, Subnets: 5, Pools: 4, Exclusions: 2, Reservations: 5, Addresses: 4}
	if report.Added != (ipam.Counts{}) || report.Unchanged != want {
		t.Errorf("imported again: %+v", report)
	}

	empty := ipamtest.New(t)
	if report := imports(empty, document); report.Added != want || report.Unchanged != (ipam.Counts{}) {
		t.Errorf("imported: %+v", report)
	}
	if again := exported(empty); again != document {
		t.Errorf("the export of what was imported differs:\n%s", cmp.Diff(document, again))
	}
	empty.Reopened()

	var one []string
	for n, err := range r.S.Export(ctx, "lab1") {
		fine(t, err)
		one = append(one, n.Name)
	}
	if len(one) != 1 || one[0] != "lab1" {
		t.Errorf("the export of one network has %q", one)
	}
	for _, err := range r.S.Export(ctx, "nowhere") {
		if !errors.Is(err, ipam.ErrNotFound) {
			t.Errorf("the export of a network that is not there: %v", err)
		}
	}
}

// An imported network works like one made by hand: Docker gets addresses from it, and its events name the actor.
func TestImportedIsUsed(t *testing.T) { // GA-1, GA-8, GA-15, GA-24
	r := ipamtest.New(t)
	r.Run(plannedHarness)
	document := exported(r)
	r = ipamtest.New(t)
	who := ipam.WithActor(ctx, "uid 0")
	if _, err := r.S.Import(who, read(r, document), ipam.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	r.Run(`
		attach P net=net1 cidr=192.0.2.0/24
		ask P shop/web/1 mac=7 -> 192.0.2.10
		ask P db mac=8 -> 192.0.2.15
		take net1 nas 192.0.2.60 force ! inuse; held by rtr
		take net1 rtr 1:add,ip0=pool ! inuse; has interface 1 already
		subnet.rm net1 192.0.2.0/24 ! inuse
	`)
	events, err := r.S.Events(ctx, ipam.EventFilter{})
	fine(t, err)
	told := map[string]int{}
	for _, e := range events {
		if e.Actor == "uid 0" {
			told[e.Verb.String()]++
		}
	}
	want := map[string]int{"import.begin": 1, "import.end": 1, "space.create": 1, "network.create": 4,
		"subnet.create": 5, "subnet.gateway": 2,
		"pool.add": 4, "exclusion.add": 2, "reservation.add": 5, "lease.take": 4}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

// TestImportAdds: an import adds what a network lacks. A dry run shows that and changes nothing.
func TestImportAdds(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
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
	var dry ipam.ImportReport
	unchanged(r, "a dry run", func() {
		var err error
		dry, err = r.S.Import(ctx, read(r, document), ipam.ImportOptions{DryRun: true})
		fine(t, err)
	})
	added := ipam.Counts{Networks: 1, Subnets: 1, Pools: 3, Exclusions: 2, Reservations: 2, Addresses: 1}
	unchanged := ipam.Counts{Networks: 1, Subnets: 1, Pools: 1, Reservations: 1, Addresses: 1}
	want := ipam.ImportReport{DryRun: true, Added: added, Unchanged: unchanged, Networks: []ipam.ImportedNetwork{
		{Name: "net1", Added: ipam.Counts{Subnets: 1, Pools: 3, Exclusions: 2, Reservations: 2, Addresses: 1}},
		{Name: "net2", New: true, Added: ipam.Counts{Networks: 1}}}}
	if diff := cmp.Diff(want, dry); diff != "" {
		t.Error(diff)
	}
	if report := imports(r, document); report.Added != added || report.Unchanged != unchanged {
		t.Errorf("%+v", report)
	}
	r.Run(`
		pool net1 192.0.2.30+10 ! overlap
		exclude net1 192.0.2.35 ! overlap
		take net1 rtr 0:modify,ip3=192.0.2.52 ! invalid; without gaps
		reserve net1 x 198.51.100.7 force ! inuse; held by db
	`)
	if got := r.Taken(ipam.AddressFilter{Owner: "rtr"}); len(got) != 2 || got[1].Slot != 1 {
		t.Errorf("rtr has %+v", got)
	}
	if again := imports(r, document); again.Added != (ipam.Counts{}) {
		t.Errorf("again: %+v", again)
	}

	// A network of Docker's own is planned as soon as an import adds something to it.
	name := ""
	for _, n := range r.Everything().Networks {
		if !n.Planned {
			name = n.Name
		}
	}
	imports(r, "version: 1\nnetworks:\n- {name: "+name+", reservations: [{owner: own, address: 10.99.0.9}]}\n")
	if !r.Show(name).Planned {
		t.Error("the network is not planned")
	}
	r.Run("detach D")
	r.Show(name)
}

// A plan without network names finds the networks by address: tables of other programs have no names.
func TestImportByAddress(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 subnet=192.0.2.0/24
		network net2 subnet=198.51.100.0/24
		network lab1 space=lab subnet=192.0.2.0/24
	`)
	table := func(noun, text string) ipam.Plan {
		p, _, err := plan.ReadCSV(strings.NewReader(text), plan.Table{Noun: noun})
		fine(t, err)
		return p
	}
	for _, p := range []ipam.Plan{
		table("pools", "start_address,end_address,vrf\n198.51.100.128/24,198.51.100.130/24,\n"),
		table("exclusions", "range,note,space\n192.0.2.9,printer,lab\n"),
		table("addresses", "IP Address,DNS "+
			"Name,VRF\n192.0.2.20/24,nas.example.net,Global\n198.51.100.20/24,nas.example.net,Global\n192.0.2.20/24,nas,lab (65000:1)\n"),
		table("reservations", "address,owner\n192.0.2.21,web\n198.51.100.21,web\n"),
	} {
		importsPlan(r, p)
	}
	r.Run(`
		show net1 taken -> nas.example.net:0.0=192.0.2.20
		show net2 taken -> nas.example.net:0.0=198.51.100.20
		show lab1 taken -> nas:0.0=192.0.2.20
		owned  -> web=192.0.2.21 web=198.51.100.21
		show net2 pools -> -:198.51.100.128-198.51.100.130
		show lab1 exclusions -> printer:192.0.2.9-192.0.2.9
	`)
}

// An interface has a limited number of slots. Addresses without a slot get the free ones.
func TestImportSlots(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24")
	n := ipam.PlannedNetwork{Name: "net1",
		Addresses: []ipam.PlannedAddress{{Owner: "rtr", Address: netip.MustParseAddr("192.0.2.200"), Slot: 1}}}
	for i := range 64 {
		n.Addresses = append(n.Addresses,
			ipam.PlannedAddress{Owner: "rtr", Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), Unplaced: true,
				Line: i})
	}
	_, err := r.S.Import(ctx, ipam.Plan{Networks: []ipam.PlannedNetwork{n}}, ipam.ImportOptions{})
	if err == nil || !strings.Contains(err.Error(),
		"the interface of rtr: ip64 is not one of ip0 to ip63") {
		t.Fatalf("65 addresses of one interface: %v", err)
	}
	n.Addresses = n.Addresses[:64]
	importsPlan(r, ipam.Plan{Networks: []ipam.PlannedNetwork{n}})
	slots := map[int]string{}
	for _, a := range r.Taken(ipam.AddressFilter{Owner: "rtr"}) {
		slots[a.Slot] = a.Address.String()
	}
	if len(slots) != 64 || slots[0] != "192.0.2.1" || slots[1] != "192.0.2.200" || slots[2] != "192.0.2.2" ||
		slots[63] != "192.0.2.63" {
		t.Errorf("%v", slots)
	}
}
