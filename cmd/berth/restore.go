package main

import (
	"fmt"
	"path/filepath"

	"berth/store/bolt"

	"github.com/spf13/cobra"
)

const restoreHelp = `Puts a backup in the place of the state of a daemon that does not run. The backup is checked as a whole
before anything is touched. A state in use is never replaced; one that holds something, or that belongs
to another store, only with --force, and its file is then kept beside the new one.

Addresses that were given after the backup was taken are not in it: containers that still use them
should be started again.`

func (p *program) restoreCommand() *cobra.Command {
	var state string
	var force bool
	cmd := &cobra.Command{Use: "restore FILE", Short: "Put a backup in the place of the state", Long: restoreHelp,
		Args: oneArg("the backup"),
		Example: `  systemctl stop berth.socket berth-admin.socket berth
  berth restore berth-2026-01-31.db
  berth restore berth-2026-01-31.db --state /srv/berth --force`}
	cmd.Flags().StringVar(&state, "state", defaultState, "`directory` of the state (also BERTH_STATE)")
	cmd.Flags().BoolVarP(&force, "force", "f", false, "replace a state that holds something")
	completesDirs(cmd, "state")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		done, err := bolt.Restore(cmd.Context(), args[0], filepath.Join(state, stateFile), force)
		if err != nil {
			return err
		}
		fmt.Fprintf(p.out, "%s: %d records, store %s\n", done.Report.Path, done.Report.Records, done.Report.ID)
		if done.OtherStore != "" {
			fmt.Fprintf(p.out, "the store %s was there before\n", done.OtherStore)
		}
		if done.Kept != "" {
			fmt.Fprintf(p.out, "what was there is now %s\n", done.Kept)
		}
		return nil
	}
	return cmd
}
