package ledger

import (
	"context"
	"fmt"
	"strconv"

	"berth/internal/ipam"
	"berth/store"
)

// stateFormat is the format number of all records together. Every change of an encoding increases it, even of
// events alone, because an older Berth would report such records as damaged. 4 is the format of 1.0; earlier ones were
// never released.
const stateFormat = 4

// FormatKey is the key of the format number.
func FormatKey() []byte { return append([]byte{SettingKeys}, "format"...) }

// checkFormat writes the number of a new state, upgrades a state of an older format, and refuses others.
func (s *Ledger) checkFormat(ctx context.Context) error {
	format, err := s.readFormat(ctx)
	if err != nil {
		return err
	}
	switch {
	case format == 0:
		return s.store.Update(ctx, func(tx store.Tx) error {
			return tx.Put(FormatKey(), strconv.AppendInt(nil, stateFormat, 10))
		})
	case format < stateFormat:
		return s.upgrade(ctx, format)
	case format > stateFormat:
		return refuseFormat(format)
	}
	return nil
}

// refuseFormat refuses a state that this Berth can neither read nor upgrade.
func refuseFormat(format int) error {
	return otherFormat("state", format).OrAdvise(ipam.DoRestore)
}

// CheckFormat refuses a state or a backup, as what says, whose format this version can neither read nor upgrade.
func CheckFormat(ctx context.Context, st store.Store, what string) error {
	format, err := (&Ledger{store: st}).readFormat(ctx)
	if err != nil || format == 0 {
		return err
	}
	if _, ok := upgrades().from(format); !ok {
		return otherFormat(what, format)
	}
	return nil
}

func otherFormat(what string, format int) *ipam.Refusal {
	return ipam.Refuse(ipam.ErrDamaged,
		"the %s has format %d, but this Berth reads format %d; use the Berth that wrote it", what, format, stateFormat)
}

// sameFormat refuses a change if a newer Berth has changed the shared store's format since this one opened it. Each
// change reads the record, so the commit checks it.
func (c *Change) sameFormat() error {
	raw, err := c.tx.Get(FormatKey())
	if err != nil || raw == nil || string(raw) == strconv.Itoa(stateFormat) {
		return err
	}
	return ipam.Refuse(ipam.ErrHost, "the shared store has format %s, but this Berth writes format %d: update "+
		"Berth on this host", raw, stateFormat)
}

// readFormat reads the format number of the state; 0 means a new state.
func (s *Ledger) readFormat(ctx context.Context) (format int, err error) {
	err = s.store.View(ctx, func(tx store.Tx) error {
		raw, err := tx.Get(FormatKey())
		if err != nil {
			return err
		}
		switch string(raw) {
		case "":
			format = 0
			return nil
		case Restoring:
			return ipam.Refuse(ipam.ErrDamaged,
				"a backup is being restored into the store, and part of the backup is still missing").
				Advise(ipam.DoRestoreShared)
		}
		if format, err = strconv.Atoi(string(raw)); err != nil || format < 1 {
			return fmt.Errorf("%w: the format of the state is %q", ipam.ErrDamaged, raw)
		}
		return nil
	})
	return format, err
}

// BeingCopied is the refusal to change a network that is being copied.
func BeingCopied(n *ipam.Network) error {
	return ipam.Refuse(ipam.ErrInUse, "network %s is being copied from one store to another", n.Name).
		Advise(ipam.DoCopyOn)
}

// Restoring replaces the format number while a backup is restored into a store. No Service opens the store then.
const Restoring = "restoring"

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
		return fmt.Errorf("upgrade the state from format %d to %d (the backup is %s): %w", format,
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
		return false, ipam.Refuse(ipam.ErrChanged, "the format of the state has changed to %q", raw)
	}
	for _, step := range steps {
		if err := step(tx); err != nil {
			return false, err
		}
	}
	return true, tx.Put(FormatKey(), []byte(today))
}
