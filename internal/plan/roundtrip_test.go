package plan

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go4.org/netipx"
	"pgregory.net/rapid"
)

// drawnPlan draws a plan in the form of an export, with any texts in it.
func drawnPlan(t *rapid.T) ipam.Plan {
	var p ipam.Plan
	for _, name := range rapid.SliceOfNDistinct(drawnName, 0, 3, rapid.ID[string]).Draw(t, "networks") {
		p.Networks = append(p.Networks, drawnNetwork(t, name))
	}
	return p
}

var (
	drawnName = rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_.-]{0,8}`)
	drawnText = rapid.OneOf(rapid.StringMatching(`[^\r\x{feff}]{0,12}`),
		rapid.SampledFrom([]string{"yes", "null", "~", "1e3", "0x10", "'", "''=", "=1", " x ", "#", "a: b", "- a",
			"\u0085", "\u2028", "\x7f", "\x00", "\t"}))
	drawnWord = rapid.StringMatching(`[a-z0-9.-]{1,8}`)
	drawnAddr = rapid.Custom(func(t *rapid.T) netip.Addr {
		if rapid.Bool().Draw(t, "IPv6") {
			return netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.OneOf(rapid.Just(byte(0)), rapid.Byte()), 16,
				16).Filter(func(b []byte) bool {
				a := netip.AddrFrom16([16]byte(b))
				return !a.Is4In6()
			}).Draw(t, "address")))
		}
		return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address")))
	})
)

func drawnRange(t *rapid.T) ipam.Range {
	from := drawnAddr.Draw(t, "from")
	to := drawnAddr.Filter(func(a netip.Addr) bool { return a.Is4() == from.Is4() }).Draw(t, "to")
	if to.Less(from) {
		from, to = to, from
	}
	return ipam.Range{IPRange: netipx.IPRangeFrom(from, to)}
}

func drawnNetwork(t *rapid.T, name string) ipam.PlannedNetwork {
	n := ipam.PlannedNetwork{Name: name, Space: drawnName.Draw(t, "space"),
		MACPrefix: rapid.SampledFrom([]string{"", "aa:00:00"}).Draw(t, "MAC prefix"),
		Tags: rapid.MapOfN(drawnText.Filter(func(s string) bool { return s != "" }), drawnText, 0, 3).Draw(t,
			"tags")}
	if rapid.Bool().Draw(t, "policy") {
		sticky, quarantine := rapid.Bool().Draw(t, "sticky"),
			ipam.Duration(rapid.Int64Range(0, 1e6).Draw(t, "quarantine")*int64(time.Second))
		n.Sticky, n.Quarantine = &sticky, &quarantine
	}
	n.Type = rapid.SampledFrom([]string{"", "manual", "dynamic", "vip"}).Draw(t, "type")
	for range rapid.IntRange(0, 2).Draw(t, "rules") {
		n.OwnerRules = append(n.OwnerRules, drawnRule(t))
	}
	for range rapid.IntRange(0, 2).Draw(t, "links") {
		n.Links = append(n.Links,
			ipam.Link{Host: drawnWord.Draw(t, "host"), Mode: drawnWord.Draw(t, "mode"),
				Link: drawnWord.Draw(t, "link")})
	}
	for range rapid.IntRange(0, 3).Draw(t, "subnets") {
		n.Subnets = append(n.Subnets, drawnSubnet(t))
	}
	for range rapid.IntRange(0, 3).Draw(t, "reservations") {
		r := ipam.PlannedReservation{Owner: drawnName.Draw(t, "owner"), Address: drawnAddr.Draw(t, "address"),
			Automatic: rapid.Bool().Draw(t, "automatic"), Force: rapid.Bool().Draw(t, "force"),
			Terms:     ipam.Terms{Replaced: rapid.Bool().Draw(t, "replaced")},
			Interface: rapid.IntRange(0, 2).Draw(t, "interface"),
			Slot:      rapid.IntRange(0, 2).Draw(t, "slot")}
		r.Note = drawnText.Draw(t, "note")
		r.Unplaced = r.Interface == 0 && r.Slot == 0
		n.Addresses = append(n.Addresses,
			ipam.PlannedAddress{Owner: r.Owner, Address: r.Address, Unplaced: r.Unplaced, Interface: r.Interface,
				Slot: r.Slot})
		if rapid.Bool().Draw(t, "ends") {
			r.Until = time.UnixMicro(rapid.Int64Range(1, 1<<50).Draw(t, "until")).UTC()
		}
		if rapid.Bool().Draw(t, "owner alone") {
			r.Address = netip.Addr{}
		}
		n.Reservations = append(n.Reservations, r)
	}
	return n
}

// drawnRule draws any rule that a network can have.
func drawnRule(t *rapid.T) ipam.OwnerRule {
	r := ipam.OwnerRule{Pattern: rapid.SampledFrom([]string{"*", "web-*", "*-db-*", "shop/web/1", "02:42:00:00:00:01",
		"-", "1"}).Draw(t, "pattern")}
	what := rapid.IntRange(1, 3).Draw(t, "meaning")
	if what&1 != 0 {
		r.Pool = drawnName.Draw(t, "pool")
	}
	if what&2 != 0 {
		r.Owner = drawnName.Draw(t, "owner")
	}
	if _, err := ipam.ParseOwnerRule(r.String()); err != nil {
		t.Skip("no network has such a rule")
	}
	return r
}

func drawnSubnet(t *rapid.T) ipam.PlannedSubnet {
	a := drawnAddr.Draw(t, "subnet")
	sub := ipam.PlannedSubnet{CIDR: netip.PrefixFrom(a, rapid.IntRange(0, a.BitLen()).Draw(t, "bits")).Masked(),
		DHCP: rapid.Bool().Draw(t, "dhcp"),
		Name: rapid.OneOf(rapid.Just(""), drawnName).Draw(t, "name")}
	if rapid.Bool().Draw(t, "gateway") {
		sub.Gateway = drawnAddr.Draw(t, "gateway")
		sub.GatewayNote = drawnText.Draw(t, "gateway note")
		sub.Note = drawnText.Draw(t, "note")
	}
	if rapid.Bool().Draw(t, "whole") {
		sub.Pools = []ipam.PlannedPool{{Range: wholeOf(sub.CIDR)}}
	}
	for range rapid.IntRange(0, 2).Draw(t, "ranges") {
		sub.Pools = append(sub.Pools,
			ipam.PlannedPool{Range: drawnRange(t), Name: rapid.OneOf(rapid.Just(""), drawnName).Draw(t, "name")})
		sub.Static = append(sub.Static, ipam.PlannedBand{Range: drawnRange(t)})
		sub.Exclusions = append(sub.Exclusions,
			ipam.PlannedExclusion{Range: drawnRange(t), Note: drawnText.Draw(t, "note")})
	}
	return sub
}

// same compares plans without their line numbers, and without defaults that are not written.
var same = append(comparers, cmpopts.EquateEmpty(), gocmp.FilterPath(func(p gocmp.Path) bool {
	return p.Last().String() == ".Line" || p.Last().String() == ".Cleared"
}, gocmp.Ignore()))

func written(t *rapid.T, p ipam.Plan, w Writer) {
	for i := range p.Networks {
		if err := w.Write(&p.Networks[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// A written plan is read back as the same plan, whatever its texts, and is written again as the same bytes.
func TestYAMLRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawnPlan(t)
		var first, second bytes.Buffer
		written(t, p, NewYAML(&first))
		back, err := ReadYAML(bytes.NewReader(first.Bytes()))
		if err != nil {
			t.Fatalf("%v\n%s", err, first.Bytes())
		}
		if diff := gocmp.Diff(p, back, same...); diff != "" {
			t.Fatalf("%s\n%s", diff, first.Bytes())
		}
		written(t, back, NewYAML(&second))
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("%s\n%s", first.Bytes(), second.Bytes())
		}
	})
}

// The tables of all nouns together are the plan, except for the subnet of each pool and exclusion.
func TestCSVRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawnPlan(t)
		var back ipam.Plan
		for _, noun := range Nouns {
			var first, second bytes.Buffer
			w, err := NewCSV(&first, noun)
			if err != nil {
				t.Fatal(err)
			}
			written(t, p, w)
			part, notes, err := ReadCSV(bytes.NewReader(first.Bytes()), Table{Noun: noun})
			if err != nil || len(notes.Ignored) > 0 {
				t.Fatalf("%v, %+v\n%s", err, notes, first.Bytes())
			}
			noFormulas(t, first.String())
			if back = joined(back, part); noun == "networks" {
				w, _ := NewCSV(&second, noun)
				if written(t, part, w); !bytes.Equal(first.Bytes(), second.Bytes()) {
					t.Fatalf("%s\n%s", first.Bytes(), second.Bytes())
				}
			}
		}
		for i := range p.Networks {
			n := &p.Networks[i]
			for j := range n.Subnets {
				n.Pools = append(n.Pools, n.Subnets[j].Pools...)
				n.Exclusions = append(n.Exclusions, n.Subnets[j].Exclusions...)
				n.Subnets[j].Pools, n.Subnets[j].Exclusions = nil, nil
			}
		}
		if diff := gocmp.Diff(p, back, same...); diff != "" {
			t.Fatal(diff)
		}
	})
}

// noFormulas reads a table as a spreadsheet does.
func noFormulas(t *rapid.T, table string) {
	rows, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune(formula, rune(cell[0])) {
				t.Fatalf("a formula goes out: %q", cell)
			}
		}
	}
}

// joined adds the table of one noun to what the others gave.
func joined(all, part ipam.Plan) ipam.Plan {
	for _, n := range part.Networks {
		i := slices.IndexFunc(all.Networks, func(other ipam.PlannedNetwork) bool { return other.Name == n.Name })
		if i < 0 {
			all.Networks = append(all.Networks, n)
			continue
		}
		to := &all.Networks[i]
		to.Space = cmp.Or(to.Space, n.Space)
		to.Subnets = append(to.Subnets, n.Subnets...)
		to.Pools = append(to.Pools, n.Pools...)
		to.Exclusions = append(to.Exclusions, n.Exclusions...)
		to.Reservations = append(to.Reservations, n.Reservations...)
		to.Addresses = append(to.Addresses, n.Addresses...)
	}
	return all
}

// FuzzYAML: no input makes the reader panic. It accepts every document that it has accepted and written again.
func FuzzYAML(f *testing.F) {
	f.Add([]byte(everything))
	f.Add([]byte("version: 1\nnetworks: [{name: a, subnets: [{cidr: ::/0, pool: true}]}]\n"))
	f.Add([]byte("version: 1\nnetworks: [{name: a, reservations: [{owner: b, note: '" +
		strings.Repeat("é", 200) + "'}]}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ReadYAML(bytes.NewReader(text))
		if err != nil {
			return
		}
		var b bytes.Buffer
		w := NewYAML(&b)
		for i := range p.Networks {
			if err := w.Write(&p.Networks[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadYAML(&b); err != nil {
			t.Fatalf("%v\n%s", err, b.Bytes())
		}
	})
}

// FuzzCSV: no input makes the reader of any table panic.
func FuzzCSV(f *testing.F) {
	f.Add(uint8(1), []byte("prefix,network,is_pool\n192.0.2.0/24,net1,true\n"))
	f.Add(uint8(2), []byte("start_address;end_address\n10.0.0.1/24;10.0.0.9/24\n"))
	f.Add(uint8(5), []byte("\ufeffIP Address\tOwner\tInterface\n10.0.0.1\tweb\teth0\n"))
	f.Add(uint8(4), []byte("address,owner,description\n10.0.0.1,web,"+strings.Repeat("é", 201)+"\n"))
	f.Fuzz(func(t *testing.T, noun uint8, text []byte) {
		p, _, err := ReadCSV(bytes.NewReader(text), Table{Noun: Nouns[int(noun)%len(Nouns)]})
		if err == nil && len(p.Networks) > bytes.Count(text, []byte("\n"))+1 {
			t.Errorf("%d networks out of %q", len(p.Networks), text)
		}
	})
}
