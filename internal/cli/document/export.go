package document

import (
	"context"
	"io"
	"strings"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"
	"berth/internal/plan"

	"github.com/spf13/cobra"
)

const exportHelp = `Writes the plan as one YAML document. It has all planned networks with their subnets,
pools, exclusions, reservations and device addresses. It also has accounts and elastic addresses with their
ranges and associations. Docker's leases are not in it; use berth state backup for them. berth plan import
reads the document, here or in another Berth.

--csv writes one kind of object as a table with NetBox's column names: networks, subnets, pools, exclusions,
reservations or addresses. A ' protects cells that look like a formula; berth plan import removes it.

-o replaces FILE atomically. Only you can read a new file (mode 600).`

// Command is `berth plan`.
func Command(p *cli.Program) cli.Row {
	return cli.Group("plan", "Export, import, compare and apply the plan", exportCommand(p),
		importCommand(p), diffCommand(p), applyCommand(p))
}

// exportCommand is `berth plan export`.
func exportCommand(p *cli.Program) cli.Row {
	var file, noun, network string
	return cli.Verb{Use: "export", Short: "Export the plan as a document or as tables", Long: exportHelp,
		Example: `  berth plan export
  berth plan export -o plan.yaml
  berth plan export --network net1
  berth plan export --csv subnets -o subnets.csv`,
		Flags: cli.Flags{
			cli.Flag(&file, "output", "write to `FILE` instead of standard output").Short("o"),
			cli.Flag(&noun, "csv",
				"a table of one `NOUN`: "+strings.Join(plan.Nouns, ", ")).Words(plan.Nouns...),
			cli.Flag(&network, "network",
				"only the network `NETWORK`, by name or id, planned or not").Of(cli.NetworkRefs)},
		Run: func(cmd *cobra.Command, _ []string) error {
			writer := yamlWriter
			if noun != "" {
				writer = func(w io.Writer) (plan.Writer, error) { return plan.NewCSV(w, noun) }
			}
			if _, err := writer(io.Discard); err != nil {
				return cli.Usagef(cmd, "--csv is %q and must be one of %s", noun, strings.Join(plan.Nouns, ", "))
			}
			return p.Ask(cmd, func(ctx context.Context, c *client.Client) error {
				return cli.WriteWith(cli.PrivateMode, p.Out, file, func(w io.Writer) error {
					return export(ctx, c, network, w, writer)
				})
			})
		}}
}

func yamlWriter(w io.Writer) (plan.Writer, error) { return plan.NewYAML(w), nil }

// export writes the networks as they come.
func export(ctx context.Context, c *client.Client, network string, to io.Writer,
	writer func(io.Writer) (plan.Writer, error)) error {
	w, err := writer(to)
	if err != nil {
		return err
	}
	for n, err := range c.Export(ctx, network) {
		if err != nil {
			return err
		}
		if err := w.Write(&n); err != nil {
			return err
		}
	}
	all, can := w.(plan.ElasticWriter)
	if can && network == "" {
		elastic, err := exportElastic(ctx, c)
		if err != nil {
			return err
		}
		all.WriteElastic(elastic)
	}
	return w.Close()
}

// exportElastic is what there is of elastic addresses, for a document.
func exportElastic(ctx context.Context, c *client.Client) (*ipam.PlannedElastic, error) {
	accounts, err := c.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	ranges, err := c.ElasticRanges(ctx)
	if err != nil {
		return nil, err
	}
	addresses, err := c.Elastics(ctx, "")
	if err != nil {
		return nil, err
	}
	return ipam.PlanElastic(accounts, ranges, addresses), nil
}
