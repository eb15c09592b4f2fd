package nft

import (
	"maps"
	"net/netip"
	"slices"
	"testing"

	"berth/internal/edge"

	"github.com/google/nftables"
	"pgregory.net/rapid"
	"sigs.k8s.io/knftables"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// TestContents: which elements mappings and ranges put into which map or set.
func TestContents(t *testing.T) {
	inside := netip.MustParsePrefix("172.30.1.0/24")
	s := edge.State{
		Ranges: []edge.Range{
			{From: addr("192.0.2.0"), To: addr("192.0.2.7"), OnCut: edge.Withdraw},
			{From: addr("192.0.2.8"), To: addr("192.0.2.8"), OnCut: edge.Keep},
			{From: addr("2001:db8::"), To: addr("2001:db8::f"), OnCut: edge.Withdraw},
			{From: addr("255.255.255.255"), To: addr("255.255.255.255"), OnCut: edge.Keep},
		},
		Mappings: []edge.Mapping{
			{Elastic: addr("192.0.2.1"), Guest: addr("172.30.1.2"), Subnet: inside},
			{Elastic: addr("192.0.2.2"), Guest: addr("172.30.1.3"), Subnet: inside, EgressOnly: true},
			{Elastic: addr("192.0.2.8"), Guest: addr("172.30.1.4"), Subnet: inside, Staged: true},
			{Elastic: addr("192.0.2.7"), Guest: addr("172.30.1.5"), Subnet: inside, Staged: true, EgressOnly: true},
		},
	}
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
	inside := netip.MustParsePrefix("172.30.1.0/24")
	s := edge.State{
		Ranges: []edge.Range{{From: addr("192.0.2.0"), To: addr("192.0.2.9"), OnCut: edge.Keep}},
		Mappings: []edge.Mapping{
			{Elastic: addr("192.0.2.1"), Guest: addr("172.30.1.2"), Subnet: inside},
			{Elastic: addr("192.0.2.2"), Guest: addr("172.30.1.3"), Subnet: inside, EgressOnly: true},
		},
	}
	for _, c := range []struct {
		name                          string
		from, to, answeredBy, answers string
		want                          bool
	}{
		{"in, to its guest", "198.51.100.1", "192.0.2.1", "172.30.1.2", "198.51.100.1", false},
		{"in, to another guest", "198.51.100.1", "192.0.2.1", "172.30.1.9", "198.51.100.1", true},
		{"in, to nobody while there was none", "198.51.100.1", "192.0.2.1", "192.0.2.1", "198.51.100.1", true},
		{"in, by one that only goes out", "198.51.100.1", "192.0.2.2", "172.30.1.3", "198.51.100.1", true},
		{"in, by one that is not here any more", "198.51.100.1", "192.0.2.5", "172.30.1.2", "198.51.100.1", true},
		{"through to another host", "198.51.100.1", "192.0.2.5", "192.0.2.5", "198.51.100.1", false},
		{"out, of its guest", "172.30.1.2", "198.51.100.1", "198.51.100.1", "192.0.2.1", false},
		{"out, of its guest that only goes out", "172.30.1.3", "198.51.100.1", "198.51.100.1", "192.0.2.2", false},
		{"out, of another guest", "172.30.1.9", "198.51.100.1", "198.51.100.1", "192.0.2.1", true},
		{"out, by one that is not here any more", "172.30.1.9", "198.51.100.1", "198.51.100.1", "192.0.2.5", true},
		{"out, by the host's address", "172.30.1.2", "198.51.100.1", "198.51.100.1", "192.0.2.77", false},
		{"of a client elsewhere with one", "192.0.2.5", "198.51.100.1", "198.51.100.1", "192.0.2.5", false},
		{"between two guests, as both are", "172.30.1.3", "192.0.2.1", "172.30.1.2", "192.0.2.2", false},
		{"of others", "172.30.1.2", "172.30.1.3", "172.30.1.3", "172.30.1.2", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &connection{from: addr(c.from), to: addr(c.to), answeredBy: addr(c.answeredBy), answeredTo: addr(c.answers)}
			if got := contradictionOf(s, nil).of(f); got != c.want {
				t.Errorf("of all: %v", got)
			}
			all := touched{}
			for _, a := range []string{c.from, c.to, c.answeredBy, c.answers} {
				all[addr(a)] = true
			}
			for a := range all { // other addresses than the edge's are never checked
				if !s.Ranges[0].Contains(a) {
					delete(all, a)
				}
			}
			if got := contradictionOf(s, &all).of(f); got != c.want {
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
