package document

import (
	"context"
	"fmt"
	"io"
	"strings"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/plan"

	"github.com/spf13/cobra"
)

const exportHelp = `Writes the plan as one YAML document: all networks that are planned, with their subnets,
pools, exclusions, reservations, and the addresses of devices that are not containers, and all that there is of
elastic addresses: accounts, ranges, whose they are, and what they are associated with. What Docker holds is no
part of it; berth state backup keeps that. berth plan import reads it back, there or in another Berth.

--csv writes one kind of thing as a table for a spreadsheet, with the names of columns that NetBox has:
networks, subnets, pools, exclusions, reservations or addresses. A cell that a spreadsheet would take for a
formula has a ' before it, which berth plan import takes away.

A FILE (-o) is written whole or not at all, and replaces one that is there. A new one is for you alone (mode 600).`

// Command is `berth plan`.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("plan", "Write the plan as a document, add one to it, compare and apply one", exportCommand(p),
		importCommand(p), diffCommand(p), applyCommand(p))
}

// exportCommand is `berth plan export`.
func exportCommand(p *cli.Program) *cobra.Command {
	var file, noun, network string
	cmd := cli.Verb{Use: "export", Short: "Write the plan as a document or as tables", Long: exportHelp,
		Example: `  berth plan export
  berth plan export -o plan.yaml
  berth plan export --network net1
  berth plan export --csv subnets -o subnets.csv`}.Command(p)
	f := cmd.Flags()
	f.StringVarP(&file, "output", "o", "", "write to `FILE` instead of standard output")
	f.StringVar(&noun, "csv", "", "a table of one `NOUN`: "+strings.Join(plan.Nouns, ", "))
	f.StringVar(&network, "network", "", "only the network `NETWORK`, by name or id, planned or not")
	cli.Completes(cmd, "csv", cli.Words(plan.Nouns...))
	cli.Completes(cmd, "network", p.CompleteNetworks)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		writer := func(w io.Writer) (plan.Writer, error) { return plan.NewYAML(w), nil }
		if noun != "" {
			writer = func(w io.Writer) (plan.Writer, error) { return plan.NewCSV(w, noun) }
		}
		if _, err := writer(io.Discard); err != nil {
			return cli.Usage(cmd, fmt.Errorf("--csv is %q and must be one of %s", noun, strings.Join(plan.Nouns, ", ")))
		}
		return p.Ask(cmd, func(ctx context.Context, c *client.Client) error {
			return cli.WriteWith(cli.PrivateMode, p.Out, file, func(w io.Writer) error {
				return export(ctx, c, network, w, writer)
			})
		})
	}
	return cmd
}

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
