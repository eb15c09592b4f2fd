package dns

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"berth/internal/ipam"

	"github.com/miekg/dns"
	"pgregory.net/rapid"
)

func question(name string, kind uint16) *dns.Msg {
	q := new(dns.Msg)
	q.SetQuestion(name, kind)
	return q
}

// world holds what an index was told, by range and address.
type world struct {
	ranges map[byte]ipam.NamedRange
	has    map[byte]map[netip.Addr]ipam.NamedAddress
}

// anew returns the whole world as news.
func (w *world) anew() ipam.NameNews {
	news := ipam.NameNews{Whole: true}
	for n, r := range w.ranges {
		news.Ranges = append(news.Ranges, r)
		for _, one := range w.has[n] {
			news.Set = append(news.Set, one)
		}
	}
	return news
}

var (
	owners = rapid.OneOf(
		rapid.SampledFrom([]string{"web", "Web", "web_1", "web-1", "shop/web/1", "shop/web/2", "shop/web", "shop-web-1",
			"shop_web_1", "a-b-c-1", "a/b-c/1", "a-b/c/1", "web/1", "elastic", "ns", "02:42:0a:00:00:05",
			strings.Repeat("long", 15), strings.Repeat("x/", 120) + "y", "home/web", "my.box"}),
		rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_.-]{0,12}`))
	networks = rapid.SampledFrom([]string{"home", "Home", "home_2", "home-2", "web", "ns", "elastic", "shop",
		strings.Repeat("n", 63)})
)

// step changes the world and returns the change as news.
func (w *world) step(t *rapid.T) ipam.NameNews {
	n := byte(rapid.IntRange(1, 5).Draw(t, "range"))
	if _, there := w.ranges[n]; !there || rapid.IntRange(0, 9).Draw(t, "what") == 0 {
		switch {
		case there && rapid.Bool().Draw(t, "goes"):
			delete(w.ranges, n)
			delete(w.has, n)
			return ipam.NameNews{Gone: []ipam.ID{id(n)}}
		case !there:
			w.has[n] = map[netip.Addr]ipam.NamedAddress{}
		}
		cidr := fmt.Sprintf("10.%d.0.0/20", n)
		if n == 5 {
			cidr = "2001:db8:5::/64"
		}
		r := network(n, networks.Draw(t, "network"), cidr)
		r.Space = rapid.SampledFrom([]string{"local", "global"}).Draw(t, "space")
		if n == 4 {
			r.Network, r.Space, r.NetworkID, r.Elastic = "", "", ipam.ID{}, true
		}
		w.ranges[n] = r
		news := ipam.NameNews{Ranges: []ipam.NamedRange{r}}
		for _, one := range w.has[n] {
			news.Set = append(news.Set, one)
		}
		return news
	}
	last := byte(rapid.IntRange(1, 12).Draw(t, "address"))
	addr := netip.AddrFrom4([4]byte{10, n, last % 3, last})
	if n == 5 {
		addr = netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 5, 15: last})
	}
	if rapid.IntRange(0, 3).Draw(t, "goes") == 0 {
		delete(w.has[n], addr)
		return ipam.NameNews{Removed: []ipam.NamedAddress{{In: id(n), Address: addr}}}
	}
	one := ipam.NamedAddress{In: id(n), Address: addr, Owner: owners.Draw(t, "owner"), Held: rapid.Bool().Draw(t, "held")}
	if rapid.IntRange(0, 4).Draw(t, "named") == 0 && one.Held {
		one.Name = owners.Filter(func(s string) bool { return !strings.Contains(s, "/") }).Draw(t, "name")
	}
	w.has[n][addr] = one
	return ipam.NameNews{Set: []ipam.NamedAddress{one}}
}

// TestIndex: an index that gets its news in any order equals one that gets all of it at once. Each address has one
// long name, which leads to it unless another address of its owner is in use instead. Each listed name is answered
// as listed, and no other name is answered.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{map[byte]ipam.NamedRange{}, map[byte]map[netip.Addr]ipam.NamedAddress{}}
		x := New("lan.example", stopped)
		x.Apply(&ipam.NameNews{Whole: true})
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			news := w.step(t)
			x.Apply(&news)
		}
		all := w.anew()
		fresh := New("lan.example", stopped)
		fresh.Apply(&all)
		if got, want := x.Names(), fresh.Names(); !reflect.DeepEqual(got, want) {
			t.Fatalf("by steps:\n%v\nat once:\n%v", got, want)
		}
		if len(x.nodes) != len(fresh.nodes) || len(x.at) != len(fresh.at) ||
			!reflect.DeepEqual(x.within, fresh.within) || !reflect.DeepEqual(x.reverse, fresh.reverse) {
			t.Fatal("something is left of what is gone")
		}
		agrees(t, x, all.Set)
	})
}

// agrees checks that an index's answers agree with each other and with its news.
func agrees(t *rapid.T, x *Index, all []ipam.NamedAddress) {
	s := over(x)
	addrs := func(name string) (found []netip.Addr) {
		for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
			m := s.answer(question(dns.Fqdn(name), kind), loopback)
			if _, err := m.Pack(); err != nil {
				t.Fatalf("%s: %s", name, err)
			}
			for _, rr := range m.Answer {
				switch rr := rr.(type) {
				case *dns.A:
					found = append(found, netip.AddrFrom4([4]byte(rr.A.To4())))
				case *dns.AAAA:
					found = append(found, netip.AddrFrom16([16]byte(rr.AAAA)))
				}
			}
		}
		slices.SortFunc(found, netip.Addr.Compare)
		return found
	}
	ptr := func(addr netip.Addr) (names []string) {
		reverse, err := dns.ReverseAddr(addr.String())
		must(t, err)
		for _, rr := range s.answer(question(reverse, dns.TypePTR), loopback).Answer {
			names = append(names, strings.TrimSuffix(rr.(*dns.PTR).Ptr, "."))
		}
		return names
	}
	listed := map[string][]netip.Addr{}
	longs := map[string]string{} // the owner, by name
	for _, one := range x.Names() {
		listed[one.Name] = append(listed[one.Name], one.Address)
		if one.Kind == "long" {
			who := one.Network + " " + one.Owner
			if other, there := longs[one.Name]; there && other != who {
				t.Fatalf("%s is that of %s and of %s", one.Name, who, other)
			}
			longs[one.Name] = who
			if !slices.Contains(ptr(one.Address), one.Name) {
				t.Fatalf("PTR of %s, which %s has, is %v", one.Address, one.Name, ptr(one.Address))
			}
		}
	}
	if x.Count() != len(listed) {
		t.Fatalf("%d names are counted, and %d listed", x.Count(), len(listed))
	}
	for name, want := range listed {
		slices.SortFunc(want, netip.Addr.Compare)
		if got := addrs(name); !slices.Equal(got, want) {
			t.Fatalf("%s is at %v, and %v is listed", name, got, want)
		}
	}
	for _, one := range all {
		names := ptr(one.Address)
		if len(names) != 1 {
			t.Fatalf("%s has the names %v", one.Address, names)
		}
		inUse := slices.ContainsFunc(all, func(o ipam.NamedAddress) bool {
			return o.Owner == one.Owner && o.Held && !one.Held && o.Address.Is6() == one.Address.Is6()
		})
		if !inUse && !slices.Contains(addrs(names[0]), one.Address) {
			t.Fatalf("%s of %s is called %s, which is at %v", one.Address, one.Owner, names[0], addrs(names[0]))
		}
	}
}
