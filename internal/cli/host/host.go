// Package host has the commands for a cluster: its hosts, and the repair of a shared store that went back in time.
// Nothing is released until a person has seen a list of what is to be released, and confirmed it.
//
// host.go lists, shows, drains and admits hosts. remove.go removes a host: it shows what that releases, asks, and waits
// until the host has left. mend.go asks this host's daemon to do its part of a repair.
package host

import (
	"fmt"
	"io"
	"net/netip"
	"strings"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"
)

// Command is `berth host`.
func Command() cli.Row {
	return cli.Group("host", "Hosts that share a store", hostListCommand(), hostShowCommand(), hostDrainCommand(),
		hostRemoveCommand(), hostAdmitCommand())
}

const hostListHelp = `Lists the hosts that share a store (berth serve --store etcd), removed ones last. SELF
marks the host
whose daemon answers. PRESENT shows whether a host's daemon is connected now; a host keeps its addresses while
it is not. POOLS counts the host's Docker networks, LEASES the addresses in use on them, and HEADROOM the addresses
that the host claimed in advance. --format wide adds each daemon's start time and version.`

func hostListCommand() cli.Row {
	return cli.Listing[ipam.HostInfo]{
		Verb: cli.Verb{Use: "ls", Short: "List hosts", Long: hostListHelp,
			Example: "  berth host ls\n  berth host ls -q\n  berth host ls --format json"},
		Keys: cli.Fields{"host=Name", cli.By("state", stateText, "active",
			string(ipam.HostDraining), string(ipam.HostLeaving), string(ipam.HostRemoved))},
		Columns: cli.Fields{
			"Name", cli.Col("SELF", func(h *ipam.HostInfo) string { return cli.Mark(h.Self) }),
			cli.Col("STATE", stateText).Marked(),
			cli.Field[ipam.HostInfo]("Present").Stands(func(h *ipam.HostInfo) cli.Alarm {
				if h.Present {
					return ""
				}
				return cli.Wrong
			}),
			"Pools", "Leases", "Headroom", "Started,wide", "Version,wide",
		},
		Fetch: cli.All((*client.Client).Hosts),
	}
}

func stateText(h *ipam.HostInfo) string { return cli.StateText(h.State) }

const hostShowHelp = `Shows a host that shares the store, and what "berth host rm" would release: its Docker
networks, the
addresses held on them (it lists only the first ones), and its headroom.`

func hostShowCommand() cli.Row {
	return cli.Showing[ipam.HostInfo]{
		Verb: cli.Verb{Use: "show HOST", Short: "Show a host and what it holds", Long: hostShowHelp,
			Refs: []cli.Refs{hostRefs},
			Example: `  berth host show b
  berth host show b --format json
  berth host show b --format '{{.State}}'`},
		JSON: "one object",
		Fetch: func(r *cli.Run) (ipam.HostInfo, error) {
			return r.Host(r, r.Args[0])
		},
		Text: writeHost,
	}
}

func writeHost(w io.Writer, h *ipam.HostInfo) error {
	pg := &cli.Page{}
	pg.Line("HOST %s", h.Name)
	pg.Entry("id", h.ID.String())
	pg.Entry("state", stateText(h))
	pg.Entry("present", cli.YesNo(h.Present))
	pg.Entry("joined", cli.LocalTime(h.Joined))
	pg.Entry("started", cli.LocalTime(h.Started))
	pg.Entry("version", h.Version)
	pg.Entry("holds", holdsText(h))
	return pg.Show(w)
}

// holdsText describes the addresses that a host has.
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

// addressesText counts addresses and lists the first ones.
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
spaces. The host
keeps its addresses, and releases each one when its container ends. --undo ends the drain.`

func hostDrainCommand() cli.Row {
	var undo bool
	return cli.Change{
		Verb: cli.Verb{Use: "drain HOST...", Short: "Stop hosts from taking new addresses", Long: hostDrainHelp,
			Refs:    []cli.Refs{hostRefs},
			Example: "  berth host drain b\n  berth host drain b --undo",
			Flags:   cli.Flags{cli.Flag(&undo, "undo", "let the hosts take new addresses again")}},
		PerArg: func(host string) (ipam.Edit, error) { return &ipam.DrainHost{Name: host, Undo: undo}, nil },
	}
}

const hostAdmitHelp = `Lets a removed host take part in the cluster again. The host holds nothing at first, and
other hosts may have its former addresses now. So stop its containers on networks of the cluster first, and start
them again afterwards.`

func hostAdmitCommand() cli.Row {
	return cli.Change{
		Verb: cli.Verb{Use: "admit HOST", Short: "Let a removed host take part again", Long: hostAdmitHelp,
			Refs: []cli.Refs{hostRefs}, Example: "  berth host admit b"},
		Edit: func(args []string) (ipam.Edit, error) {
			return &ipam.AdmitHost{Name: args[0]}, nil
		},
	}
}

var hostRefs = cli.NamesOf((*client.Client).Hosts,
	func(h *ipam.HostInfo) string { return h.Name + "\t" + stateText(h) })
