package main

import (
	"path/filepath"
	"strings"
	"testing"

	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/bolt"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
)

// formatOf is the format of the state in a file.
func formatOf(t *testing.T, path string) (format string) {
	t.Helper()
	st, err := bolt.Open(t.Context(), bolt.Config{Path: path, NoSync: true})
	fine(t, err)
	defer st.Close()
	err = st.View(t.Context(), func(tx store.Tx) error {
		raw, err := tx.Get(ledger.FormatKey())
		format = string(raw)
		return err
	})
	fine(t, err)
	return format
}

// TestUpgradeIsBackedUp: an upgrade makes a backup next to the state, in the old format, and the log names it.
func TestUpgradeIsBackedUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), stateFile)
	st, err := bolt.Open(t.Context(), bolt.Config{Path: path, NoSync: true})
	fine(t, err)
	err = st.Update(t.Context(), func(tx store.Tx) error { return tx.Put(ledger.FormatKey(), []byte("3")) })
	fine(t, err)
	logger, logged := test.NewNullLogger()
	cfg := service.Config{Store: st, Host: "alpha",
		Upgrading: upgrading(logrus.NewEntry(logger), "state", path, st.Backup)}
	cfg.Upgrading.Steps = ledger.Upgrades{3: func(store.Tx) error { return nil }}
	for range 2 { // the second time there is nothing to upgrade
		if _, err := service.Open(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	fine(t, st.Close())
	if _, err := fsckState(t.Context(), path); err != nil {
		t.Errorf("the upgraded state: %v", err)
	}
	backups, err := filepath.Glob(path + ".format3-*")
	if err != nil || len(backups) != 1 {
		t.Fatalf("%q, %v", backups, err)
	}
	if was, now := formatOf(t, backups[0]), formatOf(t, path); was != "3" || now != "4" {
		t.Errorf("the backup has the format %s, and the state %s", was, now)
	}
	// The check of the state reports the same problem as opening it.
	if _, err := fsckState(t.Context(), backups[0]); err == nil || !strings.Contains(err.Error(), "has format 3") {
		t.Errorf("a state of format 3: %v", err)
	}
	if _, err := fsckBackup(t.Context(), backups[0]); err == nil || !strings.Contains(err.Error(), "has format 3") {
		t.Errorf("a backup of format 3: %v", err)
	}
	said := logged.AllEntries()
	if len(said) != 1 || said[0].Data["backup"] != backups[0] ||
		!strings.Contains(said[0].Message, "state was upgraded") {
		t.Errorf("logged: %+v", said)
	}
}
