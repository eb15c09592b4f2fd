package network

import (
	"errors"
	"fmt"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"
)

// LANCommand is `berth lan`.
func LANCommand(p *cli.Program) cli.Row {
	return cli.Group("lan", "The LANs of this host: who answers there", scanCommand())
}

const scanHelp = `Lists who answers on a network's LAN, by ARP and IPv6 neighbour discovery, with the MAC and
the record of
each address. berth edge sends the requests through the interface of the network (berth network modify --probe) or of
--parent. A scan takes about two seconds for each 256 addresses. It skips and names subnets with more than 4096
addresses.

The host's own addresses are listed with the interface's MAC. Containers whose parent is this interface do not hear
their host: macvlan and ipvlan prevent it.

--record takes each address that answers and has no holder for a device whose owner is its MAC, like berth address
take. It also takes excluded addresses, but no reserved or quarantined ones.`

func scanCommand() cli.Row {
	var parent string
	var record, warned bool
	return cli.Listing[api.LANPresence]{
		Verb: cli.Verb{Use: "scan NETWORK", Short: "List who answers on a network's LAN", Long: scanHelp,
			Example: `  berth lan scan home
  berth lan scan home --parent eth0 --format json
  berth lan scan home --record`,
			Flags: cli.Flags{
				cli.Flag(&parent, "parent",
					"the host's `INTERFACE` to the LAN (default: the network's --probe interface)").
					Words(),
				cli.Flag(&record, "record", "take each address that answers and has no holder for a device")}},
		Once: func() error {
			if record {
				return errors.New("--record works with one scan only; leave out --watch")
			}
			return nil
		},
		Said: true,
		Columns: cli.Fields{"Address", "MAC",
			cli.Field[api.LANPresence]("State").Stands(func(a *api.LANPresence) cli.Alarm {
				if a.State == ipam.AddressFree { // the next container may get it
					return cli.Wrong
				}
				return ""
			}),
			"Holder", "Note,wide"},
		Fetch: func(r *cli.Run) ([]api.LANPresence, error) {
			scan, err := r.Scan(r, r.Args[0], parent)
			if err != nil {
				return nil, err
			}
			if !warned {
				warned = len(scan.Skipped) > 0
				for _, sub := range scan.Skipped {
					fmt.Fprintf(r.Stderr,
						"berth lan scan: the subnet %s has too many addresses, so it is not scanned\n", sub)
				}
			}
			if record {
				err = recorded(r, &scan)
			}
			return scan.Answered, err
		},
	}
}

// recorded records devices for addresses that nobody holds, and says so.
func recorded(r *cli.Run, scan *api.LANScan) error {
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
	_, err := r.EditInSteps(client.EditOptions{}, edits,
		func(edit int) string { return of[edit].Address.String() })
	if err != nil {
		return err
	}
	for _, a := range of {
		a.State, a.Holder = ipam.AddressLeased, a.MAC.String()
	}
	return nil
}
