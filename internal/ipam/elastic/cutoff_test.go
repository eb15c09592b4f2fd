package elastic_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	room "berth/internal/ipam/elastic"
	"berth/internal/ipam/ledger"
	"berth/store"
	"berth/store/storetest"
)

// cutVerb is something that is done to elastic addresses, whose transactions fail each in its turn.
type cutVerb struct {
	name    string
	prepare func(*bench)
	do      func(*bench) error
	pages   bool // it takes several transactions, between which a part of it is done
}

// edits is what makes some edits, and makes them once however often it is asked.
func edits(all ...ipam.Edit) func(*bench) error {
	return func(b *bench) error {
		_, err := b.Edit(b.t.Context(), ipam.EditOptions{Key: "again"}, all...)
		return err
	}
}

// keeps is a keeper that looks at all there is.
func keeps(b *bench) error {
	ctx, cancel := context.WithCancel(b.t.Context())
	kept := b.Kept(ctx)
	defer func() { cancel(); kept.End() }()
	return kept.Round(b.t.Context())
}

// ended looks at what has ended until two minutes have passed.
func ended(b *bench) error {
	r := room.NewReleases(b.Ledger)
	if err := r.Look(b.t.Context()); err != nil {
		return err
	}
	b.passes(2 * time.Minute)
	return r.Look(b.t.Context())
}

// applied is a report that what an edge is told now is in force.
func applied(b *bench) error {
	r := ipam.EdgeReport{Whole: true}
	for _, m := range b.wanted().Set {
		r.Applied = append(r.Applied, ipam.EdgeApplied{Address: m.Elastic, Association: m.Association, Guest: m.Guest})
	}
	return b.ReportEdge(b.t.Context(), r)
}

func must(b *bench, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func cutVerbs() []cutVerb {
	at, other := addr(elastic), addr(next)
	reserved := func(b *bench) {
		b.reserve("web", "10.20.0.9")
		b.reserve("mail", "10.20.0.10")
	}
	associated := func(b *bench) {
		reserved(b)
		b.edit(&ipam.AssociateElastic{Address: at, Instance: "web"})
	}
	inForce := func(b *bench) { associated(b); must(b, applied(b)) }
	released := func(b *bench) {
		inForce(b)
		b.edit(&ipam.DisassociateElastic{Address: at})
		b.edit(&ipam.ReleaseElastic{Address: at})
	}
	crowd := func(b *bench) { b.crowd(2*ledger.PageSize + 10) }
	var r ipam.Range
	_ = r.UnmarshalText([]byte("198.51.100.0/28"))
	auto := "auto"
	onAuto := func(b *bench) {
		b.engine = newEngine()
		b.again(false)
		b.edit(&ipam.AddElasticRange{Range: r, Host: "h1"})
		b.mode("auto")
		b.start("web")
		b.start("job")
	}
	return []cutVerb{
		{"account create", reserved, edits(&ipam.CreateAccount{Account: "shop", Owners: []string{"shop/*"}}), false},
		{"account rm", func(b *bench) { b.edit(&ipam.CreateAccount{Account: "shop"}) },
			edits(&ipam.RemoveAccount{Account: "shop"}), false},
		{"account rm --force", crowd, edits(&ipam.RemoveAccount{Account: "crowd", Force: true}), true},
		{"range add", nil, edits(&ipam.AddElasticRange{Range: r}), false},
		{"range rm", func(b *bench) { b.edit(&ipam.AddElasticRange{Range: r}) },
			edits(&ipam.RemoveElasticRange{Range: r}), false},
		{"allocate", nil, edits(&ipam.AllocateElastic{}), false},
		{"associate", reserved, edits(&ipam.AssociateElastic{Address: at, Instance: "web"}), false},
		{"associate --move", inForce, edits(&ipam.AssociateElastic{Address: at, Instance: "mail", Move: true}), false},
		{"disassociate", inForce, edits(&ipam.DisassociateElastic{Address: at}), false},
		{"release", nil, edits(&ipam.ReleaseElastic{Address: other}), false},
		{"release of what an edge has", func(b *bench) { inForce(b); b.edit(&ipam.DisassociateElastic{Address: at}) },
			edits(&ipam.ReleaseElastic{Address: at}), false},
		{"network modify --elastic", nil, edits(&ipam.ModifyNetwork{Network: "net1", Elastic: &auto}), false},
		{"declared by a project", reserved, edits(&ipam.DeclareElastic{Project: "web", Instance: "web"}), false},
		{"the end of its owner", inForce, edits(&ipam.ReleaseOwner{Owner: "web"}), false},
		{"released on a stop", func(b *bench) {
			b.freeze()
			associated(b)
			b.edit(&ipam.AllocateElastic{Address: at, ReleaseOn: "stop"})
			ip := b.start("web")
			must(b, room.NewReleases(b.Ledger).Look(b.t.Context()))
			b.stop(ip)
		}, ended, false},
		{"an edge's report", associated, applied, false},
		{"an edge's report of an end", released,
			func(b *bench) error { return b.ReportEdge(b.t.Context(), ipam.EdgeReport{Whole: true}) }, false},
		{"system addresses given", onAuto, keeps, true},
		{"one takes the place of a system address", func(b *bench) { onAuto(b); must(b, keeps(b)) },
			edits(&ipam.AssociateElastic{Address: at, Instance: "web"}), false},
		{"system addresses taken", func(b *bench) { onAuto(b); must(b, keeps(b)); b.mode("on") }, keeps, true},
	}
}

// crowd gives an account so many addresses.
func (b *bench) crowd(n int) {
	b.t.Helper()
	b.edit(&ipam.CreateAccount{Account: "crowd"})
	b.edit(&ipam.AddElasticRange{Range: rangeAt(b.t, "198.18.0.0/16")})
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

// everything is what there is of elastic addresses, but for numbers and times.
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

// sound holds what there is to what may be.
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
	if v.prepare != nil {
		v.prepare(b)
	}
	b.again(false)
	return b, func() *storetest.Faulty { return last }
}

// TestCutOff has the store fail in each transaction of each verb, in each way, and starts the daemon again: what there
// is is what was before or what is to be, nothing contradicts itself, and the same once more does what is left.
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
		must(b, v.do(b))
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
	if err := v.do(b); err == nil {
		t.Fatal("it does not notice")
	}
	if fault.After == nil {
		b.consistent() // the index was taken back, too
	}
	b.again(false)
	b.sound()
	if got := b.everything(); !v.pages && got != before && got != after {
		t.Fatalf("after the start there is\n%s\nneither\n%s\nnor\n%s", got, before, after)
	}
	for n := range 2 {
		if err := v.do(b); err != nil {
			t.Fatalf("made again (%d): %v", n, err)
		}
		b.sound()
		if got := b.everything(); got != after {
			t.Fatalf("made again (%d) there is\n%s\nand not\n%s", n, got, after)
		}
	}
}
