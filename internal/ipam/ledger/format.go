package ledger

import (
	"context"
	"fmt"
	"strconv"

	"berth/internal/ipam"
	"berth/store"
)

// stateFormat is the format number of all records together (GA-26). Every change of an encoding increases it, even of
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
		"the %s has format %d, and this Berth reads format %d; use the Berth that wrote it", what, format, stateFormat)
}

// sameFormat refuses a change if a newer Berth has changed the shared store's format since this one opened it. Each
// change reads the record, so the commit checks it.
func (c *Change) sameFormat() error {
	raw, err := c.tx.Get(FormatKey())
	if err != nil || raw == nil || string(raw) == strconv.Itoa(stateFormat) {
		return err
	}
	return ipam.Refuse(ipam.ErrHost, "the shared store has format %s, and this Berth writes format %d: update "+
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
				"a backup is being put back into the store, and not all of it is there").
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
