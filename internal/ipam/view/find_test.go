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

// TestFind: a search finds a word in every meaning it can have, and nothing else.
func TestFind(t *testing.T) {
	r := furnished(t)
	lease1 := "lease 192.0.2.10 front shop-web-1 held (name:shop-web-1)"
	for _, c := range []struct {
		word string
		f    ipam.FindFilter
		want []string
	}{
		{word: "shop-web-1", want: []string{lease1}},
		{word: "shop_web_1", want: []string{lease1}},
		{word: "shop/web/1", want: []string{lease1}},
		{word: "SHOP-WEB", want: []string{lease1, "reservation 192.0.2.50 front shop/web/2 (owner:shop/web/2)"}},
		{word: "shop/db/1", want: []string{"lease 192.0.2.11 front shop_db_1 held (name:shop_db_1)"}},
		{word: "shop-db-1", f: ipam.FindFilter{Exact: true},
			want: []string{"lease 192.0.2.11 front shop_db_1 held (name:shop_db_1)"}},
		{word: "shop-web", f: ipam.FindFilter{Exact: true}},
		{word: "other", want: []string{"lease 192.0.2.12 front other remembered (name:other)"}},
		{word: "big ONE", want: []string{
			"reservation 192.0.2.50 front shop/web/2 (note:rack 3, the big one)"}},
		{word: "big one", f: ipam.FindFilter{Exact: true}},
		{word: "env=prod", want: []string{"network front front (tag:env=Prod)"}},
		{word: "dmz", want: []string{"subnet 192.0.2.0/24 front (name:dmz)"}},
		{word: "printer", want: []string{"exclusion 192.0.2.100-192.0.2.109 front (note:printers)",
			"address 198.51.100.9 back printer held (owner:printer)"}},
		{word: "printer", f: ipam.FindFilter{Space: "lab"},
			want: []string{"address 198.51.100.9 back printer held (owner:printer)"}},
		{word: "printer", f: ipam.FindFilter{Kinds: []string{"exclusion", "lease"}},
			want: []string{"exclusion 192.0.2.100-192.0.2.109 front (note:printers)"}},
		{word: "lab", want: []string{"space lab (name:lab)"}},
		{word: "shop", f: ipam.FindFilter{Kinds: []string{"account", "elastic"}},
			want: []string{"account shop (name:shop)"}},
		{word: "192.0.2.10", f: ipam.FindFilter{Exact: true},
			want: []string{"lease 192.0.2.10 front shop-web-1 held (address:192.0.2.10)"}},
		{word: "192.0.2.15", want: []string{"subnet 192.0.2.0/24 front (contains:192.0.2.0/24)",
			"pool 192.0.2.10-192.0.2.29 front web (contains:192.0.2.10-192.0.2.29)", "free 192.0.2.15 front (address:192.0.2.15)"}},
		{word: "192.0.2.255", f: ipam.FindFilter{Kinds: []string{"free"}},
			want: []string{"free 192.0.2.255 front the broadcast address of 192.0.2.0/24 (address:192.0.2.255)"}},
		{word: "192.0.2.109", f: ipam.FindFilter{Kinds: []string{"free"}},
			want: []string{"free 192.0.2.109 front excluded (address:192.0.2.109)"}},
		{word: "192.0.2.99", f: ipam.FindFilter{Kinds: []string{"free"}},
			want: []string{"free 192.0.2.99 front outside (address:192.0.2.99)"}},
		{word: "203.0.113.0", want: []string{"elastic 203.0.113.0 allocated (address:203.0.113.0)",
			"range 203.0.113.0/30 (contains:203.0.113.0/30)"}},
		{word: "198.51.100.0/24", f: ipam.FindFilter{Exact: true}, want: []string{
			"subnet 198.51.100.0/24 back (cidr:198.51.100.0/24)",
			"pool 198.51.100.0/24 back (range:198.51.100.0/24)"}},
		{word: "198.51.", f: ipam.FindFilter{Kinds: []string{"subnet"}}, want: []string{
			"subnet 198.51.100.0/24 back (cidr:198.51.100.0/24)"}},
		{word: "198.51.100.128/25", f: ipam.FindFilter{Kinds: []string{"subnet"}}, want: []string{
			"subnet 198.51.100.0/24 back (overlaps:198.51.100.0/24)"}},
		{word: "192.0.2.100-192.0.2.109", want: []string{"exclusion 192.0.2.100-192.0.2.109 front (range:192.0.2.100-192.0.2.109)"}},
		{word: ipamtest.MAC(2).String(), want: []string{
			"lease 192.0.2.11 front shop_db_1 held (mac:" + ipamtest.MAC(2).String() + ")"}},
		{word: "nobody"},
		{word: "10.99.0.1"},
	} {
		c.f.Word = c.word
		if got, _ := found(t, r, c.f); !slices.Equal(got, c.want) {
			t.Errorf("%+v:\n%s\nand not\n%s", c.f, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
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
