package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"berth/internal/admin/api"
	"berth/internal/cli"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/stores"
	"berth/store"
	"berth/store/bolt"

	"github.com/sirupsen/logrus"
)

const fsckHelp = `Checks a state and lists what is wrong: the structure of its file, the checksum of each record, and
whether the records agree.

Without FILE and --state the running daemon checks its own state, and keeps working. It then also reports if its file
was removed or replaced. With --state the command checks the state of a stopped daemon. With FILE it checks a backup.

--repair repairs one kind of damage: the loss of one of the two pages that name the last commit. It brings the state
back to the previous commit, and keeps the old file next to the new one.`

func fsckCommand() cli.Row {
	var state string
	var repair bool
	return cli.Verb{Use: "check [FILE]", Short: "Check the state, or a backup", Long: fsckHelp,
		Args: atMostOne("a backup"),
		Example: `  berth state check
  berth state check berth-2026-01-31.db
  berth state check --state /var/lib/berth
  berth state check --state /var/lib/berth --repair`,
		Flags: cli.Flags{
			cli.Flag(&state, "state", "`directory` of the state of a daemon that is not running").Dirs(),
			cli.Flag(&repair, "repair", "repair what can be repaired; needs --state")},
		Check: func(r *cli.Run) error {
			switch {
			case len(r.Args) > 0 && state != "":
				return errors.New("FILE and --state exclude each other: give one of them")
			case repair && state == "":
				return errors.New("--repair needs --state: it changes the state of a daemon that is not running")
			}
			return nil
		},
		Run: func(r *cli.Run) error {
			report, err := fsck(r, state, repair)
			if err != nil {
				return err
			}
			return showFsck(r.Out, report)
		}}
}

// fsck chooses what is checked, and whether the daemon checks it.
func fsck(r *cli.Run, state string, repair bool) (api.FsckReport, error) {
	path := filepath.Join(state, stateFile)
	switch {
	case len(r.Args) > 0:
		return fsckBackup(r, r.Args[0])
	case state == "":
		return fsckRunning(r)
	case repair:
		done, err := bolt.Repair(r, path)
		if err != nil {
			return api.FsckReport{}, err
		}
		if done.Kept != "" {
			fmt.Fprintf(r.Out, "repaired; the old file is now %s\n", done.Kept)
		}
	}
	return fsckState(r, path)
}

// fsckRunning makes the daemon check its own state.
func fsckRunning(r *cli.Run) (report api.FsckReport, err error) {
	if err = r.Ask(); err == nil {
		report, err = r.Fsck(r)
	}
	var refused *api.Problem
	if err != nil && !errors.As(err, &refused) {
		err = fmt.Errorf("%w; to check the state of a daemon that is not running, name it with --state", err)
	}
	return report, err
}

// fsckState checks a state that no daemon has open.
func fsckState(ctx context.Context, path string) (api.FsckReport, error) {
	if _, err := os.Stat(path); err != nil {
		return api.FsckReport{}, fmt.Errorf("there is no state: %w", err) // opening would create one
	}
	report, err := fsckRecords(ctx, path, "state")
	if errors.Is(err, store.ErrLocked) {
		return report, fmt.Errorf("%w; to let the running daemon check it, run `berth state check` without "+
			"arguments", err)
	}
	if err != nil && !errors.Is(err, store.ErrCorrupt) {
		return report, err
	}
	file, fileErr := bolt.Check(ctx, path)
	if fileErr != nil {
		err = fileErr // it contains the error of opening, and more
	}
	if report.File, err = fileReport(file, err); err != nil {
		report.File.Problems = []string{cli.OneLine(err)}
	}
	report.OK = len(report.Problems) == 0 && len(report.File.Problems) == 0
	return report, nil
}

// fsckBackup checks a copy of a backup, because an open store writes next to its file.
func fsckBackup(ctx context.Context, path string) (api.FsckReport, error) {
	if _, err := os.Stat(path); err != nil {
		return api.FsckReport{}, err
	}
	dir, err := os.MkdirTemp("", "berth-fsck-")
	if err != nil {
		return api.FsckReport{}, err
	}
	defer os.RemoveAll(dir)
	copied := filepath.Join(dir, stateFile)
	done, err := bolt.Restore(ctx, path, copied, false)
	if errors.Is(err, store.ErrCorrupt) {
		file, checkErr := checkCopy(ctx, path)
		if checkErr != nil {
			err = checkErr
		}
		report, _ := fileReport(file, err)
		if len(report.Problems) == 0 {
			report.Problems = []string{cli.OneLine(err)}
		}
		report.Path = path
		return api.FsckReport{File: report}, nil
	}
	if err != nil {
		return api.FsckReport{}, err
	}
	report, err := fsckRecords(ctx, copied, "backup")
	if err != nil {
		return report, err
	}
	report.File, err = fileReport(done.Report, nil)
	report.File.Path = path
	report.OK = len(report.Problems) == 0
	return report, err
}

// fsckRecords opens a state or a copy of a backup, which checks its file; what names it in messages. Then it checks the
// records against each other.
func fsckRecords(ctx context.Context, path, what string) (report api.FsckReport, err error) {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	st, err := bolt.Open(ctx, bolt.Config{Path: path, Log: logrus.NewEntry(quiet)})
	if err != nil {
		return report, err
	}
	if err := ledger.CheckFormat(ctx, st, what); err != nil {
		return report, errors.Join(err, st.Close())
	}
	var kept []string
	if report.Problems, err = stores.CheckStore(ctx, st); err == nil {
		kept, err = cluster.CheckOwn(ctx, st)
	}
	report.Problems = append(report.Problems, kept...)
	return report, errors.Join(err, st.Close())
}

func showFsck(w io.Writer, r api.FsckReport) error {
	all := append(append([]string{}, r.File.Problems...), r.Problems...)
	for _, problem := range all {
		fmt.Fprintln(w, problem)
	}
	if r.File.Astray && len(all) == 1 {
		return cli.Difference(fmt.Sprintf("%s: the daemon's state is sound, but its file is not in its place; "+
			"`berth state save` writes it there", r.File.Path))
	}
	if len(all) > 0 || !r.OK {
		return cli.Difference(fmt.Sprintf("%s: %s: the state is damaged; `berth state restore` puts a backup in its place",
			r.File.Path, cli.Counted(len(all), "problem")))
	}
	_, err := fmt.Fprintf(w, "%s is sound: %d records, %d bytes, commit %d, store %s\n",
		r.File.Path, r.File.Records, r.File.Size, r.File.Commit, r.File.StoreID)
	return err
}

func atMostOne(what string) func(*cli.Run) error {
	return func(r *cli.Run) error {
		if len(r.Args) > 1 {
			return r.Usagef("%s takes at most one argument, %s", r.Cmd.CommandPath(), what)
		}
		return nil
	}
}
