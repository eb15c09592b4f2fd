package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"berth/internal/cli"
	"berth/store/bolt"

	"golang.org/x/sys/unix"
)

const backupHelp = `Fetches the whole state from the daemon, as it is at one moment, while the daemon keeps
giving addresses. The command writes and checks a temporary file next to FILE, and then renames it to FILE. Only
you can read FILE. The command replaces an existing FILE only with --force.

The backup has the host's own store. With --shared it has the store that several hosts share in etcd instead; you can
make it on any of these hosts. For a cluster, make one backup with --shared, and one without it on each host.`

func backupCommand() cli.Row {
	var force, shared bool
	return cli.Verb{Use: "backup FILE", Short: "Write a backup of the daemon's state to a file", Long: backupHelp,
		Args: cli.OneArg("the file to write"),
		Example: "  berth state backup berth-$(date +%F).db\n  berth state backup --force /backup/berth.db\n" +
			"  berth state backup --shared cluster-$(date +%F).db",
		Flags: cli.Flags{cli.Flag(&force, "force", "replace FILE if it exists"),
			cli.Flag(&shared, "shared", "back up the store that several hosts share")},
		Run: func(r *cli.Run) error {
			err := checkTarget(r.Args[0], force)
			if err == nil {
				err = r.Ask()
			}
			if err != nil {
				return err
			}
			report, err := fetchBackup(r, r.Args[0], force, shared)
			if err != nil {
				return err
			}
			store := "store"
			if shared {
				store = "cluster"
			}
			_, err = fmt.Fprintf(r.Out, "%s: %d records, %d bytes, %s %s\n", r.Args[0], report.Records, report.Size,
				store, report.ID)
			return err
		}}
}

// checkTarget refuses to replace a file without force, and anything that is not a file.
func checkTarget(path string, force bool) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s exists and is not a regular file; give another name", path)
	case !force:
		return fmt.Errorf("%s already exists; give another name, or replace it with --force", path)
	}
	return notInUse(path)
}

// notInUse refuses the file of a state that a daemon has open, which bbolt has locked.
func notInUse(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // releases the lock
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return fmt.Errorf("%s is a state in use, not a backup; give another name", path)
	}
	return nil
}

// fetchBackup writes the daemon's state to path. After an error path is unchanged.
func fetchBackup(r *cli.Run, path string, force, shared bool) (bolt.Report, error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.part") // 0600
	if err != nil {
		return bolt.Report{}, err
	}
	defer os.Remove(temp.Name()) // after the rename nothing has that name
	defer temp.Close()
	_, id, err := r.Backup(r, temp, shared)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return bolt.Report{}, err
	}
	report, err := checkCopy(r, temp.Name())
	if err != nil {
		return report, fmt.Errorf("the received backup is damaged, and was discarded: %w", err)
	}
	if report.ID != id {
		return report, fmt.Errorf("the received backup is of the store %s, but the daemon's store is %s; the "+
			"backup was discarded", report.ID, id)
	}
	if err := publish(temp.Name(), path, force); err != nil {
		return report, err
	}
	return report, cli.SyncDir(filepath.Dir(path))
}

// checkCopy checks a file without a berth.id, such as a backup.
func checkCopy(ctx context.Context, path string) (bolt.Report, error) {
	report, err := bolt.Check(ctx, path)
	if report.ID != "" && errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return report, err
}

// publish gives a synced file its name.
func publish(from, path string, force bool) error {
	if force {
		return os.Rename(from, path)
	}
	err := os.Link(from, path) // unlike a rename, it never replaces an existing file
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s was created during the backup; give another name, or replace it with --force", path)
	}
	if err != nil { // the file system has no links
		return os.Rename(from, path)
	}
	return nil
}
