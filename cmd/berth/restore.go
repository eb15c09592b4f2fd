package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"berth/internal/cli"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/stores"
	"berth/store/bolt"
	"berth/store/etcd"
)

const restoreHelp = `Replaces the state of a stopped daemon with a backup. It checks the whole backup first.
It never replaces a state in use. A state that is not empty, or that belongs to another store, needs --force;
its old file stays next to the new one.

If the daemon of this host uses another directory (its settings or the running daemon show that), the command
refuses until you name the directory with --state, and then only warns.

Addresses that were given after the backup was taken are not in it. Run "berth check --repair" once the
daemon runs again: it records the addresses of running containers.

--shared writes a backup of "berth state backup --shared" to etcd, under an empty prefix. It does not replace what is
there: remove that first, or give another prefix. Stop the daemons of all hosts.`

func restoreCommand(p *cli.Program) *cobra.Command {
	var state string
	var force, shared, dryRun bool
	var where etcdFlags
	cmd := &cobra.Command{Use: "restore FILE", Short: "Replace the state with a backup", Long: restoreHelp,
		Args: cli.OneArg("the backup"),
		Example: `  systemctl stop berth.socket berth-mac.socket berth-admin.socket berth
  berth state restore berth-2026-01-31.db
  berth state restore berth-2026-01-31.db --state /srv/berth --force
  berth state restore cluster-2026-01-31.db --shared --etcd-endpoints http://10.0.0.11:2379`}
	cmd.Flags().StringVar(&state, "state", defaultState, "`directory` of the state (also BERTH_STATE)")
	cmd.Flags().BoolVar(&force, "force", false, "replace a state that holds something")
	cmd.Flags().BoolVar(&shared, "shared", false, "the backup is of the store that several hosts share")
	cli.Flags{cli.DryRunFlag(&dryRun)}.Add(p, cmd)
	where.flags(cmd)
	cli.CompletesDirs(cmd, "state")
	completesEtcd(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if dryRun {
			return tryRestore(cmd.Context(), p, args[0], shared)
		}
		if !shared {
			if !cmd.Flags().Changed("state") {
				if err := otherReader(cmd.Context(), p, args[0], state); err != nil {
					return err
				}
			}
			return restoreOwn(cmd.Context(), p, args[0], state, force)
		}
		if force {
			return cli.Usagef(cmd, "--force replaces a state, and a backup of a shared store is only "+
				"brought into an empty prefix")
		}
		if err := where.check(); err != nil {
			return cli.Usage(cmd, err)
		}
		return restoreShared(cmd.Context(), p, args[0], &where)
	}
	return cmd
}

// tryRestore checks a whole backup and changes nothing.
func tryRestore(ctx context.Context, p *cli.Program, file string, shared bool) (err error) {
	backup, err := openBackup(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backup.remove()) }()
	if err := backup.isFor(ctx, shared, file); err != nil {
		return err
	}
	return p.Say(file + ": the backup is sound and would be restored")
}

// restoreOwn replaces the host's own state by a backup.
func restoreOwn(ctx context.Context, p *cli.Program, file, state string, force bool) (err error) {
	prepared, err := openBackup(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, prepared.remove()) }()
	if err := prepared.isFor(ctx, false, file); err != nil {
		return err
	}
	if err := prepared.forHost(ctx); err != nil {
		return err
	}
	done, err := bolt.Restore(ctx, prepared.path, filepath.Join(state, stateFile), force)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "%s: %d records, store %s\n", done.Report.Path, done.Report.Records, done.Report.ID)
	if done.OtherStore != "" {
		fmt.Fprintf(p.Out, "the store %s was there before\n", done.OtherStore)
	}
	if done.Kept != "" {
		fmt.Fprintf(p.Out, "what was there is now %s\n", done.Kept)
	}
	readers := defaultReaders()
	p.Warn(append(answering(ctx, p, state), readers.unread(state)...)...)
	return nil
}

// restoreShared writes a backup to etcd under the cluster's id.
func restoreShared(ctx context.Context, p *cli.Program, file string, where *etcdFlags) (err error) {
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	backup, err := openBackup(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backup.remove()) }()
	if err := backup.isFor(ctx, true, file); err != nil {
		return err
	}
	cfg, err := where.config()
	if err != nil {
		return err
	}
	cfg.Cluster, cfg.Create, cfg.Timeout = backup.ID(), true, etcdPatience
	st, err := etcd.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	back, err := etcd.Open(ctx, cfg) // reads the result back from etcd, and not from this process's memory
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, back.Close()) }()
	progress := p.ShowProgress("restoring", false)
	defer progress.End()
	records, err := stores.PutBack(ctx, backup, st, back, progress.Set)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Out, "%s at %s: %d records, cluster %s\n", where.prefix, cfg.Endpoints[0], records,
		st.Cluster())
	return err
}

// preparedBackup is a copy of a backup in its own directory, because an open store writes next to its file.
type preparedBackup struct {
	*bolt.Store
	dir, path string
}

func openBackup(ctx context.Context, file string) (*preparedBackup, error) {
	dir, err := os.MkdirTemp("", "berth-restore-")
	if err != nil {
		return nil, err
	}
	b := &preparedBackup{dir: dir, path: filepath.Join(dir, stateFile)}
	if _, err = bolt.Restore(ctx, file, b.path, false); err == nil {
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
		return fmt.Errorf("%s is a backup of a host's own store, and not of one that hosts share; put it back without "+
			"--shared", file)
	}
	return errors.New("this is a backup of the store that several hosts share, and not of a host's own; bring it " +
		"into etcd with --shared")
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
