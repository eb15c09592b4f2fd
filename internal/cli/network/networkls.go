package network

import (
	"maps"
	"slices"
	"strings"

	"berth/internal/cli"
	"berth/internal/ipam"
)

const networkListHelp = `Lists networks by name: planned ones, and those that Berth created for Docker. The
latter have Docker's name, or net- and the start of their id if the name is unknown. USE is the share of the
pools that is held, reserved or in quarantine. 100% means that no address is free, 0% that none is in use.
HELD counts held addresses, RESERVED reserved ones, held or not. --format wide adds the reserved addresses
without a holder (IDLE) and the Docker networks (DOCKER).

-q prints ids, which berth network rm takes.`

func networkListCommand() cli.Row {
	var space string
	return cli.Listing[ipam.NetworkInfo]{
		Verb: cli.Verb{Use: "ls", Short: "List networks", Long: networkListHelp,
			Example: `  berth network ls
  berth network ls --space global
  berth network ls --sort use --watch
  berth network ls --format '{{.Name}} {{index .Tags "site"}}'`,
			Flags: cli.Flags{cli.SpaceFlag(&space)}},
		Keys: cli.Fields{"network=Name,ID", "space", cli.ByAny("host", linkedHosts), "tag",
			cli.Choice("kind=Type", networkTypes...), cli.By("state", networkState, planned, unplanned)},
		ColumnsOf: networkColumns,
		Fetch: func(r *cli.Run) ([]ipam.NetworkInfo, error) {
			all, err := r.Networks(r, space)
			slices.SortStableFunc(all, func(a, b ipam.NetworkInfo) int { return strings.Compare(a.Name, b.Name) })
			return all, err
		},
	}
}

// States of networks for --filter. A planned network stays after its last Docker network is removed.
const (
	planned   = "planned"
	unplanned = "unplanned"
)

func networkState(n *ipam.NetworkInfo) string {
	if n.Planned {
		return planned
	}
	return unplanned
}

func linkedHosts(n *ipam.NetworkInfo) (hosts []string) {
	for _, l := range n.Links {
		hosts = append(hosts, l.Host)
	}
	return hosts
}

func networkColumns(out cli.Output) cli.Fields {
	some := 1 // subnets shown; 0 is all
	if out.NoTrunc || out.Wide() {
		some = 0
	}
	id := func(n *ipam.NetworkInfo) string { return cli.ShortID(n.ID, out.NoTrunc) }
	return cli.Fields{
		cli.RefCol(id), "Name",
		cli.Col("SUBNETS", func(n *ipam.NetworkInfo) string { return cli.SomeSubnets(n.Subnets, some) }),
		cli.UseCol(out, func(n *ipam.NetworkInfo) ipam.Use { return n.Use }), "HELD=Use.Leased", "RESERVED=Use.Reservations",
		"IDLE=Use.Reserved,wide", "Space,wide", cli.Col("ID", id).Wide(), "Type,wide", "Docker,wide",
		cli.Col("TAGS", func(n *ipam.NetworkInfo) string { return tagText(n.Tags) }).Wide(),
	}
}

func tagText(tags map[string]string) string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		texts = append(texts, key+"="+tags[key])
	}
	return strings.Join(texts, ",")
}
