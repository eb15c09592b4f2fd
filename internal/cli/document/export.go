package document

import (
	"io"
	"strings"

	"berth/internal/cli"
	"berth/internal/ipam"
	"berth/internal/plan"
)

const exportHelp = `Writes the plan as one YAML document. It has all planned networks with their subnets,
pools, exclusions, reservations and device addresses. It also has accounts and elastic addresses with their
ranges and associations. Docker's leases are not in it; use berth state backup for them. berth plan import
reads the document, here or in another Berth.

--csv writes one kind of object as a table with NetBox's column names: networks, subnets, pools, exclusions,
reservations or addresses. A ' protects cells that look like a formula; berth plan import removes it.

-o replaces FILE atomically. Only you can read a new file (mode 600).`

// Command is `berth plan`.
func Command() cli.Row {
	return cli.Group("plan", "Export, import, compare and apply the plan", exportCommand(),
		importCommand(), diffCommand(), applyCommand())
}

// exportCommand is `berth plan export`.
func exportCommand() cli.Row {
	var file, noun, network string
	return cli.Verb{Use: "export", Short: "Export the plan as a document or as tables", Long: exportHelp,
		Example: `  berth plan export
  berth plan export -o plan.yaml
  berth plan export --network net1
  berth plan export --csv subnets -o subnets.csv`,
		Flags: cli.Flags{
			cli.Flag(&file, "output", "write to `FILE` instead of standard output").Short("o"),
			cli.Flag(&noun, "csv",
				"write a table of one `NOUN`: "+strings.Join(plan.Nouns, ", ")).Words(plan.Nouns...),
			cli.Flag(&network, "network",
				"only the network `NETWORK`, by name or id, planned or not").Of(cli.NetworkRefs)},
		Run: func(r *cli.Run) error {
			writer := yamlWriter
			if noun != "" {
				writer = func(w io.Writer) (plan.Writer, error) { return plan.NewCSV(w, noun) }
			}
			if _, err := writer(io.Discard); err != nil {
				return r.Usagef("--csv is %q and must be one of %s", noun, strings.Join(plan.Nouns, ", "))
			}
			if err := r.Ask(); err != nil {
				return err
			}
			return cli.WriteWith(cli.PrivateMode, r.Out, file, func(w io.Writer) error {
				return export(r, network, w, writer)
			})
		}}
}

func yamlWriter(w io.Writer) (plan.Writer, error) { return plan.NewYAML(w), nil }

// export writes networks one at a time, as they arrive.
func export(r *cli.Run, network string, to io.Writer, writer func(io.Writer) (plan.Writer, error)) error {
	w, err := writer(to)
	if err != nil {
		return err
	}
	for n, err := range r.Export(r, network) {
		if err != nil {
			return err
		}
		if err := w.Write(&n); err != nil {
			return err
		}
	}
	all, can := w.(plan.ElasticWriter)
	if can && network == "" {
		elastic, err := exportElastic(r)
		if err != nil {
			return err
		}
		all.WriteElastic(elastic)
	}
	return w.Close()
}

// exportElastic returns all accounts, ranges and elastic addresses, for a document.
func exportElastic(r *cli.Run) (*ipam.PlannedElastic, error) {
	accounts, err := r.Accounts(r)
	if err != nil {
		return nil, err
	}
	ranges, err := r.ElasticRanges(r)
	if err != nil {
		return nil, err
	}
	addresses, err := r.Elastics(r, "")
	if err != nil {
		return nil, err
	}
	return ipam.PlanElastic(accounts, ranges, addresses), nil
}
