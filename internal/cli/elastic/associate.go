package elastic

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"berth/internal/cli"
	"berth/internal/ipam"
)

const associateHelp = `Maps an elastic address to a container, and prints the address: what the container sends
comes from that address, and what is sent to the address reaches the container. TARGET is an owner such as
shop/web/1, a container's name, or a MAC. The target must have an address, reserved or held, on a network that has
elastic addresses turned on (berth network modify NETWORK --elastic on). With a reservation, the mapping works from the
container's first packet on. Without one, Berth makes the mapping when the container starts.

--network and --guest select one of the target's addresses if it has several. --egress-only maps only what the container
sends; new connections to the address do not reach it. --move moves an address that is associated elsewhere, which
is otherwise refused.

The command returns when the host's edge (berth edge) has mapped the address. If no edge is connected, or this takes
more than five seconds, it reports that and succeeds: the edge maps the address as soon as it can.`

// How long to wait for the host's edge, and how often to look.
const (
	edgePatience = 5 * time.Second
	edgeLook     = 50 * time.Millisecond
)

func associateCommand() cli.Row {
	var edit ipam.AssociateElastic
	var guest string
	return cli.Change{
		Verb: cli.Verb{Use: "associate ADDRESS TARGET", Short: "Map an address to a container", Long: associateHelp,
			Refs: []cli.Refs{addressRefs, targetRefs},
			Example: `  berth elastic associate 203.0.113.12 web
  berth elastic associate 203.0.113.12 shop/web/1 --egress-only
  berth elastic associate 203.0.113.12 web --network net1 --move --dry-run`,
			Flags: cli.Flags{
				cli.Flag(&edit.Network, "network", "the `NETWORK` of the target's address").
					Of(cli.NetworkRefs).Filled(),
				cli.Flag(&guest, "guest", "the target's `ADDRESS`, if it has several").Filled(),
				cli.Flag(&edit.Move, "move", "move the address if it is associated elsewhere"),
				cli.Flag(&edit.EgressOnly, "egress-only", "map only what the target sends")},
			Check: func(r *cli.Run) (err error) {
				edit.Address, err = parseAddress(r.Args[0])
				if err == nil && guest != "" {
					edit.Guest, err = parseAddress(guest)
				}
				edit.Instance = r.Args[1]
				return err
			}},
		Make: func(e *cli.Editor) error {
			if err := e.Make(cli.SayAddresses, &edit); err != nil || e.DryRun {
				return err
			}
			r, stop := e.UntilSignal()
			defer stop()
			warning := awaitEdge(r, edit.Address)
			if r.Err() != nil {
				return fmt.Errorf("%w: %s is associated, but not mapped yet; the edge maps it as soon as it can",
					cli.ErrInterrupted, edit.Address)
			}
			if warning != "" {
				e.Note("%s", warning)
			}
			return nil
		}}
}

// awaitEdge waits until the edge of the guest's host has mapped an address. If it has not, awaitEdge returns why.
func awaitEdge(r *cli.Run, addr netip.Addr) (warning string) {
	status, err := r.EdgeStatus(r)
	if err != nil {
		return fmt.Sprintf("%s is associated, but Berth cannot tell whether it is mapped: %v", addr, err)
	}
	ctx, cancel := context.WithTimeout(r, edgePatience)
	defer cancel()
	again := time.NewTicker(edgeLook)
	defer again.Stop()
	where, why := status.Host, ""
	for {
		info, err := r.Elastic(ctx, addr)
		if err == nil {
			where = cmp.Or(info.Host, status.Host)
			switch at := info.Applied; {
			case !info.Associated:
				return fmt.Sprintf("%s was disassociated meanwhile", addr)
			case at != nil && at.Error == "":
				return ""
			case at != nil && at.Host == where:
				return fmt.Sprintf("%s is associated, but the edge of host %s cannot map it: %s", addr, where, at.Error)
			case !edgeOn(&status, where):
				return fmt.Sprintf("%s is associated, but not mapped yet: no edge is connected on host %s; start one "+
					"(berth edge)", addr, where)
			case at != nil:
				why = ": " + at.Error
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Sprintf("%s is associated, but the edge of host %s has not mapped it within %s%s; the edge "+
				"maps it as soon as it can", addr, where, edgePatience, why)
		case <-again.C:
		}
	}
}

// edgeOn reports whether the edge of a host is connected. Only then does it receive its mappings.
func edgeOn(status *ipam.EdgeStatus, host string) bool {
	return host == status.Host && status.Connected > 0 || slices.Contains(status.Hosts, host)
}
