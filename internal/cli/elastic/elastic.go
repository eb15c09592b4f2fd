// Package elastic has the commands for elastic addresses: accounts, ranges, and the addresses themselves. Associating
// an address reports whether the mapping is active.
//
// account.go and range.go are for admins. address.go has the commands for one address; associate.go waits until the
// host's edge has mapped it. list.go lists them all.
package elastic

import (
	"fmt"
	"net/netip"

	"berth/internal/admin/client"
	"berth/internal/alloc"
	"berth/internal/cli"
	"berth/internal/ipam"
)

// Command is `berth elastic`.
func Command() cli.Row {
	return cli.Group("elastic", "Elastic addresses: they belong to an account, and move between containers",
		allocateCommand(), associateCommand(), disassociateCommand(), releaseCommand(), listCommand(),
		showCommand(), checkCommand(), usageCommand(),
		cli.Group("range", "Ranges from which Berth allocates elastic addresses", rangeAddCommand(),
			rangeListCommand(), rangeRemoveCommand()),
		cli.Group("account", "Accounts: which elastic addresses and containers belong together",
			accountCreateCommand(), accountListCommand(), accountRemoveCommand()))
}

func parseAddress(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%q is not an address", text)
	}
	return addr.Unmap(), nil
}

func parseRange(text string) (ipam.Range, error) {
	r, err := alloc.ParseRange(text)
	return ipam.Range{IPRange: r}, err
}

// addressRefs completes elastic addresses, each with its target.
func addressRefs(r *cli.Run, _ string) (names []string, err error) {
	all, err := r.Elastics(r, "")
	for i := range all {
		names = append(names, all[i].Address.String()+"\t"+targetText(&all[i]))
	}
	return names, err
}

var rangeRefs = cli.NamesOf((*client.Client).ElasticRanges,
	func(r *ipam.ElasticRangeInfo) string { return r.Range.String() })

// targetRefs completes owners of reservations, and running containers.
func targetRefs(r *cli.Run, _ string) (names []string, err error) {
	if names, err = cli.ReservationOwners(r, ""); err != nil {
		return nil, err
	}
	leases, err := r.Leases(r, ipam.LeaseFilter{})
	for _, l := range leases {
		if l.Name != "" && l.Owner == "" {
			names = append(names, l.Name)
		}
	}
	return names, err
}
