package elastic

import (
	"context"
	"errors"
	"fmt"
	"io"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"
)

const checkHelp = `Looks for what keeps elastic addresses of this host from working. A sentence explains each
finding and what to do. It changes nothing. berth check reports these findings, too.

  edge_away         no edge is connected on a host where addresses are to be mapped
  unmapped_elastic  the edge has not mapped an address for more than five seconds; with its error, if any
  guest_gone        an address is associated with a container that no longer exists
  missing_device    a range is announced at a network device that the host does not have
  firewall_in_way   the engine's firewall drops incoming packets; with the option that its network needs
  published_elastic a container publishes ports and has an elastic address, or has no system address for that reason
  no_system_address a container needs a system address, but none is free

Exit code 0: nothing was found. 2: there are findings. 1: the check could not look.`

func checkCommand(p *cli.Program) cli.Row {
	return cli.Showing[ipam.CheckReport]{
		Verb: cli.Verb{Use: "check", Short: "Find problems with elastic addresses",
			Long:    checkHelp,
			Example: "  berth elastic check\n  berth elastic check --format json"},
		JSON: "the report, one object",
		Fetch: func(ctx context.Context, c *client.Client, _ []string) (ipam.CheckReport, error) {
			return c.CheckElastic(ctx)
		},
		Text: writeFindings,
		Then: func(r *ipam.CheckReport) error {
			if r.Engine == ipam.NoEngine {
				fmt.Fprintln(p.Err, "berth elastic check: the daemon reads no engine, so that some findings could not be "+
					"checked")
			}
			return leftOf(r)
		},
	}
}

func writeFindings(w io.Writer, r *ipam.CheckReport) error {
	for i := range r.Findings {
		f := &r.Findings[i]
		what := string(f.Kind)
		if f.Address.IsValid() {
			what += "  " + f.Address.String()
		}
		if _, err := fmt.Fprintf(w, "%s\n  %s\n", what, cli.Printable(f.Detail)); err != nil {
			return err
		}
	}
	if len(r.Findings) == 0 && r.Trouble == "" {
		_, err := fmt.Fprintf(w, "nothing is wrong on %s\n", cli.Printable(r.Host))
		return err
	}
	return nil
}

// leftOf is the error that ends a check which found something, or could not look at everything.
func leftOf(r *ipam.CheckReport) error {
	switch {
	case r.Engine == ipam.EngineUnreachable:
		return fmt.Errorf("the engine could not be asked: %s", r.Trouble)
	case r.Trouble != "":
		return errors.New(r.Trouble)
	case len(r.Findings) > 0:
		return cli.Difference(cli.Counted(len(r.Findings), "finding") + " left")
	}
	return nil
}
