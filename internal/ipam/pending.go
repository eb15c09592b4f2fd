package ipam

import (
	"context"
	"errors"
)

var errPending = errors.New("not there yet")

// ImportOptions say how a plan is imported.
type ImportOptions struct {
	DryRun   bool
	Progress func(done, total int) // called now and then; may be nil
}

// Import checks the plan as a whole, against itself and what is there, and then writes it network by network in
// bounded transactions. A plan that is refused is a *PlanError, and nothing of it is written.
func (s *Service) Import(ctx context.Context, p Plan, opt ImportOptions) (ImportReport, error) {
	return ImportReport{}, errPending
}

// ImportState returns the import that is under way or was cut off; nil where there is none.
func (s *Service) ImportState(ctx context.Context) (*ImportState, error) { return nil, errPending }

// ResumeImport writes the rest of an import that was cut off.
func (s *Service) ResumeImport(ctx context.Context, progress func(done, total int)) (ImportReport, error) {
	return ImportReport{}, errPending
}

// UndoImport takes back what an import that was cut off has written.
func (s *Service) UndoImport(ctx context.Context, progress func(done, total int)) (ImportReport, error) {
	return ImportReport{}, errPending
}
