package edit_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// Importing the export of any plan changes nothing. An empty daemon that imports it gives the same export back.
func TestAnyExportImports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir := ipamtest.DrawnDir(t)
		w := ipamtest.NewScribe(t, dir, "one.db")
		w.Write(rapid.IntRange(15, 30).Draw(t, "edits"))
		document := w.Export()
		if report, err := w.Imports(document); err != nil || report.Added.Sum() > 0 {
			t.Fatalf("into the same: %+v, %v\n%s", report, err, document)
		}
		if again := w.Export(); again != document {
			t.Fatal(cmp.Diff(document, again))
		}
		empty := ipamtest.NewScribe(t, dir, "two.db")
		if report, err := empty.Imports(document); err != nil || report.Unchanged.Sum() > 0 {
			t.Fatalf("into an empty one: %+v, %v\n%s", report, err, document)
		}
		if again := empty.Export(); again != document {
			t.Fatal(cmp.Diff(document, again))
		}
	})
}

// For any plan and any state, an import is refused as a whole, or adds what its dry run said. A repeated import
// adds nothing.
func TestAnyImport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir := ipamtest.DrawnDir(t)
		from, to := ipamtest.NewScribe(t, dir, "one.db"), ipamtest.NewScribe(t, dir, "two.db")
		from.Write(rapid.IntRange(1, 15).Draw(t, "edits"))
		to.Write(rapid.IntRange(1, 15).Draw(t, "edits"))
		document, before := from.Export(), to.Export()
		dry, dryErr := to.S.Import(ctx, to.Read(document), ipam.ImportOptions{DryRun: true})
		report, err := to.Imports(document)
		if err != nil {
			if !errors.As(err, new(*ipam.PlanError)) || dryErr == nil || err.Error() != dryErr.Error() {
				t.Fatalf("refused with %v, and dry with %v\n%s", err, dryErr, document)
			}
			if after := to.Export(); after != before {
				t.Fatalf("refused with %v, and changed:\n%s", err, cmp.Diff(before, after))
			}
			return
		}
		if dry.Added != report.Added || dry.Unchanged != report.Unchanged {
			t.Fatalf("it added %+v, and was to add %+v", report, dry)
		}
		again, err := to.Imports(document)
		if err != nil || again.Added.Sum() > 0 || again.Unchanged.Sum() != report.Added.Sum()+report.Unchanged.Sum() {
			t.Fatalf("added %+v, and again %+v, %v\n%s\n%s", report, again, err, document, before)
		}
	})
}
