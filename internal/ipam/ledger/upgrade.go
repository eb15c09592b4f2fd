package ledger

import (
	"context"
	"fmt"
	"strconv"

	"berth/internal/ipam"
	"berth/store"
)

// Upgrades are the steps between formats: the key is the format from which a step leads to the next one. All steps that
// a state needs run in one transaction, so that together they write at most store.MaxWrites records. A kind of which
// there may be more keeps its old coding: its decoder reads both (docs/dev/design.md).
type Upgrades map[int]func(store.Tx) error

// upgrades are the steps of this version. There are none, because 4 is the first format that was released.
func upgrades() Upgrades { return nil }

// from returns the steps that lead from a format to today's, in order; ok is false if there are not all of them.
func (u Upgrades) from(format int) (steps []func(store.Tx) error, ok bool) {
	for ; format < stateFormat; format++ {
		step := u[format]
		if step == nil {
			return nil, false
		}
		steps = append(steps, step)
	}
	return steps, format == stateFormat
}

// Upgrading is what opens a state of an older format. The zero value refuses such a state.
type Upgrading struct {
	Steps Upgrades // default: those of this version

	// Backup writes a backup of the state, which has the format given, and returns its path. The state is upgraded only
	// after Backup has succeeded.
	Backup func(ctx context.Context, format int) (path string, err error)
	// Done runs after the commit of an upgrade; nil: nothing runs.
	Done func(from, to int, backup string)
}

// upgrade brings a state of an older format to today's: first a backup, then all steps in one transaction.
func (s *Ledger) upgrade(ctx context.Context, format int) error {
	steps, ok := s.upgrading.Steps.from(format)
	if !ok || s.upgrading.Backup == nil {
		return refuseFormat(format)
	}
	backup, err := s.upgrading.Backup(ctx, format)
	if err != nil {
		return fmt.Errorf("the state has the format %d and is not upgraded to %d without a backup: %w", format,
			stateFormat, err)
	}
	var ours bool
	err = s.store.Update(ctx, func(tx store.Tx) (err error) {
		ours, err = runUpgrade(tx, format, steps)
		return err
	})
	if err != nil {
		return fmt.Errorf("the upgrade of the state from format %d to %d (its backup is %s): %w", format,
			stateFormat, backup, err)
	}
	if ours && s.upgrading.Done != nil {
		s.upgrading.Done(format, stateFormat, backup)
	}
	return nil
}

// runUpgrade runs the steps, unless another host of the cluster has done so since the format was read.
func runUpgrade(tx store.Tx, format int, steps []func(store.Tx) error) (ours bool, err error) {
	today := strconv.Itoa(stateFormat)
	switch raw, err := tx.Get(FormatKey()); {
	case err != nil:
		return false, err
	case string(raw) == today:
		return false, nil
	case string(raw) != strconv.Itoa(format):
		return false, ipam.Refuse(ipam.ErrChanged, "its format has become %q meanwhile", raw)
	}
	for _, step := range steps {
		if err := step(tx); err != nil {
			return false, err
		}
	}
	return true, tx.Put(FormatKey(), []byte(today))
}
