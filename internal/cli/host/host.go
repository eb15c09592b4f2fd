// Package host has the commands for a cluster: its hosts, and the repair of a shared store that went back in time.
// Nothing is released until a person has seen the list and confirmed.
//
// host.go lists, shows, drains and admits hosts. remove.go removes a host: it shows what that releases, asks, and waits
// until the host has left. mend.go asks this host's daemon to do its part of a repair.
package host

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

// Command is `berth host`.
func Command(p *cli.Program) *cobra.Command {
	return cli.Group("host", "Hosts that share a store", hostListCommand(p), hostShowCommand(p), hostDrainCommand(p),
		hostRemoveCommand(p), hostAdmitCommand(p))
}

const hostListHelp = `Lists the hosts that share a store (berth serve --store etcd), removed ones last. SELF
marks the host
whose daemon answers. PRESENT shows whether a host's daemon is there now; if not, the host keeps its addresses. POOLS
counts its Docker networks, LEASES the addresses on them, and HEADROOM the addresses that it claimed in advance.
--format wide adds when each daemon started, and its version.`

func hostListCommand(p *cli.Program) *cobra.Command {
	return cli.Listing[ipam.HostInfo]{
		Verb: cli.Verb{Use: "ls", Short: "List hosts", Long: hostListHelp,
			Example: "  berth host ls\n  berth host ls -q\n  berth host ls --format json"},
		Keys:    hostKeys(),
		Columns: hostColumns,
		Fetch: func(ctx context.Context, c *client.Client, _ []string) ([]ipam.HostInfo, error) {
			return c.Hosts(ctx)
		},
	}.Command(p)
}

func hostKeys() []cli.Key[ipam.HostInfo] {
	return []cli.Key[ipam.HostInfo]{
		cli.By(cli.KeyHost, func(h *ipam.HostInfo) string { return h.Name }),
		cli.By(cli.KeyState, func(h *ipam.HostInfo) string { return cli.StateText(h.State) }, cli.StateText(""),
			string(ipam.HostDraining), string(ipam.HostLeaving), string(ipam.HostRemoved)),
	}
}

func hostColumns(cli.Output) []cli.Column[ipam.HostInfo] {
	return []cli.Column[ipam.HostInfo]{
		cli.Col("NAME", func(h *ipam.HostInfo) string { return h.Name }),
		cli.Col("SELF", func(h *ipam.HostInfo) string { return cli.Mark(h.Self) }),
		cli.StateCol("STATE", func(h *ipam.HostInfo) string { return cli.StateText(h.State) }),
		cli.Col("PRESENT", func(h *ipam.HostInfo) string { return cli.YesNo(h.Present) }).
			Stands(func(h *ipam.HostInfo) cli.Alarm {
				if h.Present {
					return ""
				}
				return cli.Wrong
			}),
		cli.Col("POOLS", func(h *ipam.HostInfo) string { return strconv.Itoa(h.Pools) }),
		cli.Col("LEASES", func(h *ipam.HostInfo) string { return strconv.Itoa(h.Leases) }),
		cli.Col("HEADROOM", func(h *ipam.HostInfo) string { return strconv.Itoa(h.Headroom) }),
		cli.WideCol("STARTED", func(h *ipam.HostInfo) string { return cli.ShortTime(h.Started) }),
		cli.WideCol("VERSION", func(h *ipam.HostInfo) string { return h.Version }),
	}
}

const hostShowHelp = `Shows a host that shares the store, and what "berth host rm" would release: its Docker
networks, the
addresses held on them (the first ones by name), and its headroom.`

func hostShowCommand(p *cli.Program) *cobra.Command {
	return cli.Showing[ipam.HostInfo]{
		Verb: cli.Verb{Use: "show HOST", Short: "Show a host and what it holds", Long: hostShowHelp,
			Refs: []cli.Refs{hostRefs},
			Example: "  berth host show b\n  berth host show b --format json\n" +
				"  berth host show b --format '{{.State}}'"},
		Fetch: func(ctx context.Context, c *client.Client, args []string) (ipam.HostInfo, error) {
			return c.Host(ctx, args[0])
		},
		Text: writeHost,
	}.Command(p)
}

func writeHost(w io.Writer, h *ipam.HostInfo) error {
	pg := &cli.Page{}
	pg.Line("HOST %s", h.Name)
	pg.Entry("id", h.ID.String())
	pg.Entry("state", cli.StateText(h.State))
	pg.Entry("present", cli.YesNo(h.Present))
	pg.Entry("joined", cli.LocalTime(h.Joined))
	pg.Entry("started", cli.LocalTime(h.Started))
	pg.Entry("version", h.Version)
	pg.Entry("holds", holdsText(h))
	return pg.Show(w)
}

// holdsText says what a host holds.
func holdsText(h *ipam.HostInfo) string {
	if h.Pools == 0 {
		return "nothing"
	}
	text := fmt.Sprintf("%s with %s", cli.Counted(h.Pools, "Docker network"), addressesText(h.Leases, h.First))
	if h.Headroom > 0 {
		text += fmt.Sprintf(", and %d more as headroom", h.Headroom)
	}
	return text
}

// addressesText counts addresses, and names the first of them.
func addressesText(n int, first []netip.Addr) string {
	if n == 0 {
		return "no address in use"
	}
	names := make([]string, len(first))
	for i, a := range first {
		names[i] = a.String()
	}
	if n > len(first) {
		names = append(names, "...")
	}
	if n == 1 {
		return "1 address in use (" + strings.Join(names, ", ") + ")"
	}
	return fmt.Sprintf("%d addresses in use (%s)", n, strings.Join(names, ", "))
}

const hostDrainHelp = `Stops a host from taking new addresses and creating Docker networks in the cluster's
spaces. It keeps
what it has, and releases it as its containers end. --undo ends the drain.`

func hostDrainCommand(p *cli.Program) *cobra.Command {
	var undo bool
	cmd := cli.Change{
		Verb: cli.Verb{Use: "drain HOST...", Short: "Stop hosts from taking new addresses", Long: hostDrainHelp,
			Args:    cli.Some("HOST"),
			Refs:    []cli.Refs{hostRefs},
			Example: "  berth host drain b\n  berth host drain b --undo"},
		PerArg: func(host string) (ipam.Edit, error) { return &ipam.DrainHost{Name: host, Undo: undo}, nil },
	}.Command(p)
	cmd.Flags().BoolVar(&undo, "undo", false, "let it take them again")
	return cmd
}

const hostAdmitHelp = `Lets a removed host take part again. It holds nothing at first. Others may have its
former addresses now.
So stop its containers on networks of the cluster first, and start them again afterwards.`

func hostAdmitCommand(p *cli.Program) *cobra.Command {
	return cli.Change{
		Verb: cli.Verb{Use: "admit HOST", Short: "Let a removed host take part again", Long: hostAdmitHelp,
			Refs: []cli.Refs{hostRefs}, Example: "  berth host admit b"},
		Edits: func(_ *cobra.Command, args []string) ([]ipam.Edit, error) {
			return cli.One(&ipam.AdmitHost{Name: args[0]}, nil)
		},
	}.Command(p)
}

func hostRefs(ctx context.Context, c *client.Client, _ string) (names []string, err error) {
	all, err := c.Hosts(ctx)
	for _, h := range all {
		names = append(names, h.Name+"\t"+cli.StateText(h.State))
	}
	return names, err
}
