package alloc

import (
	"maps"
	"math"
	"net/netip"
	"slices"
	"testing"

	"go4.org/netipx"
	"pgregory.net/rapid"
)

// all yields the members in order, for tests.
func (s *Set) all(yield func(netip.Addr) bool) {
	for r := range s.takenIn(netipx.RangeOfPrefix(s.prefix)) {
		for x := r.first; ; x = x.next() {
			if !yield(x.addr(s.prefix.Addr().Is4())) {
				return
			}
			if x == r.last {
				break
			}
		}
	}
}

// checkSet verifies that there is a gap between any two runs, and that the members are counted.
func checkSet(t interface {
	Helper()
	Fatalf(string, ...any)
}, s *Set) {
	t.Helper()
	var n uint64
	var before *run
	s.runs.Scan(func(r run) bool {
		if r.last.less(r.first) || before != nil && !before.last.next().less(r.first) {
			t.Fatalf("the run %v stands behind %v", r, before)
		}
		n += r.last.sub(r.first).lo + 1
		before = &r
		return true
	})
	if n != s.n {
		t.Fatalf("counted %d, not %d", s.n, n)
	}
}

// slowSet is the obvious Set: a map, and a search through all addresses in turn.
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

// world is a prefix, and the places in it where a test puts its addresses: crowded together, so that blocks fill
// and runs meet, and at the edges of blocks and of the prefix.
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

// addr draws an address at one of the places, sometimes outside the prefix.
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
