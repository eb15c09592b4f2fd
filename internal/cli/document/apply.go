package document

import (
	"context"
	"fmt"
	"io"

	"berth/internal/admin/client"
	"berth/internal/cli"
)

const applyHelp = `Changes the plan to match FILE, and shows the changes as berth plan diff does. FILE is a
document of berth plan export, or - for standard input. It does not ask. A second run changes nothing.

Names identify objects (see berth plan diff --help), so an edited address moves. Objects that are not in the
document stay. --prune removes them, also networks, if nobody uses them. Berth refuses to change a held
address and names its holder. Containers keep their address until they restart.

Up to 256 edits are one transaction. More edits, or edits in both stores of a cluster host, take several
transactions, network by network. If a later one fails, the earlier ones stay; run apply again to continue.`

// applyCommand is `berth plan apply`.
func applyCommand(p *cli.Program) cli.Row {
	var flags compareFlags
	var dryRun bool
	verb := cli.Verb{Use: "apply FILE|-", Short: "Apply an edited document to the plan", Long: applyHelp,
		Example: `  berth plan export -o plan.yaml
  berth plan apply plan.yaml --dry-run
  berth plan apply plan.yaml
  berth plan apply plan.yaml --prune
  berth plan apply addresses.csv --csv reservations`,
		Flags: cli.Flags{cli.Flag(&dryRun, "dry-run",
			"show what would be changed, and change nothing; the exit code of "+
				"berth plan diff also shows whether there are changes")}}
	return flags.verb(p, verb, func(ctx context.Context, d *compared, show *cli.Table[Compared]) error {
		refused, tried, err := d.try(ctx)
		if err != nil {
			return err
		}
		if len(refused) > 0 {
			return d.tell(refused)
		}
		all := Compared{Changes: d.difference.Changes, Transactions: len(d.transactions), Applied: !dryRun}
		if dryRun {
			if !tried {
				p.Warn(d.untried())
			}
			return cli.ShowObject(show, &all, func(w io.Writer) error { return d.said(w, "would make") })
		}
		if err := d.make(ctx); err != nil {
			return err
		}
		return cli.ShowObject(show, &all, func(w io.Writer) error { return d.said(w, "made") })
	})
}

// make makes the edits, transaction by transaction. Of a refusal it says how many were made before.
func (d *compared) make(ctx context.Context) error {
	for i, step := range d.transactions {
		out, err := d.c.Edit(ctx, client.EditOptions{}, edits(step.Edits)...)
		if err != nil && i > 0 {
			return fmt.Errorf("%w; %d of %s were made before, and stay: apply it again when that is fixed",
				d.refusal(err, step.Edits), i, cli.Counted(len(d.transactions), "transaction"))
		}
		if err != nil {
			return d.refusal(err, step.Edits)
		}
		for _, r := range out.Results {
			d.p.Warn(r.Warnings...)
		}
	}
	return nil
}

// said is what was changed, or would be.
func (d *compared) said(w io.Writer, made string) error {
	if len(d.difference.Changes) == 0 {
		_, err := fmt.Fprintln(w, "nothing to change")
		return err
	}
	if err := lines(w, d.difference.Changes); err != nil {
		return err
	}
	how := ""
	if len(d.transactions) > 1 {
		how = ", in " + cli.Counted(len(d.transactions), "transaction")
	}
	_, err := fmt.Fprintf(w, "%s %s%s\n", made, cli.Counted(len(d.difference.Changes), "change"), how)
	return err
}
