// Package elastic has the commands for elastic addresses: accounts, ranges, and the addresses themselves. Associating
// an address reports whether the mapping is active.
//
// account.go and range.go are for admins. address.go has the commands for one address; associate.go waits until the
// host's edge has mapped it. list.go lists them all.
package elastic

import (
	"context"
	"fmt"
	"net/netip"

	"berth/internal/admin/client"
	"berth/internal/alloc"
	"berth/internal/cli"
	"berth/internal/ipam"
)

// Command is `berth elastic`.
func Command(p *cli.Program) cli.Row {
	return cli.Group("elastic", "Elastic addresses: they belong to an account, and move between containers",
		allocateCommand(), associateCommand(p), disassociateCommand(), releaseCommand(), listCommand(),
		showCommand(), checkCommand(p), usageCommand(p),
		cli.Group("range", "Ranges out of which elastic addresses are allocated", rangeAddCommand(),
			rangeListCommand(), rangeRemoveCommand()),
		cli.Group("account", "Accounts: whose elastic addresses, and which containers, are whose",
			accountCreateCommand(), accountListCommand(), accountRemoveCommand()))
}

func parseAddress(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%q is no address", text)
	}
	return addr.Unmap(), nil
}

func parseRange(text string) (ipam.Range, error) {
	r, err := alloc.ParseRange(text)
	return ipam.Range{IPRange: r}, err
}

// addressRefs completes elastic addresses with what they are mapped to.
func addressRefs(ctx context.Context, c *client.Client, _ string) (names []string, err error) {
	all, err := c.Elastics(ctx, "")
	for i := range all {
		names = append(names, all[i].Address.String()+"\t"+targetText(&all[i]))
	}
	return names, err
}

var rangeRefs = cli.NamesOf((*client.Client).ElasticRanges,
	func(r *ipam.ElasticRangeInfo) string { return r.Range.String() })

// targetRefs completes owners: those of reservations, and the containers that run.
func targetRefs(ctx context.Context, c *client.Client, _ string) (names []string, err error) {
	if names, err = cli.ReservationOwners(ctx, c, ""); err != nil {
		return nil, err
	}
	leases, err := c.Leases(ctx, ipam.LeaseFilter{})
	for _, l := range leases {
		if l.Name != "" && l.Owner == "" {
			names = append(names, l.Name)
		}
	}
	return names, err
}
