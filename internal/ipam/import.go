package ipam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"berth/store"
)

// ImportOptions say how a plan is imported.
type ImportOptions struct {
	DryRun   bool
	Progress func(done, total int) // called after each transaction; may be nil
}

// Import checks the plan as a whole, against itself and what is there, and then adds what is not there, in bounded
// transactions, each network as a whole or not at all. A plan that is refused is a *PlanError, and nothing of it is written.
// After any other error the import is open: ImportState tells of it, and ResumeImport or UndoImport ends it.
func (s *Service) Import(ctx context.Context, p Plan, opt ImportOptions) (ImportReport, error) {
	leave, err := s.enterImport(ctx)
	if err != nil {
		return ImportReport{}, err
	}
	defer leave()
	var ck *importCheck
	err = s.store.View(ctx, func(tx store.Tx) error {
		head, err := readHead(tx)
		if err != nil {
			return err
		}
		if head != nil {
			return head.openError()
		}
		ck, err = s.checkImport(tx, &p)
		return err
	})
	if err != nil {
		return ImportReport{}, err
	}
	if err := ck.Err(); err != nil {
		return ImportReport{}, err
	}
	report := ck.report()
	if opt.DryRun {
		report.DryRun = true
		return report, nil
	}
	report.Networks = nil
	steps, err := ck.steps()
	if err != nil || len(steps) == 0 {
		return report, err
	}
	var at pace
	if err := s.beginImport(ctx, &importHead{Unchanged: report.Unchanged}, steps, &at); err != nil {
		return ImportReport{}, err
	}
	return s.runImport(ctx, opt.Progress, &at)
}

func (h *importHead) openError() error {
	by := ""
	if h.Actor != "" {
		by = " by " + h.Actor
	}
	if h.Undoing {
		return &refusal{ErrInUse, fmt.Sprintf("an import%s of %s is being taken back; go on with `berth import --undo` first", by, h.Began.Format("2006-01-02 15:04:05 MST"))}
	}
	return &refusal{ErrInUse, fmt.Sprintf("an import%s of %s was cut off after %d of %d steps; finish it with `berth import --resume`, or take it back with `berth import --undo`, first",
		by, h.Began.Format("2006-01-02 15:04:05 MST"), h.Done, h.Total)}
}

func (ck *importCheck) report() ImportReport {
	report := ImportReport{Unchanged: ck.unchanged}
	for _, d := range ck.networks {
		if n := d.counts(); n.Sum() > 0 {
			report.Added = report.Added.plus(n)
			report.Networks = append(report.Networks, ImportedNetwork{d.n.Name, !d.old, n})
		}
	}
	return report
}

// ImportState returns the import that is under way or was cut off; nil where there is none.
func (s *Service) ImportState(ctx context.Context) (state *ImportState, err error) {
	err = s.store.View(ctx, func(tx store.Tx) error {
		head, err := readHead(tx)
		if err != nil || head == nil {
			return err
		}
		state = &ImportState{ID: head.ID, Actor: head.Actor, Began: head.Began, Done: head.Done, Total: head.Total,
			Undoing: head.Undoing, Running: s.imports.running.Load()}
		if s.member != nil && !state.Running {
			if state.Running, err = s.importsElsewhere(tx); err != nil {
				return err
			}
		}
		state.Network, err = s.importedNetwork(tx, *head)
		return err
	})
	return state, err
}

// importedNetwork names the network that an import is in.
func (s *Service) importedNetwork(tx store.Tx, head importHead) (string, error) {
	move := (*journalReader).next
	if head.Undoing {
		move = (*journalReader).previous
	}
	st, err := move(&journalReader{}, tx, &head)
	if err != nil || st == nil {
		return "", err
	}
	n, err := s.viewNetwork(tx, st.network)
	switch {
	case err != nil:
		return "", err
	case n != nil:
		return n.Name, nil
	case st.op == stepNetwork:
		n = new(Network)
		err = json.Unmarshal(st.body, n)
		return n.Name, err
	}
	return st.network.String(), nil
}

// ResumeImport does the rest of an import that was cut off.
func (s *Service) ResumeImport(ctx context.Context, progress func(done, total int)) (ImportReport, error) {
	leave, err := s.enterImport(ctx)
	if err != nil {
		return ImportReport{}, err
	}
	defer leave()
	if err := s.openImport(ctx, func(head *importHead) error {
		if head.Undoing {
			return head.openError()
		}
		return nil
	}); err != nil {
		return ImportReport{}, err
	}
	return s.runImport(ctx, progress, new(pace))
}

// UndoImport takes back what an import that was cut off has added, the last first. Where somebody uses something of it
// meanwhile it stops there, with an error that names it, and can be called again.
func (s *Service) UndoImport(ctx context.Context, progress func(done, total int)) (ImportReport, error) {
	leave, err := s.enterImport(ctx)
	if err != nil {
		return ImportReport{}, err
	}
	defer leave()
	if err := s.openImport(ctx, func(head *importHead) error {
		head.Undoing = true
		return nil
	}); err != nil {
		return ImportReport{}, err
	}
	return s.runImport(ctx, progress, new(pace))
}

// openImport opens the import that was cut off.
func (s *Service) openImport(ctx context.Context, enter func(*importHead) error) error {
	return s.update(ctx, func(c *change) error {
		head, err := readHead(c.tx)
		switch {
		case err != nil:
			return err
		case head == nil:
			return &refusal{ErrNotFound, "no import was cut off; there is nothing to finish, and nothing to take back"}
		}
		was := head.Undoing
		if err := enter(head); err != nil || head.Undoing == was {
			return err
		}
		return c.putHead(head)
	})
}

// runImport makes steps, or takes them back, until there are no more.
func (s *Service) runImport(ctx context.Context, progress func(done, total int), at *pace) (ImportReport, error) {
	var reader journalReader
	var first *importHead
	for {
		part, did, err := s.importSome(ctx, &reader, at)
		for _, gone := range did.swept {
			if err == nil {
				err = s.sweep(ctx, gone)
			}
		}
		if err != nil {
			return ImportReport{}, s.importStopped(ctx, err)
		}
		if first == nil {
			first = part.before
		}
		if progress != nil {
			progress(part.Done, part.Total)
		}
		if part.ended {
			return part.report(first), s.sweepJournal(ctx, at)
		}
	}
}

// importPart is what one transaction of an import came to.
type importPart struct {
	importHead
	before *importHead
	ended  bool
}

func (p *importPart) report(first *importHead) ImportReport {
	if p.Undoing {
		return ImportReport{Undone: true, Added: first.Added}
	}
	return ImportReport{Added: p.Added, Unchanged: p.Unchanged}
}

// importSome makes as many steps as one transaction may have.
func (s *Service) importSome(ctx context.Context, reader *journalReader, at *pace) (part importPart, did editing, err error) {
	err = s.paced(ctx, at, func(c *change, most int) error {
		head, err := readHead(c.tx)
		if err != nil {
			return err
		}
		if head == nil {
			return errors.New("the import ended meanwhile")
		}
		before := *head
		part = importPart{before: &before}
		if err := s.makeSteps(&stepper{change: c}, head, reader, most); err != nil {
			return err
		}
		part.importHead, did = *head, c.edit
		if part.ended = head.over(); part.ended {
			return c.endImport(head)
		}
		return c.putHead(head)
	})
	return part, did, err
}

// over tells whether nothing is left to be done, or to be taken back.
func (h *importHead) over() bool { return h.Undoing && h.Done == 0 || !h.Undoing && h.Done == h.Total }

// makeSteps makes steps until they have made so many writes, or somebody else asks meanwhile.
func (s *Service) makeSteps(st *stepper, head *importHead, reader *journalReader, most int) error {
	asked := s.imports.asked.Load()
	for writes := 0; !head.over(); {
		if writes >= most || writes >= fewWrites && s.imports.asked.Load() != asked {
			return nil
		}
		var done Counts
		var one *step
		var err error
		if head.Undoing {
			if one, err = reader.previous(st.tx, head); err == nil {
				done, err = st.revert(one)
			}
			head.Added = head.Added.minus(done)
		} else {
			if one, err = reader.next(st.tx, head); err == nil {
				done, err = st.apply(one)
			}
			head.Added = head.Added.plus(done)
		}
		if err != nil {
			return err
		}
		writes += one.writes()
	}
	return nil
}

func (n Counts) minus(m Counts) Counts {
	return Counts{n.Networks - m.Networks, n.Subnets - m.Subnets, n.Pools - m.Pools, n.Exclusions - m.Exclusions,
		n.Reservations - m.Reservations, n.Addresses - m.Addresses}
}

// importStopped says what to do about an import that an error has stopped.
func (s *Service) importStopped(ctx context.Context, err error) error {
	state, stateErr := s.ImportState(context.WithoutCancel(ctx))
	if stateErr != nil || state == nil {
		return err
	}
	what := err.Error()
	if errors.Is(err, context.Canceled) {
		what = "it was interrupted"
	}
	if state.Undoing {
		return &refusal{err, fmt.Sprintf("%s; the import is taken back down to step %d of %d: go on with `berth import --undo`", what, state.Done, state.Total)}
	}
	return &refusal{err, fmt.Sprintf("%s; the import stopped after %d of %d steps: finish it with `berth import --resume`, or take it back with `berth import --undo`", what, state.Done, state.Total)}
}
