package network

import (
	"fmt"
	"io"
	"strings"

	"berth/internal/alloc"
	"berth/internal/cli"
	"berth/internal/ipam"

	"go4.org/netipx"
)

const networkShowHelp = `Shows a network with its plan, and a map of each pool. One character is one address:
X held, quarantined or idle (reserved, without a holder), - excluded, . free. A line starts with its first
address and has 64. One line replaces more than four equal lines. Pools of more than 65,536 addresses have no map.

NETWORK is a name, an id or the name of a Docker network. A dual-stack Docker network is two networks; the
command shows both.

--format json prints one object per network, with its subnets, and start, end, map and free of each pool. Its
map shows excluded addresses as X too.`

func networkShowCommand() cli.Row {
	return cli.Showing[ipam.NetworkInfo]{
		Verb: cli.Verb{Use: "show NETWORK", Short: "Show a network and the map of its pools", Long: networkShowHelp,
			Example: `  berth network show net1
  berth network show net1 --format json
  berth network show net1 --format '{{range .Subnets}}{{.CIDR}} {{end}}'`},
		JSON: "one object",
		Each: func(r *cli.Run) ([]ipam.NetworkInfo, error) {
			return r.NetworksOf(r.Args[0])
		},
		Text: writeNetwork,
	}
}

// page is the page of a network.
type page struct {
	cli.Page
	drawn bool // it has a map
}

// legendText explains the marks of a map, in the words and the order of the page.
func legendText(between string) string {
	var all []string
	for _, mark := range []byte{ipam.MarkTaken, ipam.MarkExcluded, ipam.MarkFree} {
		all = append(all, string(mark)+" "+ipam.MarkWords(mark))
	}
	return strings.Join(all, between)
}

// writeNetwork writes the page of a network.
func writeNetwork(w io.Writer, n *ipam.NetworkInfo) error {
	pg := &page{}
	pg.network(n)
	for i := range n.Subnets {
		pg.subnet(&n.Subnets[i])
	}
	if pg.drawn {
		pg.Line("")
		pg.Line("%s", legendText("   "))
	}
	return pg.Show(w)
}

func useText(use *ipam.Use, docker int) string {
	return fmt.Sprintf("%d held, %s, %s", use.Leased, use.ReservedText(), cli.Counted(docker, "Docker network"))
}

func (pg *page) subnet(s *ipam.SubnetPlan) {
	pg.Line("")
	pg.Line("SUBNET %s  %s", s.CIDR, s.Name)
	pg.Entry("id", s.ID.String())
	gateway := "none"
	if s.Gateway.IsValid() {
		gateway = strings.TrimSuffix(s.Gateway.String()+"  "+s.GatewayNote, "  ")
	}
	pg.Entry("gateway", gateway)
	switch {
	case s.FromDHCP():
		pg.Entry("dhcp", fmt.Sprintf("asked by %s as %s", s.DHCPParent, s.DHCPID))
	case s.DHCP:
		pg.Entry("dhcp", "yes")
	}
	pg.Entry("note", s.Note)
	pg.Entry("in use", useText(&s.Use, s.Docker))
	for i := range s.Pools {
		pg.pool(&s.Pools[i], s.Exclusions)
	}
	if len(s.Pools) == 0 && !s.FromDHCP() {
		pg.Line("  no pool: Berth assigns an address only on request")
	}
	for _, e := range s.Exclusions {
		pg.Line("  EXCLUDED %s  %s", alloc.FormatRange(netipx.IPRangeFrom(e.Start, e.End)), e.Note)
	}
}

func (pg *page) pool(p *ipam.PoolPlan, excluded []ipam.ExclusionPlan) {
	r := netipx.IPRangeFrom(p.Start, p.End)
	text := alloc.FormatRange(r)
	if p.Name != "" {
		text = p.Name + "  " + text
	}
	size, undrawn := ipam.Count{Int: alloc.Size(r)}, ""
	if p.Map == "" {
		undrawn = "; too many to draw"
	}
	pg.Line("  POOL %s  %s of %s free%s", text, p.Free.TextOf(size), size.Text(), undrawn)
	if p.Map == "" {
		return
	}
	pg.drawn = true
	rows := foldMap(p.Start, excludedIn(p, excluded))
	width := 0
	for _, row := range rows {
		width = max(width, len(row.label))
	}
	for _, row := range rows {
		pg.Line("    %-*s  %s", width, row.label, row.text)
	}
}
