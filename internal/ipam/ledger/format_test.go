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
)

var ctx = context.Background()

// A state of a newer Berth is refused with the reason, and not touched.
func TestNewerStateIsRefused(t *testing.T) {
	set := func(prefix string, value func([]byte) []byte) func(testing.TB, store.Store) {
		return func(t testing.TB, st store.Store) {
			err := st.Update(ctx, func(tx store.Tx) error {
				for rec, err := range tx.Scan(store.Prefix([]byte(prefix))) {
					if err != nil {
						return err
					}
					return tx.Put(append([]byte(nil), rec.Key...), value(append([]byte(nil), rec.Value...)))
				}
				return fmt.Errorf("there is no record %q", prefix)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	newer := func(b []byte) []byte { b[0] = 200; return b }
	for name, change := range map[string]func(testing.TB, store.Store){
		"format":     set("mformat", func([]byte) []byte { return []byte("5") }),
		"no format":  set("mformat", func([]byte) []byte { return []byte("two") }),
		"network":    set("n", newer),
		"subnet":     set("p", newer),
		"attachment": set("a", newer),
		"lease":      set("l", newer),
	} {
		t.Run(name, func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run(ipamtest.PlanForEdits)
			change(t, r.Store)
			before := ipamtest.Dump(t, r.Store)
			_, err := service.Open(ctx, service.Config{Store: r.Store, Host: "h1", Now: r.Clock.Now})
			if !errors.Is(err, ipam.ErrDamaged) {
				t.Fatalf("opened: %v", err)
			}
			if !strings.Contains(err.Error(), "newer") && !strings.Contains(err.Error(), "version") &&
				!strings.Contains(err.Error(), "format") {
				t.Errorf("the reason is missing: %v", err)
			}
			if diff := cmp.Diff(before, ipamtest.Dump(t, r.Store)); diff != "" {
				t.Fatalf("it was changed:\n%s", diff)
			}
		})
	}
}

// A backup is refused for the same formats as the daemon's state.
func TestBackupFormat(t *testing.T) {
	for format, refused := range map[string]bool{"3": true, "4": false, "5": true, "two": true, "0": true} {
		r := ipamtest.New(t)
		r.Run(ipamtest.PlanForEdits)
		err := r.Store.Update(ctx, func(tx store.Tx) error { return tx.Put(ledger.FormatKey(), []byte(format)) })
		if err != nil {
			t.Fatal(err)
		}
		err = ledger.CheckFormat(ctx, r.Store, "backup")
		if (err != nil) != refused || refused && !errors.Is(err, ipam.ErrDamaged) {
			t.Errorf("a backup of the format %s: %v", format, err)
		}
		if _, err = service.Open(ctx, service.Config{Store: r.Store, Host: "h1", Now: r.Clock.Now}); (err != nil) != refused {
			t.Errorf("a state of the format %s: %v", format, err)
		}
		err = r.Store.View(ctx, func(tx store.Tx) error {
			now, err := tx.Get(ledger.FormatKey())
			if !refused && string(now) != "4" {
				t.Errorf("afterwards the state of the format %s says %q", format, now)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
