package cluster_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"berth/internal/ipam"
)

// A search finds entries of both stores in one order, with pages of any length. It finds `global`, which each
// store has from the beginning, once.
func TestJoinedFind(t *testing.T) {
	p, a := furnished(t)
	find := func(m *joinedHost, f ipam.FindFilter) []ipam.Found { return listed(t, m.Find(t.Context(), f)) }
	texts := func(found []ipam.Found) []string {
		return column(found, func(one ipam.Found) string { return fmt.Sprint(one.Kind, " ", one.What) })
	}
	spaces := func(found []ipam.Found) string {
		all := column(found, func(one ipam.Found) string { return one.Space })
		slices.Sort(all)
		return strings.Join(slices.Compact(all), " ")
	}
	router := ipam.FindFilter{Word: "router"}
	if got := spaces(find(a, router)); got != "dmz global lab local" {
		t.Errorf("router is found in %s", got)
	}
	if got := spaces(find(p.host("b"), router)); got != "dmz global" { // only the cluster's
		t.Errorf("host b finds it in %s", got)
	}
	all := texts(find(a, ipam.FindFilter{Word: "global"}))
	if strings.Count(strings.Join(all, "; "), "space global") != 1 {
		t.Errorf("the space global is found in %q", all)
	}
	for _, word := range []string{"a", "10.", "router", "lan"} {
		whole := find(a, ipam.FindFilter{Word: word})
		if len(whole) < 2 || !slices.IsSortedFunc(whole, func(x, y ipam.Found) int { return x.Mark().Compare(y.Mark()) }) {
			t.Errorf("%q finds, in no order: %q", word, texts(whole))
		}
		for i := range whole {
			rest := find(a, ipam.FindFilter{Word: word, After: whole[i].Mark()})
			if !slices.Equal(texts(rest), texts(whole[i+1:])) {
				t.Errorf("%q behind number %d of %q: %q", word, i, texts(whole), texts(rest))
			}
		}
	}
	refusedBy(t, "no word", lastError(a.Find(t.Context(), ipam.FindFilter{})), ipam.ErrInvalid)
}

// The store that has the network reports its free addresses, and the address reported as next is the one that is
// given next, on each host of a cluster in turn.
func TestJoinedFree(t *testing.T) {
	p := newJoinedHosts(t)
	p.plays("network lan space=global subnet=10.77.0.0/28,gw=10.77.0.1,pool")
	for i, host := range []string{"a", "b", "c"} {
		p.plays(strings.NewReplacer("HOST", host, "NUMBER", fmt.Sprint(i)).Replace(`
			HOST: network own subnet=10.1.NUMBER.0/29,gw=10.1.NUMBER.1,pool
			HOST: attach own net=own space=-
			HOST: attach lan net=lan space=-
		`))
	}
	given := map[netip.Addr]bool{}
	for round := range 3 {
		for _, host := range []string{"a", "b", "c"} {
			for _, network := range []string{"lan", "own"} {
				m := p.host(host)
				free := func() []ipam.FreeRange {
					all, err := m.Free(t.Context(), network, ipam.FreeFilter{})
					fine(t, err)
					return all
				}
				before := free()
				next, err := m.NextFree(t.Context(), network, ipam.FreeFilter{})
				fine(t, err)
				p.plays(fmt.Sprintf("%s: ask %s c%d mac=%d -> $IP", host, network, round, round))
				got := m.room.Addr(p.words["$IP"])
				within := func(r ipam.FreeRange) bool { return !got.Less(r.Start) && !r.End.Less(got) }
				if len(next) != 1 || next[0].Start != got || next[0].End != got || given[got] ||
					!slices.ContainsFunc(before, within) || slices.ContainsFunc(free(), within) {
					t.Errorf("on host %s of %s %v was to be given next; %s is given, and free were %v, and are %v",
						host, network, next, got, before, free())
				}
				given[got] = true
			}
		}
	}
}
