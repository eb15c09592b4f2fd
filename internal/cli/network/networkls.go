package network

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const networkListHelp = `Lists networks by name: planned ones, and those that Berth created for Docker. The
latter have Docker's name, or net- and the start of their id if the name is unknown. USE is the share of the
pools that is held, reserved or in quarantine. 100% means that no address is free, 0% that none is in use.
HELD counts held addresses, RESERVED reserved ones. --format wide adds the Docker networks (DOCKER).

-q prints ids, which berth network rm takes.`

func networkListCommand(p *cli.Program) *cobra.Command {
	var space string
	cmd := cli.Listing[ipam.NetworkInfo]{
		Verb: cli.Verb{Use: "ls", Short: "List networks", Long: networkListHelp,
			Example: `  berth network ls
  berth network ls --space global
  berth network ls --sort use --watch
  berth network ls --format '{{.Name}} {{index .Tags "site"}}'`},
		Keys:    networkKeys(),
		Columns: networkColumns,
		Fetch: func(ctx context.Context, c *client.Client, _ []string) ([]ipam.NetworkInfo, error) {
			all, err := c.Networks(ctx, space)
			slices.SortStableFunc(all, func(a, b ipam.NetworkInfo) int { return strings.Compare(a.Name, b.Name) })
			return all, err
		},
	}.Command(p)
	p.SpaceFlag(cmd, &space)
	return cmd
}

// The states of networks for --filter: whether they stay when Docker leaves them.
const (
	planned   = "planned"
	unplanned = "unplanned"
)

func networkKeys() []cli.Key[ipam.NetworkInfo] {
	return []cli.Key[ipam.NetworkInfo]{
		cli.ByNetwork(func(n *ipam.NetworkInfo) string { return n.Name },
			func(n *ipam.NetworkInfo) ipam.ID { return n.ID }),
		cli.By(cli.KeySpace, func(n *ipam.NetworkInfo) string { return n.Space }),
		cli.ByAny(cli.KeyHost, func(n *ipam.NetworkInfo) (hosts []string) {
			for _, l := range n.Links {
				hosts = append(hosts, l.Host)
			}
			return hosts
		}),
		cli.ByTag(func(n *ipam.NetworkInfo) map[string]string { return n.Tags }),
		cli.By(cli.KeyKind, func(n *ipam.NetworkInfo) string { return n.Type }, networkTypes...),
		cli.By(cli.KeyState, func(n *ipam.NetworkInfo) string {
			if n.Planned {
				return planned
			}
			return unplanned
		}, planned, unplanned),
	}
}

func networkColumns(out cli.Output) []cli.Column[ipam.NetworkInfo] {
	some := 1 // of the subnets
	if out.NoTrunc || out.Wide() {
		some = 0
	}
	return []cli.Column[ipam.NetworkInfo]{
		cli.RefCol(func(n *ipam.NetworkInfo) string { return cli.ShortID(n.ID, out.NoTrunc) }),
		cli.Col("NAME", func(n *ipam.NetworkInfo) string { return n.Name }),
		cli.Col("SUBNETS", func(n *ipam.NetworkInfo) string { return cli.SomeSubnets(n.Subnets, some) }),
		cli.UseCol(out, func(n *ipam.NetworkInfo) ipam.Use { return n.Use }),
		cli.Col("HELD", func(n *ipam.NetworkInfo) string { return strconv.FormatUint(n.Use.Leased, 10) }),
		cli.Col("RESERVED", func(n *ipam.NetworkInfo) string { return strconv.FormatUint(n.Use.Reserved, 10) }),
		cli.WideCol("SPACE", func(n *ipam.NetworkInfo) string { return n.Space }),
		cli.WideCol("ID", func(n *ipam.NetworkInfo) string { return cli.ShortID(n.ID, out.NoTrunc) }),
		cli.WideCol("TYPE", func(n *ipam.NetworkInfo) string { return n.Type }),
		cli.WideCol("DOCKER", func(n *ipam.NetworkInfo) string { return strconv.Itoa(n.Docker) }),
		cli.WideCol("TAGS", func(n *ipam.NetworkInfo) string { return tagText(n.Tags) }),
	}
}

func tagText(tags map[string]string) string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		texts = append(texts, key+"="+tags[key])
	}
	return strings.Join(texts, ",")
}
