package nft

import (
	"bytes"
	"iter"
	"net/netip"

	"berth/internal/edge"

	"go4.org/netipx"
	"sigs.k8s.io/knftables"
)

// place identifies a set or map in a table.
type place struct {
	family knftables.Family
	name   string
}

// elements are the elements of a set by key, in the kernel's bytes. In a map they have values. In a set of intervals
// the value is the end: the first address after the interval, or "" after the last address of all.
type elements map[string]string

// contents are the elements without a timeout, of all sets.
type contents map[place]elements

// contentsOf returns the contents of the tables for a state.
func contentsOf(s edge.State) contents {
	c := contents{}
	for _, t := range schema(mark{}, nil) {
		for _, set := range t.sets {
			if !set.timed {
				c[place{t.family, set.name}] = elements{}
			}
		}
	}
	for _, r := range s.Ranges {
		c.span(familyOf(r.From), setRanges, r.From, r.To)
		if !r.Fenced() {
			continue
		}
		for _, family := range gatesOf(r.From) {
			c.span(family, setFenced, r.From, r.To)
		}
	}
	n4, n6 := countFamilies(s.Mappings)
	for family, n := range map[knftables.Family]int{knftables.IPv4Family: n4, knftables.IPv6Family: n6} {
		c[place{family, mapIn}], c[place{family, mapOut}] = make(elements, n), make(elements, n)
	}
	inside := map[netip.Prefix]bool{}
	for at, one := range each(s.Mappings) {
		c[at][one.key] = one.value
	}
	for _, m := range s.Mappings {
		inside[m.Subnet.Masked()] = true
	}
	c.inside(inside)
	return c
}

// element is an element of a set or map.
type element struct{ key, value string }

// each yields the elements of mappings with their places.
func each(mappings []edge.Mapping) iter.Seq2[place, element] {
	return func(yield func(place, element) bool) {
		for _, m := range mappings {
			family, elastic, guest := familyOf(m.Elastic), bytesOf(m.Elastic), bytesOf(m.Guest)
			if !yield(place{family, mapOut}, element{guest, elastic}) {
				return
			}
			if m.Inbound() && !yield(place{family, mapIn}, element{elastic, guest}) {
				return
			}
			if m.EgressOnly && !m.Staged && !yield(place{family, setShut}, element{elastic, ""}) {
				return
			}
		}
	}
}

func countFamilies(mappings []edge.Mapping) (n4, n6 int) {
	for _, m := range mappings {
		if m.Elastic.Is4() {
			n4++
		} else {
			n6++
		}
	}
	return n4, n6
}

// inside adds the guests' subnets. It merges those that lie in others.
func (c contents) inside(subnets map[netip.Prefix]bool) {
	var b netipx.IPSetBuilder
	for p := range subnets {
		b.AddPrefix(p)
	}
	set, err := b.IPSet()
	if err != nil {
		return // possible only for invalid prefixes, which Check refuses
	}
	for _, r := range set.Ranges() {
		c.span(familyOf(r.From()), setInside, r.From(), r.To())
	}
}

func (c contents) span(family knftables.Family, name string, from, to netip.Addr) {
	c[place{family, name}][bytesOf(from)] = endOf(to)
}

// endOf returns the end of an interval from its last address.
func endOf(last netip.Addr) string {
	next := last.Next()
	if !next.IsValid() {
		return ""
	}
	return bytesOf(next)
}

// span returns the first and last address of an interval.
func span(from, end string) (first, last netip.Addr) {
	if end != "" {
		return addrOf(from), addrOf(end).Prev()
	}
	all := bytes.Repeat([]byte{0xff}, len(from))
	return addrOf(from), addrOf(string(all))
}

// gatesOf returns the families whose tables can block announcements of an address.
func gatesOf(a netip.Addr) []knftables.Family {
	if a.Is4() {
		return []knftables.Family{knftables.IPv4Family, knftables.ARPFamily, knftables.NetDevFamily}
	}
	return []knftables.Family{knftables.IPv6Family}
}

func familyOf(a netip.Addr) knftables.Family {
	if a.Is4() {
		return knftables.IPv4Family
	}
	return knftables.IPv6Family
}

func bytesOf(a netip.Addr) string { return string(a.AsSlice()) }

func addrOf(b string) netip.Addr {
	a, _ := netip.AddrFromSlice([]byte(b))
	return a
}

// delta is the difference between two contents.
type delta map[place]struct{ remove, add elements }

func deltaOf(have, want contents) delta {
	d := delta{}
	for at, wanted := range want {
		remove, add := difference(have[at], wanted)
		if len(remove)+len(add) > 0 {
			d[at] = struct{ remove, add elements }{remove, add}
		}
	}
	return d
}

// difference returns what changes one set of elements into another.
func difference(have, want elements) (remove, add elements) {
	remove, add = elements{}, elements{}
	for key, value := range have {
		if wanted, found := want[key]; !found || wanted != value {
			remove[key] = value
		}
	}
	for key, value := range want {
		if had, found := have[key]; !found || had != value {
			add[key] = value
		}
	}
	return remove, add
}
