package document

import (
	"fmt"
	"io"

	"berth/internal/admin/client"
	"berth/internal/cli"
)

const applyHelp = `Changes the plan to match FILE, and lists the changes like berth plan diff. FILE is a document of
berth plan export, or - for standard input. It does not ask for confirmation. A second run changes nothing.

Names identify objects (see berth plan diff --help), so an edited address moves. What FILE does not name stays. A
setting that is written with its default, or without a value, is reset. --prune resets and removes everything that FILE
does not name, also networks, unless they are in use. Berth refuses to change an address in use, and names its holder.
Running containers keep their address until they restart.

Up to 256 edits are one transaction: all or none. More edits, or edits in both stores of a cluster host, take several
transactions, network by network. If one fails, the earlier ones stay. Correct it, and run the command again.`

// applyCommand is `berth plan apply`.
func applyCommand() cli.Row {
	var flags compareFlags
	var dryRun bool
	verb := cli.Verb{Use: "apply FILE|-", Short: "Apply an edited document to the plan", Long: applyHelp,
		Example: `  berth plan export -o plan.yaml
  berth plan apply plan.yaml --dry-run
  berth plan apply plan.yaml
  berth plan apply plan.yaml --prune
  berth plan apply addresses.csv --csv reservations`,
		Flags: cli.Flags{cli.Flag(&dryRun, "dry-run",
			"show what would be changed, and change nothing (for an exit code that shows "+
				"whether there are changes, use berth plan diff)")}}
	return flags.verb(verb, func(d *compared, show *cli.Table[Compared]) error {
		refused, tried, err := d.try()
		if err != nil {
			return err
		}
		if len(refused) > 0 {
			return d.tell(refused)
		}
		all := Compared{Changes: d.difference.Changes, Transactions: len(d.transactions), Applied: !dryRun}
		if dryRun {
			if !tried {
				d.Warn(d.untried())
			}
			return show.Object(&all, func(w io.Writer) error { return d.said(w, "would make") })
		}
		if err := d.make(); err != nil {
			return err
		}
		return show.Object(&all, func(w io.Writer) error { return d.said(w, "made") })
	})
}

// make makes the edits, transaction by transaction. If one is refused, the error says how many were made before.
func (d *compared) make() error {
	for i, step := range d.transactions {
		out, err := d.Edit(d, client.EditOptions{}, edits(step.Edits)...)
		if err != nil && i > 0 {
			return fmt.Errorf("%w; %d of %s were completed before, and stay; fix this, then apply the document again",
				d.refusal(err, step.Edits), i, cli.Counted(len(d.transactions), "transaction"))
		}
		if err != nil {
			return d.refusal(err, step.Edits)
		}
		for _, r := range out.Results {
			d.Warn(r.Warnings...)
		}
	}
	return nil
}

// said prints the changes that were made, or would be.
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
