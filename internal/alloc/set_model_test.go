package alloc

import (
	"maps"
	"math"
	"math/big"
	"net/netip"
	"slices"
	"testing"

	"go4.org/netipx"
	"pgregory.net/rapid"
)

// all yields the members in order, for tests.
func (s *Set) all(yield func(netip.Addr) bool) {
	var members []u128
	for _, l := range s.leaves {
		switch l.shape {
		case listLeaf:
			members = append(members, l.list...)
		case bitmapLeaf:
			for x, ok := l.bits.nextSet(0); ok; x, ok = l.bits.nextSet(x + 1) {
				members = append(members, firstOf(l.first).add(u128{0, uint64(x)}))
			}
		case fullLeaf:
			for x := firstOf(l.first); !lastOf(l.last).less(x); x = x.next() {
				members = append(members, x)
			}
		}
	}
	for _, x := range members {
		if !yield(s.base.add(x).addr(s.is4)) {
			return
		}
	}
}

// checkSet verifies the rules that leaves keep.
func checkSet(t interface {
	Helper()
	Fatalf(string, ...any)
}, s *Set) {
	t.Helper()
	single, full := uint64(0), u128{}
	for i := range s.leaves {
		l := &s.leaves[i]
		single += l.singles()
		full = full.add(l.blocks())
		first, last := l.first, l.last
		switch l.shape {
		case listLeaf:
			if len(l.list) == 0 || len(l.list) > s.crowd || !slices.IsSortedFunc(l.list, u128.compare) {
				t.Fatalf("leaf %d: list of %d entries", i, len(l.list))
			}
			if cap(l.list) > 8*len(l.list)+16 {
				t.Fatalf("leaf %d: list of %d entries has room for %d", i, len(l.list), cap(l.list))
			}
			first, last = blockOf(l.list[0]), blockOf(l.list[len(l.list)-1])
		case bitmapLeaf:
			if l.bits.n <= s.crowd/4 || l.bits.n == s.size && blockOf(s.max) != (u128{}) ||
				l.bits.n != l.bits.count(0, s.size-1) {
				t.Fatalf("leaf %d: bitmap of %d bits", i, l.bits.n)
			}
			for w, word := range l.bits.words {
				if l.bits.full[w>>6]>>(w&63)&1 != 0 != (word == ^uint64(0)) {
					t.Fatalf("leaf %d: the summary is wrong about word %d", i, w)
				}
			}
		}
		if first.less(l.first) || last.less(first) || blockOf(s.max).less(last) {
			t.Fatalf("leaf %d from block %v holds %v to %v", i, l.first, first, last)
		}
		if i+1 < len(s.leaves) {
			next := &s.leaves[i+1]
			if !last.less(next.first) || l.shape == fullLeaf && next.shape == fullLeaf && last.next() == next.first {
				t.Fatalf("leaves %d and %d overlap or should be one", i, i+1)
			}
		}
	}
	if single != s.single || full != s.full {
		t.Fatalf("counted %d and %v, not %d and %v", s.single, s.full, single, full)
	}
}

// slowSet is the obvious Set: a map, and a search that asks for one address after the other.
type slowSet map[netip.Addr]bool

func (m slowSet) nextFree(p netip.Prefix, r netipx.IPRange) (netip.Addr, bool) {
	for a := r.From(); a.IsValid() && !r.To().Less(a); a = a.Next() {
		if p.Contains(a) && !m[a] {
			return a, true
		}
	}
	return netip.Addr{}, false
}

func (m slowSet) nextTaken(r netipx.IPRange) (lowest netip.Addr, ok bool) {
	for a := range m {
		if r.Contains(a) && (!ok || a.Less(lowest)) {
			lowest, ok = a, true
		}
	}
	return lowest, ok
}

func (m slowSet) countIn(r netipx.IPRange) (n uint64) {
	for a := range m {
		if r.Contains(a) {
			n++
		}
	}
	return n
}

// world is a prefix, and the places in it where a test puts its addresses: crowded together, so that blocks fill and
// runs meet, and at the borders of blocks and of the prefix.
type world struct {
	prefix netip.Prefix
	places []netip.Addr
}

func worlds() []world {
	var all []world
	for _, w := range []struct {
		prefix string
		places []string
	}{
		{"10.0.0.0/8", []string{"10.0.0.0", "10.0.255.200", "10.1.0.0", "10.1.255.0", "10.2.254.0", "10.77.5.0",
			"10.255.255.0"}},
		{"10.1.0.0/16", []string{"10.1.0.0", "10.1.2.0", "10.1.255.0"}},
		{"10.1.2.0/23", []string{"10.1.2.0", "10.1.2.192", "10.1.3.0"}},
		{"10.1.2.0/28", []string{"10.1.2.0"}},
		{"10.1.2.2/31", []string{"10.1.2.0"}},
		{"0.0.0.0/0", []string{"0.0.0.0", "10.0.255.0", "255.255.255.0"}},
		{"fd00::/48", []string{"fd00::", "fd00::ff00", "fd00::1:0", "fd00::2:ff00", "fd00:0:0:7::",
			"fd00:0:0:ffff:ffff:ffff:ffff:ff00"}},
		{"fd00:0:0:1::/64", []string{"fd00:0:0:1::", "fd00:0:0:1::ff80", "fd00:0:0:1:1:2:3:0",
			"fd00:0:0:1:ffff:ffff:ffff:ff00"}},
		{"::/0", []string{"::", "::ff00", "1::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff00"}},
	} {
		x := world{prefix: netip.MustParsePrefix(w.prefix)}
		for _, p := range w.places {
			x.places = append(x.places, netip.MustParseAddr(p))
		}
		all = append(all, x)
	}
	return all
}

// addr draws an address at one of the places; now and then it lies outside the prefix.
func (w world) addr(t *rapid.T, label string, within int) netip.Addr {
	at := rapid.SampledFrom(w.places).Draw(t, label+" at")
	v := valueOf(at).add(u128{0, uint64(rapid.IntRange(0, within).Draw(t, label))})
	if at.Is4() {
		v = u128{0, v.lo & math.MaxUint32}
	}
	return v.addr(at.Is4())
}

// span draws a range of at most a few thousand addresses, some of which may lie outside the prefix.
func (w world) span(t *rapid.T) netipx.IPRange {
	from := w.addr(t, "from", 255)
	v := valueOf(from).add(u128{0, uint64(rapid.SampledFrom([]int{0, 1, 20, 40, 200, 600, 2000}).Draw(t, "long"))})
	to := v.addr(from.Is4())
	if to.Less(from) {
		to = netipx.PrefixLastIP(netip.PrefixFrom(from, 0))
	}
	return netipx.IPRangeFrom(from, to)
}

func TestSetAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.SampledFrom(worlds()).Draw(t, "world")
		fast, slow := NewSet(w.prefix), slowSet{}
		whole := netipx.RangeOfPrefix(w.prefix)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				a := w.addr(t, "a", 255)
				want := w.prefix.Contains(a) && !slow[a]
				if got := fast.Add(a); got != want {
					t.Fatalf("Add(%s) = %v", a, got)
				}
				if want {
					slow[a] = true
				}
			},
			"remove": func(t *rapid.T) {
				a := w.addr(t, "a", 255)
				if got := fast.Remove(a); got != slow[a] {
					t.Fatalf("Remove(%s) = %v", a, got)
				}
				delete(slow, a)
			},
			"take": func(t *rapid.T) {
				r := w.span(t)
				for range rapid.SampledFrom([]int{1, 5, 300, 600}).Draw(t, "n") {
					want, wantOK := slow.nextFree(w.prefix, r)
					got, ok := take(fast, r)
					if got != want || ok != wantOK {
						t.Fatalf("take = %s, %v; want %s, %v", got, ok, want, wantOK)
					}
					if !ok {
						break
					}
					slow[want] = true
				}
			},
			"scatter": func(t *rapid.T) {
				// Every nth address, so that lists and bitmaps are not runs.
				a, step := w.addr(t, "a", 255), rapid.SampledFrom([]uint64{2, 3, 67, 5000, 65536}).Draw(t, "step")
				for range rapid.SampledFrom([]int{3, 100, 530}).Draw(t, "n") {
					if want := w.prefix.Contains(a) && !slow[a]; fast.Add(a) != want {
						t.Fatalf("Add(%s) = %v", a, !want)
					}
					if w.prefix.Contains(a) {
						slow[a] = true
					}
					v := valueOf(a).add(u128{0, step})
					if a.Is4() && v.lo > math.MaxUint32 || a.Is6() && v.less(valueOf(a)) {
						break
					}
					a = v.addr(a.Is4())
				}
			},
			"thin out": func(t *rapid.T) {
				keep := rapid.IntRange(2, 20).Draw(t, "keep")
				members := slices.SortedFunc(maps.Keys(slow), netip.Addr.Compare)
				for i, a := range members {
					if i%keep == 0 {
						continue
					}
					if !fast.Remove(a) {
						t.Fatalf("Remove(%s) = false", a)
					}
					delete(slow, a)
				}
			},
			"add range": func(t *rapid.T) {
				r := w.span(t)
				fast.AddRange(r)
				for a := r.From(); a.IsValid() && !r.To().Less(a); a = a.Next() {
					if w.prefix.Contains(a) {
						slow[a] = true
					}
				}
			},
			"remove range": func(t *rapid.T) {
				r := w.span(t)
				if rapid.IntRange(0, 9).Draw(t, "wide") == 0 {
					r = netipx.IPRangeFrom(r.From(), whole.To())
					if !r.IsValid() {
						return
					}
				}
				fast.RemoveRange(r)
				maps.DeleteFunc(slow, func(a netip.Addr, _ bool) bool { return r.Contains(a) })
			},
			"": func(t *rapid.T) {
				checkSet(t, fast)
				if fast.Len() != uint64(len(slow)) || fast.CountIn(whole) != fast.Len() {
					t.Fatalf("Len = %d, CountIn = %d; want %d", fast.Len(), fast.CountIn(whole), len(slow))
				}
				r := w.span(t)
				if got, want := fast.CountIn(r), slow.countIn(r); got != want {
					t.Fatalf("CountIn(%v) = %d, want %d", r, got, want)
				}
				want, wantOK := slow.nextFree(w.prefix, r)
				if got, ok := fast.NextFree(r); got != want || ok != wantOK {
					t.Fatalf("NextFree(%v) = %s, %v; want %s, %v", r, got, ok, want, wantOK)
				}
				want, wantOK = slow.nextTaken(r)
				if got, ok := fast.NextTaken(r); got != want || ok != wantOK {
					t.Fatalf("NextTaken(%v) = %s, %v; want %s, %v", r, got, ok, want, wantOK)
				}
				if a := w.addr(t, "look", 2000); fast.Contains(a) != slow[a] {
					t.Fatalf("Contains(%s) = %v", a, fast.Contains(a))
				}
			},
		})
		for a := range fast.all {
			if !slow[a] {
				t.Fatalf("%s is in the set", a)
			}
		}
	})
}

// slowRanges is the obvious set of vast ranges: netipx's, built anew for each change.
type slowRanges struct{ set *netipx.IPSet }

func (m *slowRanges) edit(change func(*netipx.IPSetBuilder)) {
	var b netipx.IPSetBuilder
	b.AddSet(m.set)
	change(&b)
	m.set, _ = b.IPSet()
}

func (m *slowRanges) countIn(r netipx.IPRange) uint64 {
	var b netipx.IPSetBuilder
	b.AddRange(r)
	b.Intersect(m.set)
	in, _ := b.IPSet()
	n := new(big.Int)
	for _, x := range in.Ranges() {
		n.Add(n, Size(x))
	}
	if !n.IsUint64() {
		return math.MaxUint64
	}
	return n.Uint64()
}

func (m *slowRanges) nextFree(r netipx.IPRange) (netip.Addr, bool) {
	var b netipx.IPSetBuilder
	b.AddRange(r)
	b.RemoveSet(m.set)
	free, _ := b.IPSet()
	if len(free.Ranges()) == 0 {
		return netip.Addr{}, false
	}
	return free.Ranges()[0].From(), true
}

func (m *slowRanges) nextTaken(r netipx.IPRange) (netip.Addr, bool) {
	var b netipx.IPSetBuilder
	b.AddRange(r)
	b.Intersect(m.set)
	taken, _ := b.IPSet()
	if len(taken.Ranges()) == 0 {
		return netip.Addr{}, false
	}
	return taken.Ranges()[0].From(), true
}

// Ranges of many blocks, so that full blocks come to be, join, and fall apart again.
func TestSetAgainstRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/48"),
			netip.MustParsePrefix("::/0"), netip.MustParsePrefix("0.0.0.0/0")}).Draw(t, "prefix")
		whole := netipx.RangeOfPrefix(p)
		fast, slow := NewSet(p), &slowRanges{new(netipx.IPSet)}
		draw := func(t *rapid.T, label string) netip.Addr {
			// Near the border of one of 8 blocks, at either end of the prefix.
			v := u128{0, uint64(rapid.IntRange(0, 8).Draw(t, label+" block"))}.shl(16)
			v = v.add(u128{0, uint64(rapid.SampledFrom([]int{0, 1, 2, 40, 600, 32768}).Draw(t, label))})
			if rapid.Bool().Draw(t, label+" high") {
				return valueOf(whole.To()).sub(v).addr(p.Addr().Is4())
			}
			return valueOf(whole.From()).add(v).addr(p.Addr().Is4())
		}
		span := func(t *rapid.T) netipx.IPRange {
			a, b := draw(t, "a"), draw(t, "b")
			if b.Less(a) {
				a, b = b, a
			}
			return netipx.IPRangeFrom(a, b)
		}
		t.Repeat(map[string]func(*rapid.T){
			"add range": func(t *rapid.T) {
				r := span(t)
				fast.AddRange(r)
				slow.edit(func(b *netipx.IPSetBuilder) { b.AddRange(r) })
			},
			"remove range": func(t *rapid.T) {
				r := span(t)
				fast.RemoveRange(r)
				slow.edit(func(b *netipx.IPSetBuilder) { b.RemoveRange(r) })
			},
			"add": func(t *rapid.T) {
				a := draw(t, "one")
				if got := fast.Add(a); got == slow.set.Contains(a) {
					t.Fatalf("Add(%s) = %v", a, got)
				}
				slow.edit(func(b *netipx.IPSetBuilder) { b.Add(a) })
			},
			"remove": func(t *rapid.T) {
				a := draw(t, "one")
				if got := fast.Remove(a); got != slow.set.Contains(a) {
					t.Fatalf("Remove(%s) = %v", a, got)
				}
				slow.edit(func(b *netipx.IPSetBuilder) { b.Remove(a) })
			},
			"": func(t *rapid.T) {
				checkSet(t, fast)
				r := span(t)
				if got, want := fast.CountIn(r), slow.countIn(r); got != want {
					t.Fatalf("CountIn(%v) = %d, want %d", r, got, want)
				}
				if got, want := fast.Len(), slow.countIn(whole); got != want {
					t.Fatalf("Len = %d, want %d", got, want)
				}
				want, wantOK := slow.nextFree(r)
				if got, ok := fast.NextFree(r); got != want || ok != wantOK {
					t.Fatalf("NextFree(%v) = %s, %v; want %s, %v", r, got, ok, want, wantOK)
				}
				want, wantOK = slow.nextTaken(r)
				if got, ok := fast.NextTaken(r); got != want || ok != wantOK {
					t.Fatalf("NextTaken(%v) = %s, %v; want %s, %v", r, got, ok, want, wantOK)
				}
			},
		})
	})
}
