package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"berth/internal/cli"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/stores"
	"berth/store/bolt"
	"berth/store/etcd"
)

const restoreHelp = `Replaces the state of a stopped daemon with a backup. It checks the whole backup first.
It never replaces a state in use. It replaces a state that is not empty, or that belongs to another store, only with
--force; the old file stays next to the new one.

If the daemon of this host uses another directory (its settings or the running daemon show that), the command
refuses until you name the directory with --state, and then only warns. It checks for managed plugins only if you
restore into /var/lib/berth.

The backup does not have the addresses that Berth gave after it was made. Run "berth check --repair" once the
daemon runs again: it records the addresses of running containers.

--shared writes a backup of "berth state backup --shared" to etcd, under an empty prefix. If the prefix has keys,
remove them first, or give another prefix. Stop the daemons of all hosts first.`

func restoreCommand() cli.Row {
	state := defaultState
	var force, shared, dryRun bool
	var where etcdFlags
	return cli.Verb{Use: "restore FILE", Short: "Replace the state with a backup", Long: restoreHelp,
		Args: cli.OneArg("the backup"),
		Example: `  systemctl stop berth.socket berth-mac.socket berth-admin.socket berth
  berth state restore berth-2026-01-31.db
  berth state restore berth-2026-01-31.db --state /srv/berth --force
  berth state restore cluster-2026-01-31.db --shared --etcd-endpoints http://10.0.0.11:2379`,
		Flags: append(where.flags(),
			cli.Flag(&state, "state", "`directory` of the state (also BERTH_STATE)").Dirs(),
			cli.Flag(&force, "force", "replace a state that is not empty"),
			cli.Flag(&shared, "shared", "the backup is of the store that several hosts share"),
			cli.DryRunFlag(&dryRun)),
		Check: func(*cli.Run) error {
			switch {
			case !shared:
				return nil
			case force:
				return errors.New("--force does not work with --shared: restore into an empty etcd prefix, and leave " +
					"out --force")
			}
			return where.check()
		},
		Run: func(r *cli.Run) error {
			if shared {
				return restoreShared(r, r.Args[0], &where, dryRun)
			}
			if !r.Given("state") {
				if err := otherReader(r, r.Args[0], state); err != nil {
					return err
				}
			}
			return restoreOwn(r, r.Args[0], state, force, dryRun)
		}}
}

// restoreOwn replaces the host's own state by a backup. A dry run makes the same checks and says what would change.
func restoreOwn(r *cli.Run, file, state string, force, dryRun bool) (err error) {
	prepared, err := openBackup(r, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, prepared.remove()) }()
	if err := prepared.isFor(r, false, file); err != nil {
		return err
	}
	if err := prepared.forHost(r); err != nil {
		return err
	}
	restore, would, was, is := bolt.Restore, "", "was there before", "old file is now"
	if dryRun {
		restore, would, was, is = bolt.TryRestore, "would write ", "is there now", "present file would be kept as"
	}
	done, err := restore(r, prepared.path, filepath.Join(state, stateFile), force)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.Out, "%s%s: %d records, store %s\n", would, done.Report.Path, done.Report.Records, done.Report.ID)
	if done.OtherStore != "" {
		fmt.Fprintf(r.Out, "the store %s %s\n", done.OtherStore, was)
	}
	if done.Kept != "" {
		fmt.Fprintf(r.Out, "the %s %s\n", is, done.Kept)
	}
	readers := defaultReaders()
	r.Warn(append(answering(r).warnings(state), readers.unread(state)...)...)
	return nil
}

// restoreShared writes a backup to etcd under the cluster's id. A dry run makes the same checks.
func restoreShared(r *cli.Run, file string, where *etcdFlags, dryRun bool) (err error) {
	r, stop := r.UntilSignal()
	defer stop()
	backup, err := openBackup(r, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backup.remove()) }()
	if err := backup.isFor(r, true, file); err != nil {
		return err
	}
	cfg, err := where.config()
	if err != nil {
		return err
	}
	cfg.Cluster, cfg.Create, cfg.Dry, cfg.Timeout = backup.ID(), true, dryRun, etcdPatience
	st, err := etcd.Open(r, cfg)
	if err == nil {
		defer func() { err = errors.Join(err, st.Close()) }()
	}
	if dryRun && err == nil {
		err = stores.MayPutBack(r, st)
	}
	if dryRun && (err == nil || errors.Is(err, etcd.ErrNothing)) {
		return r.Sayf("would write %s at %s: %d records, cluster %s", where.prefix, cfg.Endpoints[0], backup.records,
			cfg.Cluster)
	}
	if err != nil {
		return err
	}
	back, err := etcd.Open(r, cfg) // reads the result back from etcd, and not from this process's memory
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, back.Close()) }()
	progress := r.ShowProgress("restoring", false)
	defer progress.End()
	records, err := stores.PutBack(r, backup, st, back, progress.Set)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.Out, "%s at %s: %d records, cluster %s\n", where.prefix, cfg.Endpoints[0], records,
		st.Cluster())
	return err
}

// preparedBackup is a copy of a backup in its own directory, because an open store writes next to its file.
type preparedBackup struct {
	*bolt.Store
	dir, path string
	records   int
}

func openBackup(ctx context.Context, file string) (*preparedBackup, error) {
	dir, err := os.MkdirTemp("", "berth-restore-")
	if err != nil {
		return nil, err
	}
	b := &preparedBackup{dir: dir, path: filepath.Join(dir, stateFile)}
	done, err := bolt.Restore(ctx, file, b.path, false)
	if err == nil {
		b.records = done.Report.Records
		b.Store, err = bolt.Open(ctx, bolt.Config{Path: b.path})
	}
	if err == nil {
		err = ledger.CheckFormat(ctx, b, "backup")
	}
	if err != nil {
		return nil, errors.Join(err, b.remove())
	}
	return b, nil
}

// isFor refuses a backup of the other kind of store. file is its name for the error.
func (b *preparedBackup) isFor(ctx context.Context, shared bool, file string) error {
	switch of, err := stores.OfCluster(ctx, b); {
	case err != nil || of == shared:
		return err
	case shared:
		return fmt.Errorf("%s is a backup of a host's own store, not of a shared one; restore it without "+
			"--shared", file)
	}
	return errors.New("this is a backup of a shared store, not of a host's own; restore it into etcd with --shared")
}

// forHost prepares the copy as a host's own state and closes it. It deletes the headroom, because others may have these
// addresses by now.
func (b *preparedBackup) forHost(ctx context.Context) error {
	if err := cluster.DropHeadroom(ctx, b); err != nil {
		return err
	}
	st := b.Store
	b.Store = nil
	return st.Close()
}

// remove closes the store and deletes the copy.
func (b *preparedBackup) remove() (err error) {
	if b.Store != nil {
		err = b.Close()
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}
