package bulk

import (
	"context"
	"encoding/json"
	"errors"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/view"
	"berth/store"
)

// Import checks the plan as a whole, against itself and what is there, and then adds what is not there, in bounded
// transactions, each network as a whole or not at all. A plan that is refused is a *PlanError, and nothing of it is
// written. After any other error the import is open: ImportState tells of it, and ResumeImport or UndoImport ends it.
func (s Importer) Import(ctx context.Context, p ipam.Plan, opt ipam.ImportOptions) (ipam.ImportReport, error) {
	leave, err := EnterImport(ctx, s.ledger)
	if err != nil {
		return ipam.ImportReport{}, err
	}
	defer leave()
	var ck *importCheck
	err = s.ledger.View(ctx, func(tx store.Tx) error {
		head, err := ReadHead(tx)
		if err != nil {
			return err
		}
		if head != nil {
			return head.openError()
		}
		ck, err = checkImport(s.ledger, tx, &p)
		return err
	})
	if err != nil {
		return ipam.ImportReport{}, err
	}
	if err := ck.Err(); err != nil {
		return ipam.ImportReport{}, err
	}
	if err := errors.Join(ck.tryElastic(ctx), ck.Err()); err != nil {
		return ipam.ImportReport{}, err
	}
	report := ck.report()
	if opt.DryRun {
		report.DryRun = true
		return report, nil
	}
	report.Networks = nil
	steps, err := ck.steps()
	if err != nil {
		return report, err
	}
	if len(steps) == 0 {
		return report, nil
	}
	var at Pace
	if err := beginImport(ctx, s.ledger, &importHead{Unchanged: report.Unchanged}, steps, ck.reserves, &at); err != nil {
		return ipam.ImportReport{}, err
	}
	return runImport(ctx, s.ledger, opt.Progress, &at)
}

func (h *importHead) openError() error {
	by := ""
	if h.Actor != "" {
		by = " by " + h.Actor
	}
	if h.Undoing {
		return ipam.Help(ipam.Refuse(ipam.ErrInUse, "an import%s of %s is being taken back", by,
			h.Began.Format("2006-01-02 15:04:05 MST")), ipam.Advise(ipam.DoUndoImport))
	}
	return ipam.Help(ipam.Refuse(ipam.ErrInUse, "an import%s of %s was cut off after %d of %d steps",
		by, h.Began.Format("2006-01-02 15:04:05 MST"), h.Done, h.Total), ipam.Advise(ipam.DoResumeImport))
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

// ImportState returns the import that is under way or was cut off; nil where there is none.
func (s Importer) ImportState(ctx context.Context) (state *ipam.ImportState, err error) {
	err = s.ledger.View(ctx, func(tx store.Tx) error {
		head, err := ReadHead(tx)
		if err != nil {
			return err
		}
		if head == nil {
			return nil
		}
		state = &ipam.ImportState{ID: head.ID, Actor: head.Actor, Began: head.Began, Done: head.Done, Total: head.Total,
			Undoing: head.Undoing, Running: s.ledger.Importing()}
		if s.ledger.Member() != nil && !state.Running {
			if state.Running, err = importsElsewhere(s.ledger, tx); err != nil {
				return err
			}
		}
		state.Network, err = importedNetwork(s.ledger, tx, *head)
		return err
	})
	return state, err
}

// importedNetwork names the network that an import is in.
func importedNetwork(s *ledger.Ledger, tx store.Tx, head importHead) (string, error) {
	move := (*JournalReader).next
	if head.Undoing {
		move = (*JournalReader).previous
	}
	st, err := move(&JournalReader{}, tx, &head)
	if err != nil {
		return "", err
	}
	if st == nil || st.op == stepElastic {
		return "", nil
	}
	n, err := view.ViewNetwork(s, tx, st.network)
	switch {
	case err != nil:
		return "", err
	case n != nil:
		return n.Name, nil
	case st.op == stepNetwork:
		n = new(ipam.Network)
		err = json.Unmarshal(st.body, n)
		return n.Name, err
	}
	return st.network.String(), nil
}

// ResumeImport does the rest of an import that was cut off.
func (s Importer) ResumeImport(ctx context.Context, progress func(done, total int)) (ipam.ImportReport, error) {
	leave, err := EnterImport(ctx, s.ledger)
	if err != nil {
		return ipam.ImportReport{}, err
	}
	defer leave()
	if err := openImport(ctx, s.ledger, func(head *importHead) error {
		if head.Undoing {
			return head.openError()
		}
		return nil
	}); err != nil {
		return ipam.ImportReport{}, err
	}
	return runImport(ctx, s.ledger, progress, new(Pace))
}

// UndoImport takes back what an import that was cut off has added, the last first. Where somebody uses something of it
// meanwhile it stops there, with an error that names it, and can be called again.
func (s Importer) UndoImport(ctx context.Context, progress func(done, total int)) (ipam.ImportReport, error) {
	leave, err := EnterImport(ctx, s.ledger)
	if err != nil {
		return ipam.ImportReport{}, err
	}
	defer leave()
	if err := openImport(ctx, s.ledger, func(head *importHead) error {
		head.Undoing = true
		return nil
	}); err != nil {
		return ipam.ImportReport{}, err
	}
	return runImport(ctx, s.ledger, progress, new(Pace))
}

// openImport opens the import that was cut off.
func openImport(ctx context.Context, s *ledger.Ledger, enter func(*importHead) error) error {
	return s.Update(ctx, func(c *ledger.Change) error {
		head, err := ReadHead(c.Tx())
		switch {
		case err != nil:
			return err
		case head == nil:
			return ipam.Refuse(ipam.ErrNotFound,
				"no import was cut off; there is nothing to finish, and nothing to take back")
		}
		was := head.Undoing
		if err := enter(head); err != nil {
			return err
		} else if head.Undoing == was {
			return nil
		}
		return putHead(c, head)
	})
}

// runImport makes steps, or takes them back, until there are no more.
func runImport(ctx context.Context, s *ledger.Ledger, progress func(done, total int),
	at *Pace) (ipam.ImportReport, error) {
	var reader JournalReader
	var first *importHead
	for {
		part, err := importSome(ctx, s, &reader, at)
		if err == nil {
			err = edit.SweepOrphans(ctx, s)
		}
		if err != nil {
			return ipam.ImportReport{}, importStopped(ctx, s, err)
		}
		if first == nil {
			first = part.before
		}
		if progress != nil {
			progress(part.Done, part.Total)
		}
		if part.ended {
			return part.report(first), SweepJournal(ctx, s, at)
		}
	}
}

// importPart is what one transaction of an import came to.
type importPart struct {
	importHead
	before *importHead
	ended  bool
}

func (p *importPart) report(first *importHead) ipam.ImportReport {
	if p.Undoing {
		return ipam.ImportReport{Undone: true, Added: first.Added}
	}
	return ipam.ImportReport{Added: p.Added, Unchanged: p.Unchanged, Unmade: p.Unmade}
}

// importSome makes as many steps as one transaction may have.
func importSome(ctx context.Context, s *ledger.Ledger, reader *JournalReader, at *Pace) (part importPart,
	err error) {
	err = paced(ctx, s, at, func(c *ledger.Change, most int) error {
		head, err := ReadHead(c.Tx())
		if err != nil {
			return err
		}
		if head == nil {
			return errors.New("the import ended meanwhile")
		}
		before := *head
		part = importPart{before: &before}
		st := &stepper{Change: c}
		if err := makeSteps(s, st, head, reader, most); err != nil {
			return err
		}
		head.Unmade = append(head.Unmade, st.unmade...)
		part.importHead = *head
		if part.ended = head.over(); part.ended {
			return endImport(c, head)
		}
		return putHead(c, head)
	})
	return part, err
}

// over tells whether nothing is left to be done, or to be taken back.
func (h *importHead) over() bool { return h.Undoing && h.Done == 0 || !h.Undoing && h.Done == h.Total }

// makeSteps makes steps until they have made so many writes, or somebody else asks meanwhile.
func makeSteps(s *ledger.Ledger, st *stepper, head *importHead, reader *JournalReader, most int) error {
	asked := s.Asked()
	for writes := 0; !head.over(); {
		if writes >= most || writes >= fewWrites && s.Asked() != asked {
			return nil
		}
		var done ipam.Counts
		var one *step
		var err error
		if head.Undoing {
			if one, err = reader.previous(st.Tx(), head); err == nil {
				done, err = st.revert(one)
			}
			head.Added = minus(head.Added, done)
		} else {
			if one, err = reader.next(st.Tx(), head); err == nil {
				done, err = st.apply(one)
			}
			head.Added = plus(head.Added, done)
		}
		if err != nil {
			return err
		}
		writes += one.writes()
	}
	return nil
}

func minus(n ipam.Counts, m ipam.Counts) ipam.Counts {
	return ipam.Counts{Networks: n.Networks - m.Networks, Subnets: n.Subnets - m.Subnets, Pools: n.Pools - m.Pools,
		Exclusions:   n.Exclusions - m.Exclusions,
		Reservations: n.Reservations - m.Reservations, Addresses: n.Addresses - m.Addresses,
		Accounts: n.Accounts - m.Accounts, Ranges: n.Ranges - m.Ranges, Elastic: n.Elastic - m.Elastic,
		Associations: n.Associations - m.Associations}
}

// importStopped says what to do about an import that an error has stopped.
func importStopped(ctx context.Context, s *ledger.Ledger, err error) error {
	state, stateErr := Of(s).ImportState(context.WithoutCancel(ctx))
	if stateErr != nil || state == nil {
		return err
	}
	what := err.Error()
	if errors.Is(err, context.Canceled) {
		what = "it was interrupted"
	}
	if state.Undoing {
		return ipam.Help(ipam.Refuse(err, "%s; the import is taken back down to step %d of %d", what, state.Done,
			state.Total),
			ipam.Advise(ipam.DoUndoImport))
	}
	return ipam.Help(ipam.Refuse(err, "%s; the import stopped after %d of %d steps", what, state.Done, state.Total),
		ipam.Advise(ipam.DoResumeImport))
}
