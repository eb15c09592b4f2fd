package view_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// found returns a line for each result: kind, what, network, name, state and why.
func found(t *testing.T, r *ipamtest.Stage, f ipam.FindFilter) (lines []string, marks []ipam.FoundMark) {
	t.Helper()
	for one, err := range r.S.Find(ctx, f) {
		if err != nil {
			t.Fatalf("%+v: %v", f, err)
		}
		var why []string
		for _, m := range one.Why {
			why = append(why, m.Field+":"+m.Text)
		}
		lines = append(lines, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s %s (%s)", one.Kind, one.What,
			one.Network, one.Name, one.State, strings.Join(why, ", "))), " "))
		marks = append(marks, one.Mark())
	}
	return lines, marks
}

func furnished(t *testing.T) *ipamtest.Stage {
	r := ipamtest.New(t)
	r.Run(`
		network front tag.env=Prod subnet=192.0.2.0/24,gw=192.0.2.1,name=dmz
		pool front 192.0.2.10+20 name=web
		exclude front 192.0.2.100+10 note=printers
		network back subnet=198.51.100.0/24,pool space=lab
		attach p net=front
		ask p shop-web-1 mac=1
		ask p shop_db_1 mac=2
		ask p other mac=3
		back p 192.0.2.12
		reserve front shop/web/2 192.0.2.50
		take back printer 0:ip0=198.51.100.9`)
	note := "rack 3, the big one"
	r.Edit(&ipam.AddReservation{Network: "front", Owner: "shop/web/2",
		Wishes:      []ipam.Wish{{Address: netip.MustParseAddr("192.0.2.50")}},
		WantedTerms: ipam.WantedTerms{Note: &note}},
		&ipam.AddElasticRange{Range: ipamtest.MustRange("203.0.113.0+4")}, &ipam.CreateAccount{Account: "shop"},
		&ipam.AllocateElastic{Account: "shop"})
	return r
}

// TestFind: a search finds a word in every meaning it can have, and nothing else. A row has the word, the kinds or
// another limit, and what is found.
func TestFind(t *testing.T) {
	r := furnished(t)
	for c := range ipamtest.Rows(3, `
		shop-web-1 | | lease 192.0.2.10 front shop-web-1 held (name:shop-web-1)
		shop_web_1 | | lease 192.0.2.10 front shop-web-1 held (name:shop-web-1)
		shop/web/1 | | lease 192.0.2.10 front shop-web-1 held (name:shop-web-1)
		SHOP-WEB | | lease 192.0.2.10 front shop-web-1 held (name:shop-web-1); reservation 192.0.2.50 front shop/web/2 (owner:shop/web/2)
		shop/db/1 | | lease 192.0.2.11 front shop_db_1 held (name:shop_db_1)
		shop-db-1 | exact | lease 192.0.2.11 front shop_db_1 held (name:shop_db_1)
		shop-web | exact
		other | | lease 192.0.2.12 front other remembered (name:other)
		big ONE | | reservation 192.0.2.50 front shop/web/2 (note:rack 3, the big one)
		big one | exact
		env=prod | | network front front (tag:env=Prod)
		dmz | | subnet 192.0.2.0/24 front (name:dmz)
		printer | | exclusion 192.0.2.100-192.0.2.109 front (note:printers); address 198.51.100.9 back printer held (owner:printer)
		printer | in lab | address 198.51.100.9 back printer held (owner:printer)
		printer | exclusion lease | exclusion 192.0.2.100-192.0.2.109 front (note:printers)
		lab | | space lab (name:lab)
		shop | account elastic | account shop (name:shop)
		192.0.2.10 | exact | lease 192.0.2.10 front shop-web-1 held (address:192.0.2.10)
		192.0.2.15 | | subnet 192.0.2.0/24 front (contains:192.0.2.0/24); pool 192.0.2.10-192.0.2.29 front web (contains:192.0.2.10-192.0.2.29); free 192.0.2.15 front (address:192.0.2.15)
		192.0.2.255 | free | free 192.0.2.255 front the broadcast address of 192.0.2.0/24 (address:192.0.2.255)
		192.0.2.109 | free | free 192.0.2.109 front excluded (address:192.0.2.109)
		192.0.2.99 | free | free 192.0.2.99 front outside (address:192.0.2.99)
		203.0.113.0 | | elastic 203.0.113.0 allocated (address:203.0.113.0); range 203.0.113.0/30 (contains:203.0.113.0/30)
		198.51.100.0/24 | exact | subnet 198.51.100.0/24 back (cidr:198.51.100.0/24); pool 198.51.100.0/24 back (range:198.51.100.0/24)
		198.51. | subnet | subnet 198.51.100.0/24 back (cidr:198.51.100.0/24)
		198.51.100.128/25 | subnet | subnet 198.51.100.0/24 back (overlaps:198.51.100.0/24)
		192.0.2.100-192.0.2.109 | | exclusion 192.0.2.100-192.0.2.109 front (range:192.0.2.100-192.0.2.109)
		02:00:00:00:00:02 | | lease 192.0.2.11 front shop_db_1 held (mac:02:00:00:00:00:02)
		nobody
		10.99.0.1
	`) {
		f := ipam.FindFilter{Word: c[0]}
		switch c[1] {
		case "exact":
			f.Exact = true
		case "in lab":
			f.Space = "lab"
		default:
			f.Kinds = strings.Fields(c[1])
		}
		if got, _ := found(t, r, f); strings.Join(got, "; ") != c[2] {
			t.Errorf("%+v:\n%q\nand not\n%s", f, got, c[2])
		}
	}
	for _, n := range []string{"front", "back"} {
		info, err := r.S.Network(ctx, n)
		must(t, err)
		for _, word := range []string{info.ID.String(), info.ID.Short()} {
			got, _ := found(t, r, ipam.FindFilter{Word: word, Exact: true})
			if want := "network " + n + " " + n + " (id:" + info.ID.String() + ")"; !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %q and not %q", word, got, want)
			}
		}
	}
	for _, word := range []string{"", " ", strings.Repeat("x", 257)} {
		for _, err := range r.S.Find(ctx, ipam.FindFilter{Word: word}) {
			if !errors.Is(err, ipam.ErrInvalid) {
				t.Errorf("%q is not refused: %v", word, err)
			}
		}
	}
}

// TestFindInPages: an answer can continue after each of its marks, and is whole then. Answers come in the order of
// the marks. A caller may stop after any of them.
func TestFindInPages(t *testing.T) {
	r := furnished(t)
	for _, word := range []string{"192.0.2.", "o", "192.0.2.10", "192.0.2.15", "198.51.100.9"} {
		whole, marks := found(t, r, ipam.FindFilter{Word: word})
		if len(whole) < 2 {
			t.Fatalf("%q is found at %q alone", word, whole)
		}
		if !slices.IsSortedFunc(marks, ipam.FoundMark.Compare) {
			t.Errorf("%q: out of order: %q", word, whole)
		}
		for i, mark := range marks {
			if rest, _ := found(t, r, ipam.FindFilter{Word: word, After: mark}); !slices.Equal(rest, whole[i+1:]) {
				t.Errorf("%q behind %+v:\n%q\nand not\n%q", word, mark, rest, whole[i+1:])
			}
			for one, err := range r.S.Find(ctx, ipam.FindFilter{Word: word}) { // panics if it does not stop
				if err != nil || one.Mark() == mark {
					break
				}
			}
		}
	}
}
