package page_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go4.org/netipx"
	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"berth/internal/admin/page"
	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
)

var must = ipamtest.Must

var ctx = context.Background()

// pages serves the views over a service, without the access checks before them.
func pages(s page.Records, edit func(*page.Config)) http.Handler {
	cfg := page.Config{Service: s, Host: "h1", Zone: time.UTC}
	if edit != nil {
		edit(&cfg)
	}
	mux := http.NewServeMux()
	for _, v := range page.New(cfg).Views() {
		mux.HandleFunc(v.Method+" "+v.Path, func(w http.ResponseWriter, r *http.Request) {
			if err := v.Handle(w, r); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
		})
	}
	return mux
}

// asked requests a view.
func asked(t rapid.TB, h http.Handler, target string) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%s is answered with %d: %s", target, w.Code, w.Body)
	}
	return w.Body.String()
}

// TestMapAgrees: in any state, the map, the table and the sums of each subnet agree with a walk over its addresses
// in the lists. `make nightly` draws 10,000 states.
func TestMapAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := ipamtest.NewScribe(t, ipamtest.DrawnDir(t), "page.db")
		now := w.Clock.Now
		if rapid.Bool().Draw(t, "large") {
			populate(t, w.S, w.Clock)
		} else {
			w.Write(rapid.IntRange(0, 30).Draw(t, "edits"))
			for range rapid.IntRange(0, 10).Draw(t, "requests") {
				w.Request()
				w.Write(rapid.IntRange(0, 2).Draw(t, "further edits"))
			}
		}
		networks, err := w.S.Networks(ctx, ipam.NetworkFilter{})
		must(t, err)
		h := pages(w.S, nil)
		oneNumber(t, h, w.S, networks)
		for i := range networks {
			for n := range networks[i].Subnets {
				agrees(t, h, newWalk(t, w.S, now(), &networks[i], &networks[i].Subnets[n]))
			}
		}
	})
}

// populate draws a network with one larger subnet, and a history for its addresses.
func populate(t *rapid.T, s *service.Service, clock *ipamtest.Clock) {
	cidr := netip.MustParsePrefix(rapid.SampledFrom([]string{"10.9.0.0/24", "10.9.0.0/25", "10.9.0.0/20", "10.9.0.0/23",
		"2001:db8:9::/64", "2001:db8:9::/112", "2001:db8:9::/119"}).Draw(t, "subnet"))
	first := cidr.Addr()
	at := func(n int) netip.Addr {
		b := first.AsSlice()
		b[len(b)-1], b[len(b)-2] = byte(n), b[len(b)-2]+byte(n>>8)
		addr, _ := netip.AddrFromSlice(b)
		return addr
	}
	most := 255
	if first.BitLen()-cidr.Bits() > 11 {
		most = 4095
	}
	far := func() int { return rapid.IntRange(0, most).Draw(t, "address") }
	try := func(e ipam.Edit) { _, _ = s.Edit(ctx, ipam.EditOptions{}, e) } // a refused edit changes nothing
	hour := ipam.Duration(time.Hour)
	sub := ipam.SubnetSpec{CIDR: cidr, Pool: rapid.Bool().Draw(t, "whole pool")}
	if _, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.CreateNetwork{Name: "big", Subnets: []ipam.SubnetSpec{sub},
		Quarantine: &hour}); err != nil {
		t.Fatal(err)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "ranges") {
		a, b := far(), far()
		r := ipam.Range{IPRange: netipx.IPRangeFrom(at(min(a, b)), at(max(a, b)))}
		if rapid.Bool().Draw(t, "pool") {
			try(&ipam.AddPool{Network: "big", Range: r, Name: fmt.Sprint("p", i)})
		} else {
			try(&ipam.AddExclusion{Network: "big", Range: r, Note: "kept"})
		}
	}
	grant, err := s.RequestPool(ctx, ipam.PoolRequest{Network: "big", IPv6: first.Is6()})
	must(t, err)
	for i := range rapid.IntRange(0, 40).Draw(t, "changes") {
		addr := at(far())
		switch rapid.IntRange(0, 6).Draw(t, "change") {
		case 0, 1:
			_, _ = s.RequestAddress(ctx, ipam.AddressRequest{Pool: grant.ID, MAC: ipamtest.MAC(i + 1)})
		case 2:
			_, _ = s.RequestAddress(ctx, ipam.AddressRequest{Pool: grant.ID, MAC: ipamtest.MAC(i + 1), Preferred: addr})
		case 3:
			try(&ipam.AddReservation{Network: "big", Owner: fmt.Sprint("owner", i),
				Wishes: []ipam.Wish{{Address: addr}}})
		case 4:
			try(&ipam.TakeAddress{Network: "big", Owner: fmt.Sprint("box", i),
				Interface: ipam.Interface{Wishes: []ipam.Wish{{Address: addr}}}})
		case 5:
			for l, err := range s.Leases(ctx, ipam.LeaseFilter{}) {
				must(t, err)
				if rapid.IntRange(0, 3).Draw(t, "keep") == 0 {
					_ = s.ReleaseAddress(ctx, l.Pool, l.Address)
					break
				}
			}
		default:
			clock.Time = clock.Time.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Hour}).Draw(t, "for"))
		}
	}
}

// walk is what the lists report about the addresses of a subnet.
type walk struct {
	sub    *ipam.SubnetPlan
	leases map[netip.Addr]*ipam.LeaseInfo
	owners map[netip.Addr]string
	closed []ipam.Range
	now    time.Time
}

func newWalk(t *rapid.T, s *service.Service, now time.Time, n *ipam.NetworkInfo, sub *ipam.SubnetPlan) *walk {
	w := &walk{sub: sub, leases: map[netip.Addr]*ipam.LeaseInfo{}, owners: map[netip.Addr]string{}, now: now,
		closed: slices.Clone(n.Static)}
	for l, err := range s.Leases(ctx, ipam.LeaseFilter{Space: n.Space, Subnet: sub.CIDR, Remembered: true}) {
		must(t, err)
		w.leases[l.Address] = &l
	}
	for r, err := range s.Reservations(ctx, ipam.AddressFilter{Network: n.Name}) {
		must(t, err)
		if !r.Dynamic && sub.CIDR.Contains(r.Address) {
			w.owners[r.Address] = r.Owner
		}
	}
	for _, x := range sub.Exclusions {
		w.closed = append(w.closed, ipam.Range{IPRange: netipx.IPRangeFrom(x.Start, x.End)})
	}
	return w
}

// state is the state of one address.
func (w *walk) state(a netip.Addr) ipam.AddressState {
	l, owner := w.leases[a], w.owners[a]
	switch {
	case l != nil && l.State == "held":
		return ipam.AddressLeased
	case l != nil && owner == "" && l.QuarantineUntil.After(w.now):
		return ipam.AddressQuarantined
	case owner != "":
		return ipam.AddressReserved
	case !alloc.Usable(w.sub.CIDR).Contains(a),
		slices.ContainsFunc(w.closed, func(r ipam.Range) bool { return r.Contains(a) }):
		return ipam.AddressExcluded
	case slices.ContainsFunc(w.sub.Pools, func(p ipam.PoolPlan) bool {
		return p.Start.Compare(a) <= 0 && a.Compare(p.End) <= 0
	}):
		return ipam.AddressFree
	}
	return ipam.AddressOutside
}

// addresses are those to check: all, or in a large subnet the ones with any state or bound, and their neighbours.
func (w *walk) addresses() []netip.Addr {
	all := map[netip.Addr]bool{}
	r := netipx.RangeOfPrefix(w.sub.CIDR)
	if alloc.Size(r).BitLen() <= 13 {
		for a := r.From(); a.IsValid() && !r.To().Less(a); a = a.Next() {
			all[a] = true
		}
		return slices.SortedFunc(maps.Keys(all), netip.Addr.Compare)
	}
	near := []netip.Addr{r.From(), r.To()}
	near = slices.AppendSeq(near, maps.Keys(w.leases))
	near = slices.AppendSeq(near, maps.Keys(w.owners))
	for _, x := range w.closed {
		near = append(near, x.From(), x.To())
	}
	for _, p := range w.sub.Pools {
		near = append(near, p.Start, p.End)
	}
	for _, a := range near {
		for _, one := range []netip.Addr{a.Prev(), a, a.Next()} {
			if r.Contains(one) {
				all[one] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(all), netip.Addr.Compare)
}

// told is the view of a subnet in JSON.
type told struct {
	Subnet    ipam.StateCounts
	Addresses []struct {
		Address   string
		State     ipam.AddressState
		Addresses ipam.Count
		Owner     string
		Mac       ipam.MAC
	}
	Next  string `json:"addresses_next"`
	Parts []struct {
		Part netip.Prefix
		ipam.StateCounts
	}
}

// sums counts addresses by their state, as ipamtest.Counted does.
type sums map[ipam.AddressState]*big.Int

func (s sums) add(state ipam.AddressState, more ipam.Count) {
	if s[state] == nil {
		s[state] = new(big.Int)
	}
	s[state].Add(s[state], more.Int)
}

// rows reads all pages of a view.
func rows(t *rapid.T, h http.Handler, target string) (whole told) {
	for next := target; next != ""; {
		var one told
		sep := "?"
		if strings.Contains(next, "?") {
			sep = "&"
		}
		must(t, json.Unmarshal([]byte(asked(t, h, next+sep+"format=json")), &one))
		if next == target {
			whole.Subnet, whole.Parts = one.Subnet, one.Parts
		}
		whole.Addresses = append(whole.Addresses, one.Addresses...)
		if next = ""; one.Next != "" {
			path, _, _ := strings.Cut(target, "?")
			next = path + strings.ReplaceAll(one.Next, "format=json&", "")
			next = strings.ReplaceAll(next, "format=json", "")
		}
	}
	return whole
}

// agrees compares a subnet's views with a walk.
func agrees(t *rapid.T, h http.Handler, w *walk) {
	target := "/subnet/" + w.sub.ID.String()
	view := rows(t, h, target)
	sum, at := sums{}, 0
	all := w.addresses()
	next := w.sub.CIDR.Addr()
	for _, row := range view.Addresses {
		r := rangeOf(t, row.Address)
		if r.From() != next {
			t.Fatalf("%s: a row begins with %s, and not with %s", w.sub.CIDR, row.Address, next)
		}
		next = r.To().Next()
		if alloc.Size(r).Cmp(row.Addresses.Int) != 0 {
			t.Fatalf("%s is told to be %s addresses", row.Address, row.Addresses)
		}
		sum.add(row.State, row.Addresses)
		for ; at < len(all) && r.Contains(all[at]); at++ {
			if want := w.state(all[at]); row.State != want {
				t.Fatalf("%s is %s by the table, %s by the records", all[at], row.State, want)
			}
			if row.Owner != w.owners[all[at]] {
				t.Fatalf("%s belongs to %q by the table, to %q by the records", all[at], row.Owner, w.owners[all[at]])
			}
			if l := w.leases[all[at]]; row.State == ipam.AddressLeased && row.Mac != l.MAC {
				t.Fatalf("%s has %s by the table, %s by the records", all[at], row.Mac, l.MAC)
			}
		}
	}
	if next != netipx.RangeOfPrefix(w.sub.CIDR).To().Next() || at != len(all) {
		t.Fatalf("the table of %s ends before %s", w.sub.CIDR, next)
	}
	for who, use := range map[string]*ipam.StateCounts{"API": &w.sub.Use.StateCounts, "view": &view.Subnet} {
		if got, want := ipamtest.Counted(use), fmt.Sprint(sum); got != want {
			t.Fatalf("%s: the %s has %s, and the rows %s", w.sub.CIDR, who, got, want)
		}
	}
	drawn(t, h, w, target, &view)
}

// drawn compares the map with the walk: each cell, or each part and the maps it links to.
func drawn(t *rapid.T, h http.Handler, w *walk, target string, view *told) {
	cells := cellsOf(t, asked(t, h, target))
	if w.sub.CIDR.Addr().BitLen()-w.sub.CIDR.Bits() <= 8 {
		for _, a := range w.addresses() {
			if got := cmp.Or(cells[a.String()], "nothing"); got != w.state(a).Legend().Word {
				t.Fatalf("%s is drawn as %s, and is %s", a, got, w.state(a))
			}
		}
		if len(cells) != 1<<(w.sub.CIDR.Addr().BitLen()-w.sub.CIDR.Bits()) {
			t.Fatalf("%d cells are drawn of %s", len(cells), w.sub.CIDR)
		}
		return
	}
	if len(cells) != len(view.Parts) {
		t.Fatalf("%d parts are drawn, and %d told", len(cells), len(view.Parts))
	}
	seen := map[netip.Addr]bool{}
	for i := range view.Parts {
		part := &view.Parts[i]
		if _, is := cells[part.Part.String()]; !is {
			t.Fatalf("%s is not drawn", part.Part)
		}
		sum := sums{}
		for _, row := range rows(t, h, target+"?part="+part.Part.String()).Addresses {
			sum.add(row.State, row.Addresses)
		}
		if got, want := ipamtest.Counted(&part.StateCounts), fmt.Sprint(sum); got != want {
			t.Fatalf("%s has %s as a part, and %s by its rows", part.Part, got, want)
		}
		for a := range w.leases {
			seen[a] = seen[a] || part.Part.Contains(a)
		}
	}
	for a, is := range seen {
		if !is {
			t.Fatalf("%s is in no part", a)
		}
	}
}

func rangeOf(t *rapid.T, text string) netipx.IPRange {
	from, to, both := strings.Cut(text, "-")
	if !both {
		to = from
	}
	a, err := netip.ParseAddr(from)
	must(t, err)
	b, err := netip.ParseAddr(to)
	must(t, err)
	return netipx.IPRangeFrom(a, b)
}

// cellsOf are the cells of the map in a view, each with its text.
func cellsOf(t rapid.TB, text string) map[string]string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(text))
	must(t, err)
	cells := map[string]string{}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "a" || n.Namespace != "svg" {
			continue
		}
		for c := range n.ChildNodes() {
			if c.Data == "title" && c.FirstChild != nil {
				name, said, _ := strings.Cut(c.FirstChild.Data, ": ")
				state, _, _ := strings.Cut(said, ", ")
				cells[name] = state
			}
		}
	}
	return cells
}
