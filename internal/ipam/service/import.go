package service

import (
	"context"
	"errors"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/internal/plan/compare"
)

// Import adds to the store what a plan has and the store lacks. It tries the edits in a draft (importdraft.go). Then it
// makes them in bounded transactions; a new network is added completely or not at all. It refuses a plan with a
// *PlanError and writes nothing of it. After any other error it keeps what it added, except for the new network that it
// was adding. That network is removed at once, or when a daemon starts next. A repeated import of the plan adds the
// rest.
func (s *Service) Import(ctx context.Context, p ipam.Plan, opt ipam.ImportOptions) (ipam.ImportReport, error) {
	if err := edit.Withdraw(ctx, s.Ledger); err != nil {
		return ipam.ImportReport{}, err
	}
	report, err := importAlone(ctx, s.Ledger, &p, opt)
	if err != nil {
		_ = edit.Withdraw(ctx, s.Ledger) // if this fails, the next start or the next import does it
	}
	return report, err
}

// importAlone refuses an import while this daemon runs another.
func importAlone(ctx context.Context, l *ledger.Ledger, p *ipam.Plan,
	opt ipam.ImportOptions) (ipam.ImportReport, error) {
	if !l.StartImport() {
		return ipam.ImportReport{}, ipam.Refuse(ipam.ErrInUse,
			"another import is under way; try again when that import has ended")
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

// importStep is the smallest part of an import, with a few writes.
type importStep struct {
	edits  []ipam.Edit // one, or several ranges of a network
	lines  []int       // of each edit in the document
	reveal string      // instead of edits: the network that is complete now
}

// writes returns the approximate number of records that a step writes. The store limits those of a transaction.
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

// importedRanges is the maximum number of pools or exclusions that one step adds. It bounds the step's writes.
const importedRanges = 100

// importSteps returns the edits of a part as steps. If they create a network, the last step makes it visible.
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

// joins reports whether an edit belongs to the step of the others: it adds one more range.
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

// importRun is a running import.
type importRun struct {
	ledger   *ledger.Ledger
	id       ipam.ID // the id in its events
	plan     *ipam.Plan
	steps    []importStep
	done     int // in steps
	report   ipam.ImportReport
	progress func(done, total int) // may be nil
	pace     pace
}

// begin records the start of the import. It refuses reservations for a project whose deploy began after the trial.
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

// all makes the steps in as many transactions as necessary.
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

// some makes as many steps as fit in one transaction. It makes fewer if another request arrives meanwhile.
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

// make makes one step. If an association is refused because its container has no address yet, it records that and goes
// on.
func (run *importRun) make(im *edit.Importing, step *importStep, did *ipam.ImportReport) error {
	if step.reveal != "" {
		return im.Reveal(step.reveal)
	}
	err := im.Apply(step.edits)
	if a, is := step.edits[0].(*ipam.AssociateElastic); is {
		if guest, named := compare.Guest(run.plan, a); named && ipam.CodeOf(err) == ipam.GuestUnclear {
			meant := *a
			// a named guest is bound to the association for ever, so name it only if it is unclear
			meant.Guest = guest
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

// stopped wraps the error that stopped an import, with the number of steps and advice.
func (run *importRun) stopped(err error) error {
	what := err.Error()
	if errors.Is(err, context.Canceled) {
		what = "the import was interrupted"
	}
	return ipam.Refuse(err, "%s; the import stopped after %d of %d steps", what, run.done, len(run.steps)).
		Advise(ipam.DoImportAgain)
}

// counts returns what a step adds.
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
