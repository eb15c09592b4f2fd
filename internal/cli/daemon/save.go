package daemon

import (
	"errors"
	"fmt"

	"berth/internal/cli"
)

const storeSaveHelp = `Makes the daemon write its whole state to the path of its state file, and use that file
from then on. Run
the command when somebody removed, moved or replaced the file while the daemon had it open. The daemon then refuses
writes (see "berth status"), because it would not find them at its next start. The daemon does not rewrite the file by
itself, because somebody may have moved it on purpose. If another file is at that path, the daemon keeps that file
under a name with the time.

No change that Berth acknowledged is lost. If the file with the tokens of the API is missing, the daemon writes that
again, too. If the state file is in its place, the daemon refuses the command. If the daemon cannot write there, run
"berth state backup", stop the daemon, and run "berth state restore".`

// SaveCommand is `berth state save`.
func SaveCommand() cli.Row {
	var dryRun bool
	return cli.Verb{Use: "save", Short: "Rewrite a state file that was removed",
		Long:    storeSaveHelp,
		Example: "  berth state save\n  berth state save --dry-run",
		Flags:   cli.Flags{cli.DryRunFlag(&dryRun)},
		Ask: func(r *cli.Run) error {
			if dryRun {
				st, err := r.Status(r)
				if err == nil && st.Writable {
					err = errors.New("the state is complete; there is nothing to write")
				} else if err == nil {
					err = r.Say("would write the state again: " + st.Reason)
				}
				return err
			}
			saved, err := r.SaveState(r)
			if err != nil {
				return err
			}
			fmt.Fprintf(r.Out, "%s: %d records, store %s\n", saved.Path, saved.Records, saved.StoreID)
			if saved.Kept != "" {
				fmt.Fprintf(r.Out, "the file that was there is now %s\n", saved.Kept)
			}
			if saved.Tokens != "" {
				fmt.Fprintf(r.Out, "%s: the tokens of the API\n", saved.Tokens)
			}
			if saved.Restart != "" {
				return errors.New("the state is written; restart the daemon: " + saved.Restart)
			}
			return nil
		}}
}
