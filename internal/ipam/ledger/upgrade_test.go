package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/storetest"
)

var errNo = errors.New("no")

// older returns a stage whose state has an older format. In it, each network's record has an extra byte.
func older(t *testing.T, format string) (r *ipamtest.Stage, today map[string]string) {
	t.Helper()
	r = ipamtest.New(t)
	r.Run(ipamtest.PlanForEdits)
	today = ipamtest.Dump(t, r.Store)
	err := r.Store.Update(ctx, func(tx store.Tx) error {
		err := eachNetwork(tx, func(value []byte) []byte { return append([]byte("?"), value...) })
		if err != nil {
			return err
		}
		return tx.Put(ledger.FormatKey(), []byte(format))
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, today
}

// shorten is a made-up step. It removes the byte again.
func shorten(tx store.Tx) error {
	return eachNetwork(tx, func(value []byte) []byte { return value[1:] })
}

func eachNetwork(tx store.Tx, change func([]byte) []byte) error {
	networks := map[string][]byte{}
	for rec, err := range tx.Scan(ledger.KindRange(ledger.NetworkKeys)) {
		if err != nil {
			return err
		}
		networks[string(rec.Key)] = append([]byte(nil), change(rec.Value)...)
	}
	for key, value := range networks {
		if err := tx.Put([]byte(key), value); err != nil {
			return err
		}
	}
	return nil
}

func nothing(store.Tx) error { return nil }

func refuses(store.Tx) error { return errNo }

// upgraded opens the stage's state with these steps. It returns the backup and the report of the upgrade.
func upgraded(r *ipamtest.Stage, steps ledger.Upgrades) (backup map[string]string, said string, err error) {
	_, err = service.Open(ctx, service.Config{Store: r.Store, Host: "h1", Now: r.Clock.Now,
		Upgrading: ledger.Upgrading{
			Steps: steps,
			Backup: func(_ context.Context, format int) (string, error) {
				backup = ipamtest.Dump(r.T, r.Store)
				return fmt.Sprintf("of %d", format), nil
			},
			Done: func(from, to int, backup string) { said = fmt.Sprintf("%d to %d, backup %s", from, to, backup) },
		}})
	return backup, said, err
}

// A state of an older format is backed up unchanged, and then upgraded step by step (GA-26).
func TestUpgrade(t *testing.T) {
	for format, steps := range map[string]ledger.Upgrades{
		"3": {3: shorten},
		"2": {2: nothing, 3: shorten},
		"1": {1: shorten, 2: nothing, 3: nothing},
	} {
		t.Run(format, func(t *testing.T) {
			r, today := older(t, format)
			before := ipamtest.Dump(t, r.Store)
			backup, said, err := upgraded(r, steps)
			if want := format + " to 4, backup of " + format; err != nil || said != want {
				t.Fatalf("said %q: %v", said, err)
			}
			if diff := cmp.Diff(before, backup); diff != "" {
				t.Errorf("the backup has not what there was (-was +backup):\n%s", diff)
			}
			if diff := cmp.Diff(today, ipamtest.Dump(t, r.Store)); diff != "" {
				t.Errorf("the upgraded state differs from one of today (-today +upgraded):\n%s", diff)
			}
			if backup, said, err = upgraded(r, steps); err != nil || backup != nil || said != "" {
				t.Errorf("upgraded again: %q, %v", said, err)
			}
			r.Open()
		})
	}
}

// Nothing changes if a step, the backup or the commit fails, or if no steps lead to today's format.
func TestNoUpgrade(t *testing.T) {
	for name, c := range map[string]struct {
		format string
		steps  ledger.Upgrades
		fault  storetest.Fault
		want   error
	}{
		"a step fails":        {"3", ledger.Upgrades{3: refuses}, storetest.Fault{}, errNo},
		"the last step fails": {"2", ledger.Upgrades{2: shorten, 3: refuses}, storetest.Fault{}, errNo},
		"a step is missing":   {"2", ledger.Upgrades{2: shorten}, storetest.Fault{}, ipam.ErrDamaged},
		"no step":             {"3", nil, storetest.Fault{}, ipam.ErrDamaged},
		"newer": {"5", ledger.Upgrades{3: shorten, 4: shorten, 5: shorten}, storetest.Fault{},
			ipam.ErrDamaged},
		"the commit fails": {"3", ledger.Upgrades{3: shorten}, storetest.Fault{Before: errNo}, errNo},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := older(t, c.format)
			before := ipamtest.Dump(t, r.Store)
			r.Store.Next(c.fault)
			_, said, err := upgraded(r, c.steps)
			r.Store.Heal()
			if !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), "format "+c.format) || said != "" {
				t.Errorf("said %q: %v", said, err)
			}
			if diff := cmp.Diff(before, ipamtest.Dump(t, r.Store)); diff != "" {
				t.Errorf("it was changed:\n%s", diff)
			}
		})
	}
}

// Without a backup nothing is upgraded.
func TestNoUpgradeWithoutBackup(t *testing.T) {
	fails := func(context.Context, int) (string, error) { return "", errNo }
	for name, c := range map[string]struct {
		backup func(context.Context, int) (string, error)
		want   error
	}{"it fails": {fails, errNo}, "nobody can": {nil, ipam.ErrDamaged}} {
		t.Run(name, func(t *testing.T) {
			r, _ := older(t, "3")
			before := ipamtest.Dump(t, r.Store)
			_, err := service.Open(ctx, service.Config{Store: r.Store, Host: "h1", Now: r.Clock.Now,
				Upgrading: ledger.Upgrading{Steps: ledger.Upgrades{3: shorten}, Backup: c.backup}})
			if !errors.Is(err, c.want) {
				t.Errorf("opened: %v", err)
			}
			if diff := cmp.Diff(before, ipamtest.Dump(t, r.Store)); diff != "" {
				t.Errorf("it was changed:\n%s", diff)
			}
		})
	}
}

// Of several hosts one upgrades the shared store. The others find it upgraded.
func TestUpgradedByAnother(t *testing.T) {
	r, today := older(t, "3")
	_, err := service.Open(ctx, service.Config{Store: r.Store, Host: "h1", Now: r.Clock.Now,
		Upgrading: ledger.Upgrading{
			Steps: ledger.Upgrades{3: shorten},
			Backup: func(context.Context, int) (string, error) {
				_, _, err := upgraded(r, ledger.Upgrades{3: shorten})
				return "", err
			},
			Done: func(int, int, string) { t.Error("upgraded twice") },
		}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(today, ipamtest.Dump(t, r.Store)); diff != "" {
		t.Errorf("the upgraded state differs from one of today (-today +upgraded):\n%s", diff)
	}
}
