package daemon

import (
	"errors"
	"fmt"

	"berth/internal/cli"
)

const storeSaveHelp = `Makes the daemon write its whole state to the path of its state file, and use that file
from then on. Use
it when the file was removed, moved or replaced while the daemon had it open. The daemon refuses writes then (see
"berth status"), because its next start would not find them. It does not rewrite the file by itself, because somebody
may have moved it on purpose. A file at that path is kept, under a name with the time.

Nothing that was acknowledged is lost. The tokens of the API are written again, too, if their file is missing. If the
file of the state is in its place, the command is refused. If the daemon cannot write there, use "berth state
backup", stop the daemon, and run "berth state restore".`

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
				fmt.Fprintf(r.Out, "what was there is now %s\n", saved.Kept)
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
