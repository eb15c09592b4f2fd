package document

import (
	"context"
	"io"

	"berth/internal/cli"

	"github.com/spf13/cobra"
)

const diffHelp = `Shows what berth plan apply would change so that the plan is as FILE says: a line for each change, with a +
for what comes, a - for what goes and a ~ for what is otherwise. FILE is a document in the form that berth
plan export writes, or - for standard input. Nothing is changed.

Things are the same by their names: networks, subnets (by prefix, else by name, else by what they lie over),
pools, accounts, and owners with the slots of their addresses. So an address that was edited has moved. What
is in the plan and not in the document stays; with --prune it goes.

The changes are tried in a dry run. What would be refused is listed with its line, and with who holds what is
in the way.

Exit codes: 0 the plan is as the document says; 2 it differs; 1 refused.`

// diffCommand is `berth plan diff`.
func diffCommand(p *cli.Program) *cobra.Command {
	var flags compareFlags
	cmd := cli.Verb{Use: "diff FILE|-", Short: "Show what an edited document would change in the plan", Long: diffHelp,
		Example: `  berth plan export -o plan.yaml
  berth plan diff plan.yaml
  berth plan diff plan.yaml --prune --format json
  berth plan diff addresses.csv --csv reservations`}.Command(p)
	flags.run(p, cmd, func(ctx context.Context, d *compared, show *cli.Table[Compared]) error {
		refused, tried, err := d.try(ctx)
		if err != nil {
			return err
		}
		all := Compared{Changes: d.difference.Changes, Transactions: len(d.transactions), Refused: refused}
		if err := cli.ShowObject(show, &all, func(w io.Writer) error { return lines(w, all.Changes) }); err != nil {
			return err
		}
		switch {
		case len(refused) > 0:
			return d.tell(refused)
		case !tried:
			p.Warn([]string{d.untried()})
		}
		if len(all.Changes) > 0 {
			return cli.Difference("")
		}
		return nil
	})
	return cmd
}
