package ipamtest

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/internal/plan"
)

// Scribe is a service with a plan that rapid draws.
type Scribe struct {
	t     *rapid.T
	S     *service.Service
	Clock *Clock
}

// NewScribe opens a service over an empty store in dir.
func NewScribe(t *rapid.T, dir, name string) *Scribe {
	st := OpenStore(t, filepath.Join(dir, name))
	t.Cleanup(func() { st.Close() })
	c := NewClock()
	return &Scribe{t, OpenService(t, st, c.Now), c}
}

// DrawnDir returns a directory for one run of rapid.
func DrawnDir(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "berth-import")
	fine(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// pick draws one of all with equal chances. Numbers that rapid draws are mostly small.
func (w *Scribe) pick(label string, all ...string) string {
	return rapid.SampledFrom(all).Draw(w.t, label)
}

func (w *Scribe) flag(label string) bool { return rapid.Bool().Draw(w.t, label) }

// Write makes some edits. Refused edits change nothing.
func (w *Scribe) Write(n int) {
	for _, network := range []string{"net1", "net2"} { // most edits are about an existing network
		if w.flag("begin with " + network) {
			_, _ = w.S.Edit(ctx, ipam.EditOptions{}, w.network(network))
		}
	}
	for range n {
		if w.pick("wait", "", "", "", "", "wait") != "" {
			w.Clock.Time = w.Clock.Time.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute,
				time.Hour}).Draw(w.t, "for"))
		}
		// refused or made
		_, _ = w.S.Edit(ctx, ipam.EditOptions{}, w.edit(w.pick("in", "net1", "net1", "net2", "net3")))
	}
}

// Request requests an address as an engine does, or releases one, on a network of the plan.
func (w *Scribe) Request() {
	var held []ipam.LeaseInfo
	for l, err := range w.S.Leases(ctx, ipam.LeaseFilter{}) {
		fine(w.t, err)
		held = append(held, l)
	}
	if len(held) > 0 && w.flag("give back") {
		l := rapid.SampledFrom(held).Draw(w.t, "which")
		_ = w.S.ReleaseAddress(ctx, l.Pool, l.Address) // this does not release an address that a person took
		return
	}
	grant, err := w.S.RequestPool(ctx, ipam.PoolRequest{Network: w.pick("at", "net1", "net2"),
		IPv6: w.flag("IPv6")})
	if err != nil {
		return
	}
	req := ipam.AddressRequest{Pool: grant.ID, MAC: MAC(rapid.IntRange(1, 9).Draw(w.t, "MAC"))}
	_, _ = w.S.RequestAddress(ctx, req) // given, or no address is free
}

func (w *Scribe) edit(network string) ipam.Edit {
	switch w.pick("edit", "network", "subnet", "subnet", "resize", "range", "range", "bands", "reserve", "reserve",
		"reserve", "reserve", "release", "take") {
	case "network":
		return w.network(network)
	case "subnet":
		return w.subnet(network)
	case "resize":
		cidr := w.prefix()
		return &ipam.ModifySubnet{Network: network, Subnet: w.pick("subnet", "a", "b"), CIDR: &cidr}
	case "range":
		return w.rangeIn(network)
	case "bands":
		return w.bands(network)
	case "reserve":
		return w.reservation(network)
	case "release":
		return w.release(network)
	default:
		return &ipam.TakeAddress{Network: network, Owner: w.pick("owner", "web", "rtr"), Force: w.flag("force"),
			Interface: ipam.Interface{Number: rapid.IntRange(0, 1).Draw(w.t, "interface"), Wishes: w.wishes()}}
	}
}

// network draws a network of any type, with two subnets or none.
func (w *Scribe) network(name string) ipam.Edit {
	off := w.flag("sticky")
	e := &ipam.CreateNetwork{Name: name, Space: w.pick("space", "", "", "lab"),
		Tags: map[string]string{"k": w.name("tag")}, Sticky: &off,
		Quarantine: new(ipam.Duration(rapid.IntRange(0, 2).Draw(w.t, "quarantine")) * ipam.Duration(time.Minute)),
		MACPrefix:  w.pick("MACs", "", "aa:00:00"),
		Links:      []ipam.Link{{Host: "h1", Mode: "bridged", Link: "br0"}},
		Type:       w.pick("type", "", "", "manual", "dynamic", "vip"), OwnerRules: w.rules()}
	if w.pick("with subnets", "yes", "yes", "yes", "no") == "yes" {
		for _, cidr := range []string{"10.0.0.0/28", "2001:db8::/124"} {
			e.Subnets = append(e.Subnets, ipam.SubnetSpec{CIDR: netip.MustParsePrefix(cidr), Pool: true})
		}
	}
	return e
}

// rules draws rules that a network can have, and others.
func (w *Scribe) rules() (all []ipam.OwnerRule) {
	for range rapid.IntRange(0, 2).Draw(w.t, "rules") {
		all = append(all, ipam.OwnerRule{Pattern: w.pick("pattern", "web-*", "*_db_*", "web"),
			Owner: w.pick("owner", "", "shop/web/*"), Pool: w.name("pool")})
	}
	return all
}

func (w *Scribe) subnet(network string) ipam.Edit {
	spec := ipam.SubnetSpec{CIDR: w.prefix(), Name: w.name("name"), DHCP: w.flag("dhcp"), Pool: w.flag("pool")}
	if w.flag("gateway") {
		spec.Gateway = w.addr()
	}
	return &ipam.AddSubnet{Network: network, SubnetSpec: spec}
}

func (w *Scribe) rangeIn(network string) ipam.Edit {
	switch w.pick("range", "pool", "no pool", "exclusion") {
	case "pool":
		return &ipam.AddPool{Network: network, Range: w.ranged(), Name: w.name("name")}
	case "no pool":
		return &ipam.RemovePool{Network: network, Pool: w.ranged().String()}
	default:
		return &ipam.AddExclusion{Network: network, Range: w.ranged(), Note: w.pick("note", "", "=1+1", "' x ")}
	}
}

func (w *Scribe) bands(network string) ipam.Edit {
	bands := []ipam.Range{}
	for range rapid.IntRange(0, 2).Draw(w.t, "bands") {
		bands = append(bands,
			MustRange(w.pick("band", "10.0.0.2+3", "10.0.0.5", "10.0.0.24/29", "2001:db8::4/126", "2001:db8::14+2")))
	}
	return &ipam.ModifyNetwork{Network: network, Static: &bands, OwnerRules: w.rules()}
}

// reservation draws one of every kind: by address or not, for a time, instead of another.
func (w *Scribe) reservation(network string) ipam.Edit {
	return &ipam.AddReservation{Network: network,
		Owner: w.pick("owner", "web", "web", "shop/web/1", "02:42:00:00:00:01"), Wishes: w.wishes(),
		Force: w.flag("force"), Automatic: w.flag("automatic"), Replace: w.flag("replace"),
		WantedTerms: ipam.WantedTerms{For: ipam.Duration(
			rapid.SampledFrom([]time.Duration{0, 0, time.Minute, 90*time.Minute + 7}).Draw(w.t, "for"))}}
}

func (w *Scribe) release(network string) ipam.Edit {
	if w.flag("of one network") {
		return &ipam.RemoveReservation{Network: network, Owner: "web"}
	}
	return &ipam.ReleaseOwner{Owner: "shop", Under: true, Replaced: w.flag("replaced")}
}

func (w *Scribe) wishes() (all []ipam.Wish) {
	for slot := range rapid.IntRange(0, 2).Draw(w.t, "wishes") {
		wish := ipam.Wish{Slot: slot}
		switch w.pick("by address", "", "any", "host", "host", "host") {
		case "any":
			wish.Address = w.addr()
		case "host":
			wish.Address = netip.MustParseAddr(w.pick("host", "10.0.0.2", "10.0.0.5", "10.0.0.7", "10.0.0.18",
				"2001:db8::5", "2001:db8::9"))
		}
		all = append(all, wish)
	}
	return all
}

// prefix draws one of several subnets, some of which overlap.
func (w *Scribe) prefix() netip.Prefix {
	return netip.MustParsePrefix(w.pick("prefix", "10.0.0.0/28", "10.0.0.16/28", "10.0.0.0/27", "10.0.0.32/29",
		"10.0.1.0/30", "10.0.1.4/31", "10.0.1.8/32",
		"2001:db8::/124", "2001:db8::10/124", "2001:db8::20/127"))
}

func (w *Scribe) addr() netip.Addr {
	if w.flag("IPv6") {
		return netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", rapid.IntRange(0, 34).Draw(w.t, "address")))
	}
	return netip.MustParseAddr(fmt.Sprintf("10.0.%d.%d", rapid.IntRange(0, 1).Draw(w.t, "third"),
		rapid.IntRange(0, 40).Draw(w.t, "last")))
}

func (w *Scribe) ranged() ipam.Range {
	return MustRange(fmt.Sprintf("%s+%d", w.addr(), rapid.IntRange(1, 6).Draw(w.t, "length")))
}

func (w *Scribe) name(label string) string { return w.pick(label, "", "a", "b") }

// Export returns the plan as a document.
func (w *Scribe) Export() string {
	var b strings.Builder
	out := plan.NewYAML(&b)
	for n, err := range w.S.Export(ctx, "") {
		fine(w.t, err)
		fine(w.t, out.Write(&n))
	}
	fine(w.t, out.Close())
	return b.String()
}

// Read reads a document.
func (w *Scribe) Read(document string) ipam.Plan {
	p, err := plan.ReadYAML(strings.NewReader(document))
	if err != nil {
		w.t.Fatalf("%v\n%s", err, document)
	}
	return p
}

// Imports imports a document.
func (w *Scribe) Imports(document string) (ipam.ImportReport, error) {
	report, err := w.S.Import(ctx, w.Read(document), ipam.ImportOptions{})
	if problems, checkErr := w.S.Check(ctx); checkErr != nil || len(problems) > 0 {
		w.t.Fatalf("after\n%s\nberth state check says: %q, %v", document, problems, checkErr)
	}
	return report, err
}
