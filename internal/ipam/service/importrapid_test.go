package service_test

import (
	"errors"
	"testing"

	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Whatever the plan, importing its export changes nothing, and into an empty daemon gives the same export back.
func TestAnyExportImports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir := drawnDir(t)
		w := newScribe(t, dir, "one.db")
		w.write(rapid.IntRange(15, 30).Draw(t, "edits"))
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

// Whatever the plan and whatever there is, an import is refused as a whole, or adds what its dry run said, and nothing
// when it is made again.
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
