package document

import (
	"io"

	"berth/internal/cli"
)

const diffHelp = `Shows what berth plan apply would change, one line per change: + added, - removed, ~
changed. FILE is a document of berth plan export, or - for standard input. The command changes nothing.

Names identify networks, pools, accounts and owners with their slots. Subnets match by prefix, otherwise by
name, otherwise by overlap. So an edited address moves. Objects that are not in the document stay; --prune removes them.

The command tries the changes in a dry run. It lists each refusal with its line and the holder of the address.

Exit codes: 0 the plan matches the document; 1 refused; 2 it differs.`

// diffCommand is `berth plan diff`.
func diffCommand() cli.Row {
	var flags compareFlags
	verb := cli.Verb{Use: "diff FILE|-", Short: "Show what an edited document would change in the plan",
		Long: diffHelp,
		Example: `  berth plan export -o plan.yaml
  berth plan diff plan.yaml
  berth plan diff plan.yaml --prune --format json
  berth plan diff addresses.csv --csv reservations`}
	return flags.verb(verb, func(d *compared, show *cli.Table[Compared]) error {
		refused, tried, err := d.try()
		if err != nil {
			return err
		}
		all := Compared{Changes: d.difference.Changes, Transactions: len(d.transactions), Refused: refused}
		if err := show.Object(&all, func(w io.Writer) error { return lines(w, all.Changes) }); err != nil {
			return err
		}
		switch {
		case len(refused) > 0:
			return d.tell(refused)
		case !tried:
			d.Warn(d.untried())
		}
		if len(all.Changes) > 0 {
			return cli.Difference("")
		}
		return nil
	})
}
