package nft

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"berth/internal/edge"
	"berth/internal/ipam/ipamtest"

	"github.com/google/nftables"
	"pgregory.net/rapid"
	"sigs.k8s.io/knftables"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// stateOf reads a state. A line is a range, FROM-TO and what happens on a cut, or a mapping, ELASTIC=GUEST and "staged"
// or "egress".
func stateOf(text string) (s edge.State) {
	for line := range ipamtest.Rows(1, text) {
		what, words, _ := strings.Cut(line[0], " ")
		if from, to, is := strings.Cut(what, "-"); is {
			s.Ranges = append(s.Ranges, edge.Range{From: addr(from), To: addr(to), OnCut: edge.OnCut(words)})
			continue
		}
		elastic, guest, _ := strings.Cut(what, "=")
		s.Mappings = append(s.Mappings, edge.Mapping{Elastic: addr(elastic), Guest: addr(guest),
			Subnet: netip.PrefixFrom(addr(guest), 24).Masked(), Staged: strings.Contains(words, "staged"),
			EgressOnly: strings.Contains(words, "egress")})
	}
	return s
}

// TestContents: which elements mappings and ranges put into which map or set.
func TestContents(t *testing.T) {
	s := stateOf(`
		192.0.2.0-192.0.2.7 withdraw
		192.0.2.8-192.0.2.8 keep
		2001:db8::-2001:db8::f withdraw
		255.255.255.255-255.255.255.255 keep
		192.0.2.1=172.30.1.2
		192.0.2.2=172.30.1.3 egress
		192.0.2.8=172.30.1.4 staged
		192.0.2.7=172.30.1.5 staged egress
	`)
	c := contentsOf(s)
	v4 := knftables.IPv4Family
	for name, want := range map[string]map[string]string{
		mapIn: {"192.0.2.1": "172.30.1.2"},
		mapOut: {"172.30.1.2": "192.0.2.1", "172.30.1.3": "192.0.2.2", "172.30.1.4": "192.0.2.8",
			"172.30.1.5": "192.0.2.7"},
		setShut:   {"192.0.2.2": ""},
		setInside: {"172.30.1.0": "172.30.2.0"},
		setFenced: {"192.0.2.0": "192.0.2.8"},
		setRanges: {"192.0.2.0": "192.0.2.8", "192.0.2.8": "192.0.2.9", "255.255.255.255": ""},
	} {
		got := map[string]string{}
		for key, value := range c[place{v4, name}] {
			told := ""
			if value != "" {
				told = addrOf(value).String()
			}
			got[addrOf(key).String()] = told
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s holds %v, want %v", name, got, want)
		}
	}
	for _, family := range []knftables.Family{knftables.ARPFamily, knftables.NetDevFamily} {
		if !maps.Equal(c[place{family, setFenced}], c[place{v4, setFenced}]) {
			t.Errorf("%s fences %v", family, c[place{family, setFenced}])
		}
	}
	if n := len(c[place{knftables.IPv6Family, setFenced}]); n != 1 {
		t.Errorf("IPv6 fences %d ranges", n)
	}
	if got := rangesOf(c); len(got) != 4 {
		t.Errorf("%d ranges are read out of it, not 4: %v", len(got), got)
	}
}

// TestDifference: the removals and additions turn one set into the other, and touch nothing that both have.
func TestDifference(t *testing.T) {
	some := rapid.MapOfN(rapid.StringMatching(`[a-f]`), rapid.StringMatching(`[xy]`), 0, 6)
	rapid.Check(t, func(t *rapid.T) {
		have, want := elements(some.Draw(t, "have")), elements(some.Draw(t, "want"))
		remove, add := difference(have, want)
		now := maps.Clone(have)
		for key, value := range remove {
			if now[key] != value || want[key] == value {
				t.Fatalf("%s: %s is taken away of %v", key, value, have)
			}
			delete(now, key)
		}
		for key, value := range add {
			if _, there := now[key]; there {
				t.Fatalf("%s is added to %v", key, now)
			}
			now[key] = value
		}
		if !maps.Equal(now, want) {
			t.Fatalf("%v becomes %v, not %v", have, now, want)
		}
	})
}

// TestJoinEnds: intervals are read in whatever order the kernel lists their ends, even if intervals touch.
func TestJoinEnds(t *testing.T) {
	want := elements{"b": "d", "d": "e", "g": "h", "x": ""}
	var list []nftables.SetElement
	for from, end := range want {
		list = append(list, nftables.SetElement{Key: []byte(from)})
		if end != "" {
			list = append(list, nftables.SetElement{Key: []byte(end), IntervalEnd: true})
		}
	}
	list = append(list, nftables.SetElement{Key: []byte("a"), IntervalEnd: true}, // of an expired interval
		nftables.SetElement{Key: []byte("j"), IntervalEnd: true})
	rapid.Check(t, func(t *rapid.T) {
		if got := joinEnds(rapid.Permutation(list).Draw(t, "list")); !maps.Equal(got, want) {
			t.Fatalf("got %v", got)
		}
	})
}

func TestSpanText(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"192.0.2.1", "192.0.2.1", "192.0.2.1"},
		{"192.0.2.1", "192.0.2.9", "192.0.2.1-192.0.2.9"},
		{"255.255.255.250", "255.255.255.255", "255.255.255.250-255.255.255.255"},
		{"2001:db8::", "2001:db8::f", "2001:db8::-2001:db8::f"},
	} {
		if got := spanText(bytesOf(addr(c.from)), endOf(addr(c.to))); got != c.want {
			t.Errorf("%s to %s: %s", c.from, c.to, got)
		}
	}
}

// TestContradiction: which connections contradict the state and are removed.
func TestContradiction(t *testing.T) {
	s := stateOf(`
		192.0.2.0-192.0.2.9 keep
		192.0.2.1=172.30.1.2
		192.0.2.2=172.30.1.3 egress
	`)
	// from whom, to whom, who answers, to whom, and whether it contradicts
	for c := range ipamtest.Rows(6, `
		in, to its guest | 198.51.100.1 | 192.0.2.1 | 172.30.1.2 | 198.51.100.1
		in, to another guest | 198.51.100.1 | 192.0.2.1 | 172.30.1.9 | 198.51.100.1 | yes
		in, to nobody while there was none | 198.51.100.1 | 192.0.2.1 | 192.0.2.1 | 198.51.100.1 | yes
		in, by one that only goes out | 198.51.100.1 | 192.0.2.2 | 172.30.1.3 | 198.51.100.1 | yes
		in, by one that is not here any more | 198.51.100.1 | 192.0.2.5 | 172.30.1.2 | 198.51.100.1 | yes
		through to another host | 198.51.100.1 | 192.0.2.5 | 192.0.2.5 | 198.51.100.1
		out, of its guest | 172.30.1.2 | 198.51.100.1 | 198.51.100.1 | 192.0.2.1
		out, of its guest that only goes out | 172.30.1.3 | 198.51.100.1 | 198.51.100.1 | 192.0.2.2
		out, of another guest | 172.30.1.9 | 198.51.100.1 | 198.51.100.1 | 192.0.2.1 | yes
		out, by one that is not here any more | 172.30.1.9 | 198.51.100.1 | 198.51.100.1 | 192.0.2.5 | yes
		out, by the host's address | 172.30.1.2 | 198.51.100.1 | 198.51.100.1 | 192.0.2.77
		of a client elsewhere with one | 192.0.2.5 | 198.51.100.1 | 198.51.100.1 | 192.0.2.5
		between two guests, as both are | 172.30.1.3 | 192.0.2.1 | 172.30.1.2 | 192.0.2.2
		of others | 172.30.1.2 | 172.30.1.3 | 172.30.1.3 | 172.30.1.2
	`) {
		t.Run(c[0], func(t *testing.T) {
			all, want := touched{}, c[5] != ""
			f := &connection{from: addr(c[1]), to: addr(c[2]), answeredBy: addr(c[3]), answeredTo: addr(c[4])}
			if got := contradictionOf(s, nil).of(f); got != want {
				t.Errorf("of all: %v", got)
			}
			for _, a := range c[1:5] { // other addresses than the edge's are never checked
				if s.Ranges[0].Contains(addr(a)) {
					all[addr(a)] = true
				}
			}
			if got := contradictionOf(s, &all).of(f); got != want {
				t.Errorf("of those that changed: %v", got)
			}
			if contradictionOf(s, &touched{addr("192.0.2.9"): true}).of(f) {
				t.Error("a change of another address forgets it")
			}
		})
	}
}

func TestMergeRanges(t *testing.T) {
	r := func(from, to string) edge.Range { return edge.Range{From: addr(from), To: addr(to)} }
	got := mergeRanges([]edge.Range{r("192.0.2.5", "192.0.2.9"), r("2001:db8::", "2001:db8::1")},
		[]edge.Range{r("192.0.2.1", "192.0.2.6"), r("192.0.2.7", "192.0.2.8"), r("192.0.2.20", "192.0.2.20")})
	want := []edge.Range{r("192.0.2.1", "192.0.2.9"), r("192.0.2.20", "192.0.2.20"), r("2001:db8::", "2001:db8::1")}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
