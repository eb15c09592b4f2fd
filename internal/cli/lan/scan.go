// Package lan has `berth lan scan`, the command that lists who is on a LAN. A scan changes nothing without --record.
package lan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// Command is `berth lan`.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("lan", "The LANs of this host: who answers there", scanCommand(p))
}

const scanHelp = `Lists who answers on a network's LAN, by ARP and IPv6 neighbour discovery, with the MAC and
the record of
each address. berth edge sends the questions through the interface of the network (berth network modify --probe) or of
--parent. A scan takes about two seconds for each 256 addresses. It skips and names subnets with more than 4096
addresses.

The host's own addresses are listed with the interface's MAC. Containers whose parent is this interface do not hear
their host: macvlan and ipvlan prevent it.

--record takes each address that answers and has no holder for a device whose owner is its MAC, like berth address
take. It also takes excluded addresses, but no reserved or quarantined ones.`

func scanCommand(p *cli.Program) *cobra.Command {
	var out cli.Output
	var parent string
	var record bool
	cmd := cli.Verb{Use: "scan NETWORK", Short: "List who answers on a network's LAN", Long: scanHelp,
		Refs:    []cli.Refs{cli.NetworkRefs},
		Example: "  berth lan scan home\n  berth lan scan home --parent eth0 --format json\n  berth lan scan home --record",
	}.Command(p)
	out.TableFlags(p, cmd)
	f := cmd.Flags()
	f.StringVar(&parent, "parent", "", "the host's `INTERFACE` to the LAN (default: that which the network is probed by)")
	f.BoolVar(&record, "record", false, "take what nobody has by the records for devices")
	cli.Completes(cmd, "parent", cobra.NoFileCompletions)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if record && out.Watched() {
			return cli.Usage(cmd, errors.New("--record takes what answers once; leave --watch out"))
		}
		if _, err := cli.NewTable(p.Out, cmd, out, columns()); err != nil {
			return err
		}
		return p.Ask(cmd, func(ctx context.Context, c *client.Client) error {
			var told []netip.Prefix // of the subnets that are left out
			return out.Show(ctx, p, func(ctx context.Context, w io.Writer) error {
				show, err := cli.NewTable(w, cmd, out, columns())
				if err != nil {
					return err
				}
				scan, err := c.Scan(ctx, args[0], parent)
				if err != nil {
					return err
				}
				if told == nil {
					told = scan.Skipped
					for _, sub := range told {
						fmt.Fprintf(p.Err, "%s: subnet %s has too many addresses, and is left out\n",
							cmd.CommandPath(), sub)
					}
				}
				if record {
					if err := recorded(ctx, c, &scan); err != nil {
						return err
					}
				}
				return show.Rows(scan.Answered)
			})
		})
	}
	return cmd
}

func columns() []cli.Column[api.LANPresence] {
	return []cli.Column[api.LANPresence]{
		cli.Col("ADDRESS", func(a *api.LANPresence) string { return a.Address.String() }).Names(),
		cli.Col("MAC", func(a *api.LANPresence) string { return a.MAC.String() }),
		cli.Col("STATE", func(a *api.LANPresence) string { return string(a.State) }).
			Stands(func(a *api.LANPresence) cli.Alarm {
				if a.State == ipam.AddressFree { // the next container may be given it
					return cli.Wrong
				}
				return ""
			}),
		cli.Col("HOLDER", func(a *api.LANPresence) string { return a.Holder }),
		cli.WideCol("NOTE", func(a *api.LANPresence) string { return a.Note }),
	}
}

// recorded takes what nobody has for devices, and says so of it.
func recorded(ctx context.Context, c *client.Client, scan *api.LANScan) error {
	var edits []ipam.Edit
	var of []*api.LANPresence
	for i := range scan.Answered {
		a := &scan.Answered[i]
		if a.State != ipam.AddressFree && a.State != ipam.AddressOutside && a.State != ipam.AddressExcluded {
			continue
		}
		note := "answered on " + scan.Parent
		edits = append(edits, &ipam.TakeAddress{Network: scan.NetworkID.String(), Owner: a.MAC.String(), Force: true,
			Note: &note, Interface: ipam.Interface{Number: -1, Action: ipam.AddInterface,
				Wishes: []ipam.Wish{{Address: a.Address}}}})
		of = append(of, a)
	}
	if len(edits) == 0 {
		return nil
	}
	_, err := cli.EditInSteps(ctx, c, client.EditOptions{}, edits,
		func(edit int) string { return of[edit].Address.String() })
	if err != nil {
		return err
	}
	for _, a := range of {
		a.State, a.Holder = ipam.AddressLeased, a.MAC.String()
	}
	return nil
}
