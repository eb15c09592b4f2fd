package edit

import (
	"context"
	"errors"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// Import tries the plan as a whole in a draft of what is there (importdraft.go), and then adds what is not there, in
// bounded transactions, each network as a whole or not at all. A plan that is refused is a *PlanError, and nothing of
// it is written. After any other error what was added stays, but for the new network that was under way: it is
// removed, at once or by the next start of a daemon. Importing the plan again adds the rest.
func (s Editor) Import(ctx context.Context, p ipam.Plan, opt ipam.ImportOptions) (ipam.ImportReport, error) {
	if err := Withdraw(ctx, s.ledger); err != nil {
		return ipam.ImportReport{}, err
	}
	report, err := s.importAlone(ctx, p, opt)
	if err != nil {
		_ = Withdraw(ctx, s.ledger) // where it fails, the next start, or the next import, does it
	}
	return report, err
}

// importAlone refuses to import while another import of this daemon is under way.
func (s Editor) importAlone(ctx context.Context, p ipam.Plan, opt ipam.ImportOptions) (ipam.ImportReport, error) {
	if !s.ledger.StartImport() {
		return ipam.ImportReport{}, ipam.Refuse(ipam.ErrInUse,
			"an import is under way, and the next one can begin when it has ended")
	}
	defer s.ledger.EndImport()
	d, err := s.try(ctx, &p)
	if err != nil {
		return ipam.ImportReport{}, err
	}
	if opt.DryRun {
		return d.report(), nil
	}
	run := &importRun{ledger: s.ledger, id: ipam.NewID(), steps: d.steps(), progress: opt.Progress}
	run.report.Unchanged = d.unchanged
	if len(run.steps) == 0 {
		return run.report, nil
	}
	if err := run.begin(ctx, d.reserves); err != nil {
		return ipam.ImportReport{}, err
	}
	if err := run.all(ctx); err != nil {
		return ipam.ImportReport{}, err
	}
	return run.report, nil
}

// try works out what is to be added, or refuses the plan.
func (s Editor) try(ctx context.Context, p *ipam.Plan) (*importDraft, error) {
	d := newImportDraft(s.ledger)
	err := s.ledger.View(ctx, func(tx store.Tx) error { return d.plan(ctx, tx, p) })
	if err != nil {
		return nil, err
	}
	if p.Elastic != nil {
		err = d.tryElastic(ctx, p.Elastic)
	}
	return d, errors.Join(err, d.Err())
}

// importStep is the smallest part of an import, of a few writes. It makes what the plan says, answers what it has
// added, nothing where that is there, and refuses what contradicts what there is.
type importStep struct {
	network ipam.ID
	subnet  ipam.ID // zero: it is of the network as a whole
	line    int
	writes  int // about how many records it writes; the store bounds those of a transaction
	make    func(*stepper) (ipam.Counts, error)
}

// stepper makes the steps of an import inside a transaction. It holds on to the network and the subnet of the last one.
type stepper struct {
	*ledger.Change
	draft *importDraft // the steps are tried; nil: they are made
	p     *Plan
	sub   *ipam.Subnet

	done   int // steps
	added  ipam.Counts
	unmade []ipam.PlanProblem // associations that were refused
}

// apply makes a step. What is no longer as it was when the plan was tried is refused.
func (s *stepper) apply(st *importStep) (ipam.Counts, error) {
	if st.network != (ipam.ID{}) {
		if err := s.open(st); err != nil {
			return ipam.Counts{}, err
		}
	}
	return st.make(s)
}

// open reads the network and the subnet of a step.
func (s *stepper) open(st *importStep) error {
	if s.p == nil || s.p.N.ID != st.network {
		n, err := s.ReadNetwork(st.network)
		switch {
		case err != nil:
			return err
		case n == nil || n.Stage == ipam.Leaving:
			return ipam.Refuse(ipam.ErrNotFound, "network %s, to which it adds, was removed meanwhile", st.network)
		case n.Stage == ipam.Moving:
			return ledger.BeingCopied(n)
		}
		s.p, s.sub = PlanOf(s.Change, n), nil
	}
	if st.subnet == (ipam.ID{}) || s.sub != nil && s.sub.ID == st.subnet {
		return nil
	}
	sx := s.Index().Subnet(st.subnet)
	if sx == nil {
		return ipam.Refuse(ipam.ErrNotFound, "a subnet of network %s, to which it adds, was removed meanwhile",
			s.p.Called())
	}
	var err error
	s.sub, err = s.ReadSubnet(sx.Record())
	return err
}

// some makes steps until they have made so many writes, or somebody else asks meanwhile.
func (s *stepper) some(steps []importStep, of *ledger.Ledger, most int) error {
	asked := of.Asked()
	writes := 0
	for i := range steps {
		if writes >= most || writes >= fewWrites && of.Asked() != asked {
			return nil
		}
		added, err := s.apply(&steps[i])
		if err != nil {
			return err
		}
		s.done++
		s.added = plus(s.added, added)
		writes += steps[i].writes
	}
	return nil
}

// importRun is an import that is under way.
type importRun struct {
	ledger   *ledger.Ledger
	id       ipam.ID // in its events
	steps    []importStep
	done     int // steps
	report   ipam.ImportReport
	progress func(done, total int) // nil: nobody listens
	pace     pace
}

// begin notes the begin of the import. It refuses to reserve for a project that is being deployed since it was tried.
func (run *importRun) begin(ctx context.Context, reserves []string) error {
	return run.ledger.Update(ctx, func(c *ledger.Change) error {
		locks, err := DeployLocks(c.Tx(), c.Now())
		if err != nil {
			return err
		}
		for _, owner := range reserves {
			if err := lockedFor(locks, owner); err != nil {
				return err
			}
		}
		_, err = c.Event(&ipam.Event{Verb: ipam.ImportBegun, Detail: run.id.Short()})
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

// plus is the sum of both.
func plus(n, m ipam.Counts) ipam.Counts {
	return ipam.Counts{Networks: n.Networks + m.Networks, Subnets: n.Subnets + m.Subnets, Pools: n.Pools + m.Pools,
		Exclusions: n.Exclusions + m.Exclusions, Reservations: n.Reservations + m.Reservations,
		Addresses: n.Addresses + m.Addresses, Accounts: n.Accounts + m.Accounts, Ranges: n.Ranges + m.Ranges,
		Elastic: n.Elastic + m.Elastic, Associations: n.Associations + m.Associations}
}
