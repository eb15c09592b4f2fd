package ipam_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/plan"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// scribe is a service with a plan that rapid draws.
type scribe struct {
	t *rapid.T
	s *ipam.Service
}

// newScribe opens a service over an empty store in dir.
func newScribe(t *rapid.T, dir, name string) *scribe {
	st := openStore(t, filepath.Join(dir, name))
	t.Cleanup(func() { st.Close() })
	return &scribe{t, openService(t, st, newClock().Now)}
}

func (w *scribe) pick(label string, all ...string) string {
	return rapid.SampledFrom(all).Draw(w.t, label)
}

// prefix draws one of subnets that overlap one another now and then.
func (w *scribe) prefix() netip.Prefix {
	return netip.MustParsePrefix(w.pick("prefix", "10.0.0.0/28", "10.0.0.16/28", "10.0.0.0/27", "10.0.0.32/29", "10.0.1.0/30", "10.0.1.4/31", "10.0.1.8/32",
		"2001:db8::/124", "2001:db8::10/124", "2001:db8::20/127"))
}

func (w *scribe) addr() netip.Addr {
	if rapid.Bool().Draw(w.t, "IPv6") {
		return netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", rapid.IntRange(0, 34).Draw(w.t, "address")))
	}
	return netip.MustParseAddr(fmt.Sprintf("10.0.%d.%d", rapid.IntRange(0, 1).Draw(w.t, "third"), rapid.IntRange(0, 40).Draw(w.t, "last")))
}

func (w *scribe) ranged() ipam.Range {
	return mustRange(fmt.Sprintf("%s+%d", w.addr(), rapid.IntRange(1, 6).Draw(w.t, "length")))
}

func (w *scribe) name(label string) string { return w.pick(label, "", "a", "b") }

func (w *scribe) wishes() (all []ipam.Wish) {
	for slot := range rapid.IntRange(0, 2).Draw(w.t, "wishes") {
		wish := ipam.Wish{Slot: slot}
		if rapid.Bool().Draw(w.t, "by address") {
			wish.Address = w.addr()
		}
		all = append(all, wish)
	}
	return all
}

// write makes some edits. Those that are refused change nothing.
func (w *scribe) write(n int) {
	for range n {
		network := w.pick("network", "net1", "net2", "net3")
		force := rapid.Bool().Draw(w.t, "force")
		var e ipam.Edit
		switch rapid.IntRange(0, 12).Draw(w.t, "edit") {
		case 0, 1:
			off := rapid.Bool().Draw(w.t, "sticky")
			e = &ipam.CreateNetwork{Name: network, Space: w.pick("space", "", "lab"), Tags: map[string]string{"k": w.name("tag")}, Sticky: &off,
				Quarantine: ptr(ipam.Duration(rapid.IntRange(0, 2).Draw(w.t, "quarantine")) * ipam.Duration(time.Minute)), MACPrefix: w.pick("prefix", "", "aa:00:00"),
				Links: []ipam.Link{{Host: "h1", Mode: "bridged", Link: "br0"}}}
		case 2, 3, 4:
			spec := ipam.SubnetSpec{CIDR: w.prefix(), Name: w.name("name"), DHCP: rapid.Bool().Draw(w.t, "dhcp"), Pool: rapid.Bool().Draw(w.t, "pool")}
			if rapid.Bool().Draw(w.t, "gateway") {
				spec.Gateway = w.addr()
			}
			e = &ipam.AddSubnet{Network: network, SubnetSpec: spec}
		case 5:
			e = &ipam.AddPool{Network: network, Range: w.ranged(), Name: w.name("name")}
		case 6:
			e = &ipam.RemovePool{Network: network, Pool: w.ranged().String()}
		case 7:
			e = &ipam.AddExclusion{Network: network, Range: w.ranged(), Note: w.pick("note", "", "=1+1", "' x ")}
		case 8, 9:
			e = &ipam.AddReservation{Network: network, Owner: w.pick("owner", "web", "shop/web/1", "02:42:00:00:00:01"), Wishes: w.wishes(), Force: force}
		case 10:
			e = &ipam.TakeAddress{Network: network, Owner: w.pick("owner", "web", "rtr"), Force: force,
				Interface: ipam.Interface{Number: rapid.IntRange(0, 1).Draw(w.t, "interface"), Wishes: w.wishes()}}
		case 11:
			e = &ipam.RemoveReservation{Network: network, Owner: "web"}
		default:
			cidr := w.prefix()
			e = &ipam.ModifySubnet{Network: network, Subnet: w.pick("subnet", "a", "b"), CIDR: &cidr}
		}
		_, _ = w.s.Edit(ctx, ipam.EditOptions{}, e) // refused or made
	}
}

func (w *scribe) export() string {
	var b strings.Builder
	out := plan.NewYAML(&b)
	for n, err := range w.s.Export(ctx, "") {
		if err != nil {
			w.t.Fatal(err)
		}
		if err := out.Write(&n); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		w.t.Fatal(err)
	}
	return b.String()
}

func (w *scribe) read(document string) ipam.Plan {
	p, err := plan.ReadYAML(strings.NewReader(document))
	if err != nil {
		w.t.Fatalf("%v\n%s", err, document)
	}
	return p
}

func (w *scribe) imports(document string) (ipam.ImportReport, error) {
	report, err := w.s.Import(ctx, w.read(document), ipam.ImportOptions{})
	if problems, checkErr := w.s.Check(ctx); checkErr != nil || len(problems) > 0 {
		w.t.Fatalf("after\n%s\nberth fsck says: %q, %v", document, problems, checkErr)
	}
	return report, err
}

// Whatever the plan, importing its export changes nothing, and into an empty daemon gives the same export back.
func TestAnyExportImports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir := drawnDir(t)
		w := newScribe(t, dir, "one.db")
		w.write(rapid.IntRange(1, 25).Draw(t, "edits"))
		document := w.export()
		if report, err := w.imports(document); err != nil || report.Added.Sum() > 0 {
			t.Fatalf("into the same: %+v, %v\n%s", report, err, document)
		}
		if again := w.export(); again != document {
			t.Fatal(cmp.Diff(document, again))
		}
		empty := newScribe(t, dir, "two.db")
		if report, err := empty.imports(document); err != nil || report.Unchanged.Sum() > 0 {
			t.Fatalf("into an empty one: %+v, %v\n%s", report, err, document)
		}
		if again := empty.export(); again != document {
			t.Fatal(cmp.Diff(document, again))
		}
	})
}

// Whatever the plan and whatever there is, an import is refused as a whole, or adds what its dry run said, and nothing when it is
// made again.
func TestAnyImport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir := drawnDir(t)
		from, to := newScribe(t, dir, "one.db"), newScribe(t, dir, "two.db")
		from.write(rapid.IntRange(1, 15).Draw(t, "edits"))
		to.write(rapid.IntRange(1, 15).Draw(t, "edits"))
		document, before := from.export(), to.export()
		dry, dryErr := to.s.Import(ctx, to.read(document), ipam.ImportOptions{DryRun: true})
		report, err := to.imports(document)
		if err != nil {
			if !errors.As(err, new(*ipam.PlanError)) || dryErr == nil || err.Error() != dryErr.Error() {
				t.Fatalf("refused with %v, and dry with %v\n%s", err, dryErr, document)
			}
			if after := to.export(); after != before {
				t.Fatalf("refused with %v, and changed:\n%s", err, cmp.Diff(before, after))
			}
			return
		}
		if dry.Added != report.Added || dry.Unchanged != report.Unchanged {
			t.Fatalf("it added %+v, and was to add %+v", report, dry)
		}
		again, err := to.imports(document)
		if err != nil || again.Added.Sum() > 0 || again.Unchanged.Sum() != report.Added.Sum()+report.Unchanged.Sum() {
			t.Fatalf("added %+v, and again %+v, %v\n%s\n%s", report, again, err, document, before)
		}
	})
}

// drawnDir is a directory for one run of rapid.
func drawnDir(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "berth-import")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
