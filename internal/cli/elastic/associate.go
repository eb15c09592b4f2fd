package elastic

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const associateHelp = `Maps an elastic address to a container, and prints the address: what the container sends
comes from that address, and what is sent to the address reaches the container. TARGET is an owner such as
shop/web/1, a container's name, or a MAC. It has an address on a network with elastic addresses on (berth network
modify NETWORK --elastic on), by a reservation or because it runs. With a reservation the mapping holds from the
container's first packet on; without one it is made when the container starts.

--network and --guest select one of its addresses if it has several. --egress-only maps only what the container
sends; new connections to the address do not reach it. --move moves an address that is associated elsewhere, which
is otherwise refused.

It returns when the host's edge (berth edge) has mapped it. If no edge is connected, or this takes more than five
seconds, it reports that and succeeds: the edge maps the address as soon as it can.`

// The wait for the edge of the host.
const (
	edgePatience = 5 * time.Second
	edgeLook     = 50 * time.Millisecond
)

func associateCommand(p *cli.Program) *cobra.Command {
	var flags cli.EditFlags
	var edit ipam.AssociateElastic
	var guest string
	cmd := cli.Verb{Use: "associate ADDRESS TARGET", Short: "Map an address to a container", Long: associateHelp,
		Refs: []cli.Refs{addressRefs, targetRefs},
		Example: "  berth elastic associate 203.0.113.12 web\n" +
			"  berth elastic associate 203.0.113.12 shop/web/1 --egress-only\n" +
			"  berth elastic associate 203.0.113.12 web --network net1 --move --dry-run",
	}.Command(p)
	flags.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&edit.Network, "network", "", "on this `NETWORK`")
	f.StringVar(&guest, "guest", "", "this `ADDRESS` of the target")
	f.BoolVar(&edit.Move, "move", false, "also if the address is associated elsewhere")
	f.BoolVar(&edit.EgressOnly, "egress-only", false, "only what the target sends")
	cli.Completes(cmd, "network", p.CompleteFlag(cli.NetworkRefs))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := cli.NotEmpty(cmd, "network", "guest")
		if err == nil {
			edit.Address, err = parseAddress(args[0])
		}
		if err == nil && guest != "" {
			edit.Guest, err = parseAddress(guest)
		}
		if err != nil {
			return cli.Usage(cmd, err)
		}
		edit.Instance = args[1]
		e, err := p.Editor(cmd, flags)
		if err != nil {
			return err
		}
		defer e.Close()
		if err := e.Make(cli.SayAddresses, &edit); err != nil || flags.DryRun {
			return err
		}
		ctx, stop := cli.UntilSignal(cmd.Context())
		defer stop()
		warning := awaitEdge(ctx, e.Client, edit.Address)
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %s is associated, and not mapped yet; the edge maps it as soon as it can",
				cli.ErrInterrupted, edit.Address)
		}
		if warning != "" {
			fmt.Fprintf(p.Err, "%s: %s\n", cmd.CommandPath(), cli.Printable(warning))
		}
		return nil
	}
	return cmd
}

// awaitEdge waits until the edge of the host that has the guest has mapped an address; else it says what is amiss.
func awaitEdge(ctx context.Context, c *client.Client, addr netip.Addr) (warning string) {
	status, err := c.EdgeStatus(ctx)
	if err != nil {
		return fmt.Sprintf("%s is associated; whether it is mapped is not known: %v", addr, err)
	}
	ctx, cancel := context.WithTimeout(ctx, edgePatience)
	defer cancel()
	again := time.NewTicker(edgeLook)
	defer again.Stop()
	where, why := status.Host, ""
	for {
		info, err := c.Elastic(ctx, addr)
		if err == nil {
			where = cmp.Or(info.Host, status.Host)
			switch at := info.Applied; {
			case !info.Associated:
				return fmt.Sprintf("%s was disassociated meanwhile", addr)
			case at != nil && at.Error == "":
				return ""
			case at != nil && at.Host == where:
				return fmt.Sprintf("%s is associated, and the edge of host %s cannot map it: %s", addr, where, at.Error)
			case !edgeOn(&status, where):
				return fmt.Sprintf("%s is associated, and not mapped yet: no edge is connected on host %s; start one "+
					"(berth edge)", addr, where)
			case at != nil:
				why = ": " + at.Error
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Sprintf("%s is associated, and the edge of host %s has not mapped it within %s%s; it will as "+
				"soon as it can", addr, where, edgePatience, why)
		case <-again.C:
		}
	}
}

// edgeOn tells whether the edge of a host is told what to map.
func edgeOn(status *ipam.EdgeStatus, host string) bool {
	return host == status.Host && status.Connected > 0 || slices.Contains(status.Hosts, host)
}
