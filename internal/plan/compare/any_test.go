package compare_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/plan"
	"berth/internal/plan/compare"
)

var ctx = context.Background()

// sorted is a document sorted independently of the order in which things were made.
func sorted(w *ipamtest.Scribe, document string) string {
	p := w.Read(document)
	slices.SortFunc(p.Networks, func(a, b ipam.PlannedNetwork) int { return cmp.Compare(a.Name, b.Name) })
	var b bytes.Buffer
	out := plan.NewYAML(&b)
	for i := range p.Networks {
		n := &p.Networks[i]
		slices.SortFunc(n.Subnets, func(a, b ipam.PlannedSubnet) int { return a.CIDR.Addr().Compare(b.CIDR.Addr()) })
		for j := range n.Subnets {
			sub := &n.Subnets[j]
			slices.SortFunc(sub.Pools, func(a, b ipam.PlannedPool) int { return a.Range.From().Compare(b.Range.From()) })
		}
		_ = out.Write(n) // into memory
	}
	_ = out.Close()
	return b.String()
}

// applied makes the plan match the document, and returns the number of transactions, or the refusal.
func applied(t *rapid.T, w *ipamtest.Scribe, document string, opt compare.Options) (made int, err error) {
	opt.Now = w.Clock.Now()
	wanted, now := w.Read(document), w.Read(w.Export())
	d, err := compare.Plans(&wanted, &now, opt)
	if err != nil {
		return 0, err
	}
	if (len(d.Changes) == 0) != (len(d.Parts) == 0) {
		t.Fatalf("%d lines and %d parts: %v\n%s\nin place of\n%s", len(d.Changes), len(d.Parts), d.Changes, document,
			w.Export())
	}
	for _, one := range d.Transactions(ipam.MaxEdits, false) {
		var edits []ipam.Edit
		for _, e := range one.Edits {
			edits = append(edits, e.Edit)
		}
		if _, err := w.S.Edit(ctx, ipam.EditOptions{}, edits...); err != nil {
			return made, err
		}
		made++
	}
	return made, nil
}

// Any document over any plan is refused as a whole, or makes the plan exactly match the document. A second
// comparison then finds no difference.
func TestAnyDocument(t *testing.T) {
	made := 0
	rapid.Check(t, func(t *rapid.T) {
		dir := ipamtest.DrawnDir(t)
		from, to := ipamtest.NewScribe(t, dir, "one.db"), ipamtest.NewScribe(t, dir, "two.db")
		from.Write(rapid.IntRange(1, 15).Draw(t, "edits"))
		to.Write(rapid.IntRange(1, 15).Draw(t, "edits"))
		if to.Clock.Time.After(from.Clock.Time) {
			from.Clock.Time = to.Clock.Time
		}
		to.Clock.Time = from.Clock.Time
		document, before := from.Export(), to.Export()
		n, err := applied(t, to, document, compare.Options{Prune: true})
		if problems, checkErr := to.S.Check(ctx); checkErr != nil || len(problems) > 0 {
			t.Fatalf("berth state check says: %q, %v", problems, checkErr)
		}
		if err != nil {
			if !errors.Is(err, ipam.ErrInvalid) && !errors.Is(err, ipam.ErrInUse) && !errors.Is(err, ipam.ErrOverlap) {
				t.Fatal(err)
			}
			if after := to.Export(); n == 0 && after != before {
				t.Fatalf("refused with %v, and changed:\n%s", err, gocmp.Diff(before, after))
			}
			t.Log("refused:", err)
			return
		}
		made++
		if want, got := sorted(to, document), sorted(to, to.Export()); want != got {
			t.Fatalf("%s\nover\n%s", gocmp.Diff(want, got), before)
		}
		if n, err := applied(t, to, document, compare.Options{Prune: true}); n != 0 || err != nil {
			t.Fatalf("again: %d, %v", n, err)
		}
	})
	t.Logf("%d were made", made)
	if made == 0 {
		t.Error("none was made")
	}
}
