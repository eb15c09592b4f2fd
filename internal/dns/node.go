package dns

import (
	"cmp"
	"net/netip"
	"slices"
	"sort"
	"strings"
)

// node is a name in the zone. It exists while somebody claims it or a name below it.
type node struct {
	children int
	claims   []claim // sorted by order
}

// order sorts claims by rank, and keeps those of one network and owner together.
func order(a, b claim) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), a.against(b), a.Address.Compare(b.Address))
}

// against orders claims by network and owner.
func (c claim) against(other claim) int {
	return cmp.Or(strings.Compare(c.area.Network, other.area.Network), strings.Compare(c.area.Space, other.area.Space),
		strings.Compare(c.who, other.who))
}

// parentOf returns the parent of a name; empty: the zone itself.
func parentOf(name string) string {
	_, parent, _ := strings.Cut(name, ".")
	return parent
}

// put adds a claim.
func (x *Index) put(name string, c claim) {
	n := x.ensure(name)
	at, there := slices.BinarySearchFunc(n.claims, c, order)
	if !there {
		x.names -= n.names()
		n.claims = slices.Insert(n.claims, at, c)
		x.names += n.names()
	}
}

func (x *Index) ensure(name string) *node {
	n := x.nodes[name]
	if n == nil {
		n = new(node)
		x.nodes[name] = n
		if name != "" {
			x.ensure(parentOf(name)).children++
		}
	}
	return n
}

// drop removes a claim.
func (x *Index) drop(name string, c claim) {
	n := x.nodes[name]
	if n == nil {
		return
	}
	at, there := slices.BinarySearchFunc(n.claims, c, order)
	if !there {
		return
	}
	x.names -= n.names()
	n.claims = slices.Delete(n.claims, at, at+1)
	x.names += n.names()
	for name != "" && len(n.claims) == 0 && n.children == 0 {
		delete(x.nodes, name)
		name = parentOf(name)
		n = x.nodes[name]
		n.children--
	}
}

// has returns the claims that have the name: those of the lowest rank, and of these the first owner's. It returns none
// if the rank requires a unique name and it is not unique.
func (n *node) has() []claim {
	if len(n.claims) == 0 {
		return nil
	}
	first := n.claims[0]
	end := sort.Search(len(n.claims), func(i int) bool {
		return n.claims[i].rank != first.rank || n.claims[i].against(first) != 0
	})
	if end < len(n.claims) && n.claims[end].rank == first.rank && first.rank > rankGroup {
		return nil
	}
	return n.claims[:end]
}

// names returns the number of names of a node: the name itself, and those with a mark.
func (n *node) names() (count int) {
	has := n.has()
	if len(has) > 0 {
		count++
	}
	for i := len(has); i < len(n.claims) && n.claims[i].rank <= rankAltered; i++ {
		if i == len(has) || n.claims[i].against(n.claims[i-1]) != 0 {
			count++
		}
	}
	return count
}

// addresses returns the addresses of claims of one family: the held ones, or all if none is held.
func addresses(claims []claim, is6 bool) (all []netip.Addr) {
	held := slices.ContainsFunc(claims, func(c claim) bool { return c.Held && c.Address.Is6() == is6 })
	for _, c := range claims {
		if c.Address.Is6() == is6 && c.Held == held {
			all = append(all, c.Address)
		}
	}
	return all
}

// named returns the claims that have a name in the zone, and whether the name exists.
func (x *Index) named(name string) (claims []claim, there bool) {
	n := x.nodes[name]
	if n != nil {
		claims = n.has()
	}
	if len(claims) == 0 {
		claims = x.markedAs(name)
	}
	return claims, len(claims) > 0 || n != nil && n.children > 0 || name == ""
}

// markedAs returns the claims of an owner that has its name with a mark, because another owner has it without.
func (x *Index) markedAs(name string) (claims []claim) {
	first, rest, _ := strings.Cut(name, ".")
	at := len(first) - markRoom
	if at <= 0 || first[at] != '-' {
		return nil
	}
	n := x.nodes[first[:at]+"."+rest]
	if n == nil {
		return nil
	}
	for _, c := range n.claims[len(n.has()):] {
		if c.rank <= rankAltered && c.mark() == first[at+1:] {
			claims = append(claims, c)
		}
	}
	return claims
}

// nameOf returns the long name of an address in the zone, with a mark if another owner has the name without.
func (x *Index) nameOf(e *entry) string {
	long := x.longName(e)
	n := x.nodes[long]
	if n == nil {
		return long
	}
	if has := n.has(); len(has) > 0 && (has[0].rank > rankAltered || has[0].against(claim{e, 0, e.Owner}) == 0) {
		return long
	}
	return e.marked(long)
}
