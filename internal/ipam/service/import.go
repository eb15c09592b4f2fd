package service

import (
	"context"
	"errors"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/internal/plan/compare"
)

// Import adds what a plan has and the store lacks. It tries the edits that come of it in a draft (importdraft.go), and
// then makes them in bounded transactions, each new network as a whole or not at all. A plan that is refused is a
// *PlanError, and nothing of it is written. After any other error what was added stays, but for the new network that
// was under way: it is removed, at once or by the next start of a daemon. Importing the plan again adds the rest.
func (s *Service) Import(ctx context.Context, p ipam.Plan, opt ipam.ImportOptions) (ipam.ImportReport, error) {
	if err := edit.Withdraw(ctx, s.Ledger); err != nil {
		return ipam.ImportReport{}, err
	}
	report, err := importAlone(ctx, s.Ledger, &p, opt)
	if err != nil {
		_ = edit.Withdraw(ctx, s.Ledger) // where it fails, the next start, or the next import, does it
	}
	return report, err
}

// importAlone refuses to import while another import of this daemon is under way.
func importAlone(ctx context.Context, l *ledger.Ledger, p *ipam.Plan,
	opt ipam.ImportOptions) (ipam.ImportReport, error) {
	if !l.StartImport() {
		return ipam.ImportReport{}, ipam.Refuse(ipam.ErrInUse,
			"an import is under way, and the next one can begin when it has ended")
	}
	defer l.EndImport()
	tried, err := tryImport(ctx, l, p)
	if err != nil {
		return ipam.ImportReport{}, err
	}
	if opt.DryRun {
		return tried.report, nil
	}
	run := &importRun{ledger: l, id: ipam.NewID(), plan: p, steps: tried.steps, progress: opt.Progress}
	run.report.Unchanged = tried.report.Unchanged
	if len(run.steps) == 0 {
		return run.report, nil
	}
	if err := run.begin(ctx); err != nil {
		return ipam.ImportReport{}, err
	}
	if err := run.all(ctx); err != nil {
		return ipam.ImportReport{}, err
	}
	return run.report, nil
}

// importStep is the smallest part of an import, of a few writes.
type importStep struct {
	edits  []ipam.Edit // one, or ranges of a network
	lines  []int       // of each
	reveal string      // instead: the network that is whole now
}

// writes is about how many records a step writes; the store bounds those of a transaction.
func (st *importStep) writes() int {
	if st.reveal != "" {
		return 2
	}
	switch st.edits[0].(type) {
	case *ipam.AddReservation, *ipam.TakeAddress:
		return 3
	}
	return 9 + len(st.edits)
}

// importedRanges is how many pools or exclusions one step adds, so that its writes are bounded.
const importedRanges = 100

// importSteps are the edits of a part as steps. A network that they make is seen behind the last one.
func importSteps(part []compare.Edit) (all []importStep) {
	made := ""
	for _, e := range part {
		if c, is := e.Edit.(*ipam.CreateNetwork); is {
			made = c.Name
		}
		if n := len(all); n > 0 && joins(all[n-1].edits, e.Edit) {
			last := &all[n-1]
			last.edits, last.lines = append(last.edits, e.Edit), append(last.lines, e.Line)
			continue
		}
		all = append(all, importStep{edits: []ipam.Edit{e.Edit}, lines: []int{e.Line}})
	}
	if made != "" {
		all = append(all, importStep{reveal: made})
	}
	return all
}

// joins tells whether an edit is made together with others: one more range.
func joins(others []ipam.Edit, e ipam.Edit) bool {
	if len(others) == importedRanges || e.Op() != others[0].Op() {
		return false
	}
	switch e.(type) {
	case *ipam.AddPool, *ipam.AddExclusion:
		return true
	}
	return false
}

// importRun is an import that is under way.
type importRun struct {
	ledger   *ledger.Ledger
	id       ipam.ID // in its events
	plan     *ipam.Plan
	steps    []importStep
	done     int // steps
	report   ipam.ImportReport
	progress func(done, total int) // nil: nobody listens
	pace     pace
}

// begin notes the begin of the import. It refuses to reserve for a project that is being deployed since it was tried.
func (run *importRun) begin(ctx context.Context) error {
	return run.ledger.Update(ctx, func(c *ledger.Change) error {
		im := new(edit.Importing)
		im.Begin(c)
		for i := range run.steps {
			if err := im.Unlocked(run.steps[i].edits...); err != nil {
				return err
			}
		}
		_, err := c.Event(&ipam.Event{Verb: ipam.ImportBegun, Detail: run.id.Short()})
		return err
	})
}

// all makes the steps, in as many transactions as it takes.
func (run *importRun) all(ctx context.Context) error {
	for run.done < len(run.steps) {
		if err := run.some(ctx); err != nil {
			return run.stopped(err)
		}
		if run.progress != nil {
			run.progress(run.done, len(run.steps))
		}
	}
	return nil
}

// some makes as many steps as one transaction may have, fewer where somebody else asks meanwhile.
func (run *importRun) some(ctx context.Context) error {
	var done int
	var did ipam.ImportReport
	err := run.pace.update(ctx, run.ledger, func(c *ledger.Change, most int) error {
		asked, writes := run.ledger.Asked(), 0
		done, did = run.done, run.report
		im := new(edit.Importing)
		im.Begin(c)
		for ; done < len(run.steps) && writes < most && (writes < fewWrites || run.ledger.Asked() == asked); done++ {
			step := &run.steps[done]
			if err := run.make(im, step, &did); err != nil {
				return err
			}
			writes += step.writes()
		}
		if done < len(run.steps) {
			return nil
		}
		_, err := c.Event(&ipam.Event{Verb: ipam.ImportEnded, Detail: run.id.Short() + " added " + did.Added.String()})
		return err
	})
	if err != nil {
		return err
	}
	run.done, run.report = done, did
	return nil
}

// make makes a step. An association that is refused, because its container has no address yet for one, is noted, and
// the import goes on.
func (run *importRun) make(im *edit.Importing, step *importStep, did *ipam.ImportReport) error {
	if step.reveal != "" {
		return im.Reveal(step.reveal)
	}
	err := im.Apply(step.edits)
	if a, is := step.edits[0].(*ipam.AssociateElastic); is {
		if guest, named := compare.Guest(run.plan, a); named && ipam.CodeOf(err) == ipam.GuestUnclear {
			meant := *a
			meant.Guest = guest // only where it is unclear: one that is named is meant for ever
			err = im.Apply([]ipam.Edit{&meant})
		}
		if refused, is := ipam.RefusedOf(0, err); is {
			did.Unmade = append(did.Unmade[:len(did.Unmade):len(did.Unmade)],
				ipam.PlanProblem{Line: step.lines[0], Text: refused.Detail, Advice: refused.Advice})
			return nil
		}
	}
	did.Added = did.Added.Plus(step.counts(), 1)
	return err
}

// stopped says what to do about an import that an error has stopped.
func (run *importRun) stopped(err error) error {
	what := err.Error()
	if errors.Is(err, context.Canceled) {
		what = "it was interrupted"
	}
	return ipam.Help(ipam.Refuse(err, "%s; the import stopped after %d of %d steps", what, run.done, len(run.steps)),
		ipam.Advise(ipam.DoImportAgain))
}

// counts says what a step adds.
func (st *importStep) counts() (n ipam.Counts) {
	for _, e := range st.edits {
		switch e.(type) {
		case *ipam.CreateNetwork:
			n.Networks++
		case *ipam.AddSubnet:
			n.Subnets++
		case *ipam.AddPool:
			n.Pools++
		case *ipam.AddExclusion:
			n.Exclusions++
		case *ipam.AddReservation:
			n.Reservations++
		case *ipam.TakeAddress:
			n.Addresses++
		case *ipam.CreateAccount:
			n.Accounts++
		case *ipam.AddElasticRange:
			n.Ranges++
		case *ipam.AllocateElastic:
			n.Elastic++
		case *ipam.AssociateElastic:
			n.Associations++
		}
	}
	return n
}
