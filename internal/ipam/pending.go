package ipam

import (
	"context"
	"errors"
	"iter"
	"net/netip"
)

var errPending = errors.New("not there yet")

func (e *CreateNetwork) apply(*change) (Result, error)     { return Result{}, errPending }
func (e *ModifyNetwork) apply(*change) (Result, error)     { return Result{}, errPending }
func (e *RemoveNetwork) apply(*change) (Result, error)     { return Result{}, errPending }
func (e *AddSubnet) apply(*change) (Result, error)         { return Result{}, errPending }
func (e *ModifySubnet) apply(*change) (Result, error)      { return Result{}, errPending }
func (e *RemoveSubnet) apply(*change) (Result, error)      { return Result{}, errPending }
func (e *AddPool) apply(*change) (Result, error)           { return Result{}, errPending }
func (e *ModifyPool) apply(*change) (Result, error)        { return Result{}, errPending }
func (e *RemovePool) apply(*change) (Result, error)        { return Result{}, errPending }
func (e *AddExclusion) apply(*change) (Result, error)      { return Result{}, errPending }
func (e *RemoveExclusion) apply(*change) (Result, error)   { return Result{}, errPending }
func (e *AddReservation) apply(*change) (Result, error)    { return Result{}, errPending }
func (e *RemoveReservation) apply(*change) (Result, error) { return Result{}, errPending }
func (e *TakeAddress) apply(*change) (Result, error)       { return Result{}, errPending }
func (e *ReleaseAddress) apply(*change) (Result, error)    { return Result{}, errPending }

// Edit makes the edits as one durable change: all of them, or none, with an *EditError that says which was refused where there are
// several.
func (s *Service) Edit(ctx context.Context, opt EditOptions, edits ...Edit) (Outcome, error) {
	return Outcome{}, errPending
}

// NetworkFilter chooses networks. Zero fields choose all.
type NetworkFilter struct {
	Space string
	After string // only those with a greater name
	Limit int    // only so many
}

// Networks lists networks by name, without the maps of their pools.
func (s *Service) Networks(ctx context.Context, f NetworkFilter) ([]NetworkInfo, error) {
	return nil, errPending
}

// Network returns one network, by name or id, with its maps.
func (s *Service) Network(ctx context.Context, ref string) (NetworkInfo, error) {
	return NetworkInfo{}, errPending
}

// AddressFilter chooses reservations and taken addresses. Zero fields choose all. They come by space, subnet and address.
type AddressFilter struct {
	Network    string // name or id
	Owner      string
	AfterSpace string     // with After: only those behind that address of that space
	After      netip.Addr //
	Limit      int
}

// Reservations yields reserved addresses, until an error is yielded, which is the last.
func (s *Service) Reservations(ctx context.Context, f AddressFilter) iter.Seq2[ReservationInfo, error] {
	return func(yield func(ReservationInfo, error) bool) { yield(ReservationInfo{}, errPending) }
}

// Taken yields the addresses that were taken for what is no container, until an error is yielded, which is the last.
func (s *Service) Taken(ctx context.Context, f AddressFilter) iter.Seq2[TakenAddress, error] {
	return func(yield func(TakenAddress, error) bool) { yield(TakenAddress{}, errPending) }
}

// Available lists the lowest addresses that an automatic request in a subnet, by id, could be given, at most limit.
func (s *Service) Available(ctx context.Context, subnet ID, limit int) ([]netip.Addr, error) {
	return nil, errPending
}

// Environment lists the variables that describe the addresses of an owner in a network, KEY=VALUE, in the form of Ganeti's
// hooks (GA-25).
func (s *Service) Environment(ctx context.Context, network, owner string) ([]string, error) {
	return nil, errPending
}

// Export yields the plan network by network, by name, until an error is yielded, which is the last.
func (s *Service) Export(ctx context.Context) iter.Seq2[PlannedNetwork, error] {
	return func(yield func(PlannedNetwork, error) bool) { yield(PlannedNetwork{}, errPending) }
}

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
