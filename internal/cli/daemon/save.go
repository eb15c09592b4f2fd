package daemon

import (
	"context"
	"errors"
	"fmt"

	"berth/internal/admin/client"
	"berth/internal/cli"

	"github.com/spf13/cobra"
)

const storeSaveHelp = `Has the daemon write all that it holds to the place of its state's file, and use that
file from then on. It is for a file that was removed, moved or exchanged while the daemon had it open. The
daemon takes no writes then ("berth status", "berth state check"), because its next start would not find them. It
does not write the file by itself, because somebody may have moved it on purpose. A file that lies in the
place is kept beside the new one, under a name with the time.

Nothing that was acknowledged is lost. If the file is in its place, the command is refused. If the daemon
can no longer write there, "berth state backup" takes a copy elsewhere, and "berth state restore" puts that back while
the daemon is stopped.`

// SaveCommand is `berth state save`.
func SaveCommand(p *cli.Program) *cobra.Command {
	cmd := cli.Verb{Use: "save", Short: "Rewrite a state file that was removed",
		Long:    storeSaveHelp,
		Example: "  berth state save\n  berth state save --dry-run"}.Command(p)
	var dryRun bool
	cli.DryRunFlag(cmd, &dryRun)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.Ask(cmd, func(ctx context.Context, c *client.Client) error {
			if dryRun {
				st, err := c.Status(ctx)
				if err == nil && st.Writable {
					err = errors.New("the state is in its place: there is nothing to write")
				} else if err == nil {
					err = p.Say([]string{"would write the state anew: " + st.Reason})
				}
				return err
			}
			saved, err := c.SaveState(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintf(p.Out, "%s: %d records, store %s\n", saved.Path, saved.Records, saved.StoreID)
			if saved.Kept != "" {
				fmt.Fprintf(p.Out, "what was there is now %s\n", saved.Kept)
			}
			if saved.Restart != "" {
				return errors.New("it is written, and the daemon must be started again: " + saved.Restart)
			}
			return nil
		})
	}
	return cmd
}
