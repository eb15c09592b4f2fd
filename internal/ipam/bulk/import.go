package bulk

import (
	"context"
	"errors"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// Import checks the plan as a whole, against itself and what is there, and then adds what is not there, in bounded
// transactions, each network as a whole or not at all. A plan that is refused is a *PlanError, and nothing of it is
// written. After any other error what was added stays, but for the new network that was under way: it is removed, at
// once or by the next start of a daemon. Importing the plan again adds the rest.
func (s Importer) Import(ctx context.Context, p ipam.Plan, opt ipam.ImportOptions) (ipam.ImportReport, error) {
	if err := edit.Withdraw(ctx, s.ledger); err != nil {
		return ipam.ImportReport{}, err
	}
	report, err := s.importAlone(ctx, p, opt)
	if err != nil {
		_ = edit.Withdraw(ctx, s.ledger) // where it fails, the next start, or the next import, does it
	}
	return report, err
}

// importAlone refuses to import while another import of this daemon is under way.
func (s Importer) importAlone(ctx context.Context, p ipam.Plan, opt ipam.ImportOptions) (ipam.ImportReport, error) {
	if !s.ledger.StartImport() {
		return ipam.ImportReport{}, ipam.Refuse(ipam.ErrInUse,
			"an import is under way, and the next one can begin when it has ended")
	}
	defer s.ledger.EndImport()
	ck, err := s.check(ctx, &p)
	if err != nil {
		return ipam.ImportReport{}, err
	}
	report := ck.report()
	if opt.DryRun {
		report.DryRun = true
		return report, nil
	}
	steps := ck.steps()
	if len(steps) == 0 {
		report.Networks = nil
		return report, nil
	}
	run := &importRun{ledger: s.ledger, id: ipam.NewID(), steps: steps, progress: opt.Progress}
	run.report.Unchanged = report.Unchanged
	if err := run.begin(ctx, ck.reserves); err != nil {
		return ipam.ImportReport{}, err
	}
	if err := run.all(ctx); err != nil {
		return ipam.ImportReport{}, err
	}
	return run.report, nil
}

// check works out what is to be added, or refuses the plan.
func (s Importer) check(ctx context.Context, p *ipam.Plan) (*importCheck, error) {
	var ck *importCheck
	err := s.ledger.View(ctx, func(tx store.Tx) (err error) {
		ck, err = checkImport(s.ledger, tx, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := ck.Err(); err != nil {
		return nil, err
	}
	return ck, errors.Join(ck.tryElastic(ctx), ck.Err())
}

func (ck *importCheck) report() ipam.ImportReport {
	report := ipam.ImportReport{Unchanged: ck.unchanged}
	for _, d := range ck.networks {
		if n := d.counts(); n.Sum() > 0 {
			report.Added = plus(report.Added, n)
			report.Networks = append(report.Networks, ipam.ImportedNetwork{Name: d.n.Name, New: !d.old, Added: n})
		}
	}
	for i := range ck.elastics {
		report.Added = plus(report.Added, ck.elastics[i].counts())
	}
	return report
}

// importRun is an import that is under way.
type importRun struct {
	ledger   *ledger.Ledger
	id       ipam.ID // in its events
	steps    []step
	done     int // steps
	report   ipam.ImportReport
	progress func(done, total int) // nil: nobody listens
	pace     pace
}

// begin notes the begin of the import. It refuses to reserve for a project that is being deployed since the check.
func (run *importRun) begin(ctx context.Context, reserves []string) error {
	return run.ledger.Update(ctx, func(c *ledger.Change) error {
		if err := unlocked(c, reserves); err != nil {
			return err
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

// some makes as many steps as one transaction may have.
func (run *importRun) some(ctx context.Context) error {
	var did *stepper
	err := run.pace.update(ctx, run.ledger, func(c *ledger.Change, most int) error {
		did = &stepper{Change: c}
		if err := did.some(run.steps[run.done:], run.ledger, most); err != nil {
			return err
		}
		if run.done+did.done < len(run.steps) {
			return nil
		}
		added := plus(run.report.Added, did.added)
		_, err := c.Event(&ipam.Event{Verb: ipam.ImportEnded, Detail: run.id.Short() + " added " + added.String()})
		return err
	})
	if err != nil {
		return err
	}
	run.done += did.done
	run.report.Added = plus(run.report.Added, did.added)
	run.report.Unmade = append(run.report.Unmade, did.unmade...)
	return nil
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
