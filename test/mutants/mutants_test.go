package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// writeTree writes the module of testdata/tree.txtar, and returns its directory.
func writeTree(t *testing.T) string {
	t.Helper()
	archive, err := txtar.ParseFile("testdata/tree.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := txtar.Write(archive, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestMeasure: one mutant of each kind, with the verdicts that the tree's tests should give.
func TestMeasure(t *testing.T) {
	dir := writeTree(t)
	want := []struct{ kind, fn, text, result string }{
		{"for", "Sum", "for n < len(all) {", "killed TestSum"},
		{"bound", "Sum", "for n < len(all) {", "killed TestSum"},
		{"bound", "Sum", "if all[n] < low {", "killed TestSum"},
		{"if", "Sum", "if all[n] < low {", "killed TestSum"},
		{"assign", "Sum", "sum += all[n]", "killed TestSum"},
		{"andor", "both", "func both(a, b bool) bool { return a && b }", "killed TestRest"},
		{"equal", "same", "equal := a == b", "killed TestRest"},
		{"bool", "yes", "func yes() bool { return true }", "killed TestRest"},
		{"int", "ten", "func ten() int { return 10 }", "killed TestRest"},
		{"call", "set", "func set(m map[string]int) { clear(m) }", "killed TestRest"},
		{"int", "child", `func child() string { return fmt.Sprint("child", 1) }`, "killed TestChild"},
		{"bool", "untested", "func untested() bool { return false }", "unreached"},
		{"int", "unnoticed", "if n > 100 {", "survived"}, // TestFlaky fails once by itself
		{"call", "unnoticed", "set(nil)", "unreached"},
		{"bound", "unnoticed", "if n > 100 {", "unreached"}, // no test uses 100
		{"step", "Sum", "away", "gone"},
	}
	var list []mutant
	for i, w := range want {
		file := "sum/sum.go"
		if i%2 == 1 {
			file = "sum/before.go" // it has moved from here
		}
		list = append(list, mutant{id: i + 1, place: place{file: file, kind: w.kind, fn: w.fn, text: w.text}})
	}
	o := options{
		dir: dir, packages: []string{"./..."}, list: filepath.Join(dir, "list"), out: filepath.Join(dir, "out"), workers: 1,
	}
	if err := writeList(o.list, list); err != nil {
		t.Fatal(err)
	}
	if err := measure(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	got, err := readResults(o.out)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range want {
		r := got[i+1]
		verdict := r.verdict
		if verdict == "killed" {
			verdict += strings.TrimPrefix(r.where, "sum")
		}
		if verdict != w.result {
			t.Errorf("%s %s in %q: %q, not %q", w.kind, w.fn, w.text, verdict, w.result)
		}
	}
}

// TestChoose: a seed gives the same list again, of the requested length, with no two mutants on a line.
func TestChoose(t *testing.T) {
	tree, err := load(t.Context(), writeTree(t), []string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	sites := tree.sites()
	kinds := map[string]bool{}
	for _, s := range sites {
		kinds[s.kind] = true
	}
	if len(kinds) != 10 {
		t.Errorf("the tree has sites of %d kinds, not 10: %v", len(kinds), kinds)
	}
	one, same, other := choose(tree, sites, 1, 8), choose(tree, sites, 1, 8), choose(tree, sites, 2, 8)
	equal := func(a, b mutant) bool { return a.place == b.place }
	if len(one) != 8 || !slices.EqualFunc(one, same, equal) || slices.EqualFunc(one, other, equal) {
		t.Errorf("seed 1 chose %v, then %v, and seed 2 %v", one, same, other)
	}
	lines := map[int]bool{}
	for _, m := range choose(tree, sites, 1, 1000) {
		if lines[m.line] {
			t.Errorf("line %d was chosen twice", m.line)
		}
		lines[m.line] = true
	}
}

func TestPattern(t *testing.T) {
	for want, units := range map[string][]*unit{
		"":                     {{}},
		"^(TestA)$":            {{Test: "TestA"}},
		"^(TestA|TestB)$":      {{Test: "TestA"}, {Test: "TestB"}},
		`^TestA$/^(x|y\.z#1)$`: {{Test: "TestA", Part: "x"}, {Test: "TestA", Part: "y.z#1"}},
	} {
		if got := pattern(units); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestGroups: tests of the mutant's own package come first, then the cheapest, a few in each process.
func TestGroups(t *testing.T) {
	own, other := &pkg{rel: "own"}, &pkg{rel: "other"}
	s := &suite{binaries: []*binary{
		{pkg: other, units: []*unit{
			{Test: "TestLong", Took: 2 * quick, Reach: []int{7}},
			{Test: "TestShort", Took: 1, Reach: []int{3, 7}},
			{Test: "TestShort2", Took: 2, Reach: []int{7}},
			{Test: "TestElsewhere", Reach: []int{3}},
			{Test: "TestScripts", Part: "a", Took: 3, Reach: []int{7}},
			{Test: "TestScripts", Part: "b", Took: 4, Reach: []int{7}},
		}},
		{pkg: own, units: []*unit{{Took: 3 * quick, Reach: []int{7}}}},
	}}
	var got []string
	for _, g := range s.groupsFor(mutant{id: 7, site: &site{pkg: own}}) {
		got = append(got, g.b.pkg.rel+" "+pattern(g.units))
	}
	want := []string{"own ", "other ^(TestShort|TestShort2)$", "other ^TestScripts$/^(a|b)$", "other ^(TestLong)$"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	before := file("before", "1\tkilled\ta TestA\n2\tsurvived\n3\tkilled\tb TestB\n4\tkilled\tb TestB\n")
	after := file("after", "1\tsurvived\n2\tkilled\ta TestA\n3\tkilled\ta TestA\n4\tgone\tc.go\n")
	list := filepath.Join(dir, "list")
	if err := writeList(list, []mutant{
		{id: 1, place: place{file: "a.go", kind: "if", text: "if a {"}, line: 4, col: 2}, {id: 2}, {id: 3}, {id: 4},
	}); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := compareFiles(&out, list, []string{before, after})
	want := "1 was killed by a TestA, now survived: a.go:4:2 if: if a {\n" +
		"1 killed only before, 1 killed only now; 1 have no new result\n"
	if err == nil || out.String() != want {
		t.Errorf("%v, %s", err, out.String())
	}
	if err := compareFiles(&out, list, []string{before, before}); err != nil {
		t.Error(err)
	}
}
