package main

import (
	"berth/internal/cli"
	"berth/internal/cli/compose"
	"berth/internal/cli/daemon"
	"berth/internal/cli/deploy"
	"berth/internal/cli/document"
	"berth/internal/cli/elastic"
	"berth/internal/cli/host"
	"berth/internal/cli/lease"
	"berth/internal/cli/look"
	"berth/internal/cli/names"
	"berth/internal/cli/network"
	"berth/internal/cli/owner"
	"berth/internal/cli/pin"
	"berth/internal/cli/seen"
	"berth/internal/cli/witness"

	"github.com/spf13/cobra"
)

const rootHelp = `Berth gives Docker networks and containers IP addresses, and keeps each address for its owner.

"berth serve" is the daemon. The other commands send requests to it. They find it by themselves: a daemon of this
host, or a managed plugin of this host's Docker Engine.`

func rootCommand(p *cli.Program, on surroundings) *cobra.Command {
	root := &cobra.Command{
		Use:           "berth",
		Short:         "Durable IP addresses for Docker networks and containers",
		Long:          rootHelp,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	p.Hang(root, topics(p, on)...)
	return root
}

// topics returns all commands by topic.
func topics(p *cli.Program, on surroundings) []cli.Topic {
	return []cli.Topic{
		{Title: "Addresses in use", Commands: []cli.Row{
			lease.Command(p), lease.WhoCommand(), lease.EventsCommand(p), look.FindCommand(), look.InspectCommand(),
			seen.PageCommand(), daemon.CheckCommand(),
		}},
		{Title: "The plan", Commands: []cli.Row{
			network.Command(p), network.SubnetCommand(), network.PoolCommand(),
			network.ExclusionCommand(), owner.ReservationCommand(), owner.AddressCommand(), document.Command(),
		}},
		{Title: "Containers", Commands: []cli.Row{
			pin.Command(p), pin.UnpinCommand(), compose.Command(), deploy.Command(p), compose.AdoptCommand(),
			compose.LeaveCommand(), owner.IPCommand(), witness.Command(),
		}},
		{Title: "The LAN, and addresses that move", Commands: []cli.Row{
			elastic.Command(), edgeCommand(), network.LANCommand(p), names.Command(),
		}},
		{Title: "The daemon and its state", Commands: []cli.Row{
			serveCommand(on), daemon.StatusCommand(p), host.Command(), daemon.TokenCommand(),
			stateCommand(),
		}},
		{Title: "This command", Commands: []cli.Row{daemon.VersionCommand(), daemon.BugReportCommand()}},
	}
}
