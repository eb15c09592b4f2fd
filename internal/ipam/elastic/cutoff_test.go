package elastic_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/ledger"
	"berth/store"
	"berth/store/storetest"
)

// cutVerb is a step of scripts. Each of its transactions fails in turn.
type cutVerb struct {
	name, prepare, do string
	pages             bool // it takes several transactions, and each does a part
}

// done does the step. A repeated step is made only once.
func (v *cutVerb) done(b *bench) error {
	b.key = "again"
	_, err := b.step(strings.Fields(short.ReplaceAllStringFunc(v.do, long)))
	b.key = ""
	return err
}

// cutVerbs are the verbs: a name, what prepares it, the step, and whether it takes several transactions.
func cutVerbs() (all []cutVerb) {
	texts := strings.NewReplacer("RESERVED", "reserve net1 web G9; reserve net1 mail G10",
		"LEADS", "reserve net1 web G9; reserve net1 mail G10; to E0 web",
		"INFORCE", "reserve net1 web G9; reserve net1 mail G10; to E0 web; applies",
		"ONAUTO", "engine; range S0/28 host=h1; elastic net1 auto; run web; run job",
		"CROWD", fmt.Sprint("crowd ", 2*ledger.PageSize+10))
	for row := range ipamtest.Rows(4, texts.Replace(`
		account create | RESERVED | account shop shop/*
		account rm | account shop | account.rm shop
		account rm --force | CROWD | account.rm crowd force | pages
		range add | | range S0/28
		range rm | range S0/28 | range.rm S0/28
		allocate | | allocate
		associate | RESERVED | to E0 web
		associate --move | INFORCE | to E0 mail move
		disassociate | INFORCE | off E0
		release | | free E1
		release of what an edge has | INFORCE; off E0 | free E0
		network modify --elastic | | elastic net1 auto
		declared by a project | RESERVED | declares web
		the end of its owner | INFORCE | end web
		released on a stop | freeze; LEADS; allocate E0 on=stop; run web; look 0s; stop web | look 2m
		an edge's report | LEADS | applies
		an edge's report of an end | INFORCE; off E0; free E0 | whole
		system addresses given | ONAUTO | round | pages
		one takes the place of a system address | ONAUTO; round | to E0 web
		system addresses taken | ONAUTO; round; elastic net1 on | round | pages
	`)) {
		all = append(all, cutVerb{row[0], row[1], row[2], row[3] != ""})
	}
	return all
}

// crowd gives an account n addresses.
func (b *bench) crowd(n int) {
	b.t.Helper()
	b.plays(`
		account crowd
		range 198.18.0.0/16
	`)
	var all []ipam.Edit
	for one, i := addr("198.18.0.0"), 1; i <= n; i++ {
		one = one.Next()
		all = append(all, &ipam.AllocateElastic{Account: "crowd", Address: one})
		if len(all) == ipam.MaxEdits || i == n {
			_, err := b.Edit(b.t.Context(), ipam.EditOptions{}, all...)
			must(b, err)
			all = nil
		}
	}
}

// everything describes all records of elastic addresses, without numbers and times.
func (b *bench) everything() string {
	b.t.Helper()
	var lines []string
	b.Ledger.Read(func(ix *ledger.Index) {
		for name, a := range ix.Accounts() {
			lines = append(lines, fmt.Sprintf("account %s of %q", name, a.Owners))
		}
		for _, r := range ix.ElasticRanges() {
			lines = append(lines, fmt.Sprintf("range %s of %q", r.Range, r.Host))
		}
		for addr, one := range ix.Elastics() {
			line := fmt.Sprintf("%s %s of %s, system %v", addr, one.State, one.Account, one.System)
			if a := one.Association; a != nil {
				line += fmt.Sprintf(" to %s %s, egress %v, declared %q", a.Instance, a.Guest, a.EgressOnly, a.Declared)
			}
			lines = append(lines, line)
		}
		for at, one := range ix.AllApplied() {
			lines = append(lines, fmt.Sprintf("%s has %s in force: %v %s", at.Host, at.Address, one.InForce, one.Error))
		}
		for _, nx := range ix.Networks() {
			lines = append(lines, fmt.Sprintf("network %s is %s", nx.Record().Name, nx.Record().Elastic))
		}
	})
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// sound checks the records.
func (b *bench) sound() {
	b.t.Helper()
	b.consistent()
	if wrong, err := b.Check(b.t.Context()); err != nil || len(wrong) > 0 {
		b.t.Fatalf("berth state check says: %q %v", wrong, err)
	}
}

// cutBench is a bench on which a verb can be cut off.
func cutBench(t *testing.T, v *cutVerb) (b *bench, st func() *storetest.Faulty) {
	b = begin(t)
	var last *storetest.Faulty
	b.before = func(st store.Store) store.Store { last = storetest.NewFaulty(st); return last }
	b.plays(strings.ReplaceAll(v.prepare, "; ", "\n"))
	b.again(false)
	return b, func() *storetest.Faulty { return last }
}

// TestCutOff: the store fails in each transaction of each verb, in each way, and the daemon is restarted. The
// records are then those from before or from after the verb, they do not contradict each other, and a repeated
// verb does the rest.
func TestCutOff(t *testing.T) {
	faults := map[string]storetest.Fault{
		"before": {Before: fmt.Errorf("%w: full", store.ErrNoSpace)},
		"after":  {After: errors.New("broken")},
		"lost":   {Lost: errors.New("broken")},
	}
	drawn := storetest.Drawn(t, 3)
	for _, v := range cutVerbs() {
		b, st := cutBench(t, &v)
		before, updates := b.everything(), 0
		st().Each(func(n int) storetest.Fault { updates = n; return storetest.Fault{} })
		must(b, v.done(b))
		st().Each(nil)
		after := b.everything()
		if before == after || updates == 0 || v.pages != (updates > 1) && v.name == "account rm --force" {
			t.Fatalf("%s: %d transactions change\n%s\nto\n%s", v.name, updates, before, after)
		}
		for at := 1; at <= updates; at++ {
			for name, fault := range faults {
				if !drawn() {
					continue
				}
				t.Run(fmt.Sprintf("%s %s %d of %d", v.name, name, at, updates), func(t *testing.T) {
					cutOff(t, &v, at, fault, before, after)
				})
			}
		}
	}
}

func cutOff(t *testing.T, v *cutVerb, at int, fault storetest.Fault, before, after string) {
	b, st := cutBench(t, v)
	st().Each(func(n int) storetest.Fault {
		if n == at {
			return fault
		}
		return storetest.Fault{}
	})
	if err := v.done(b); err == nil {
		t.Fatal("it does not notice")
	}
	if fault.After == nil {
		b.consistent() // the index was reverted, too
	}
	b.again(false)
	b.sound()
	if got := b.everything(); !v.pages && got != before && got != after {
		t.Fatalf("after the start there is\n%s\nneither\n%s\nnor\n%s", got, before, after)
	}
	for n := range 2 {
		if err := v.done(b); err != nil {
			t.Fatalf("made again (%d): %v", n, err)
		}
		b.sound()
		if got := b.everything(); got != after {
			t.Fatalf("made again (%d) there is\n%s\nand not\n%s", n, got, after)
		}
	}
}
