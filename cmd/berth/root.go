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
	"berth/internal/cli/network"
	"berth/internal/cli/owner"
	"berth/internal/cli/pin"
	"berth/internal/cli/witness"

	"github.com/spf13/cobra"
)

const rootHelp = `Berth gives Docker networks and containers addresses that are theirs, and keeps them theirs.

"berth serve" is the daemon. The other commands ask it over its admin socket; they find it by
themselves, be it a daemon of this host or a managed plugin of this host's Docker Engine.

Exit codes: 0 done; 1 refused, with the reason on standard error; 2 wrong usage.`

func rootCommand(p *cli.Program) *cobra.Command {
	root := &cobra.Command{
		Use:   "berth",
		Short: "Durable IP addresses for Docker networks and containers",
		Long:  rootHelp,
		Example: `  berth serve                               the daemon, as root
  docker network create --ipam-driver berth NAME
  berth network create NAME --subnet CIDR   plan a network before Docker uses it (--ipam-opt network=NAME)
  berth lease ls                            who has which address
  berth check                               whether what is given is what runs
  berth events --follow                     who takes and gives what, as it happens`,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	p.Hang(root, serveCommand(p), lease.Command(p), network.SubnetCommand(p), network.SpaceCommand(p),
		lease.EventsCommand(p),
		network.Command(p), network.PoolCommand(p), network.ExclusionCommand(p), owner.ReservationCommand(p),
		owner.AddressCommand(p), owner.EnvCommand(p), owner.IPCommand(p), lease.WhoCommand(p),
		daemon.StatusCommand(p), daemon.CheckCommand(p), witness.Command(p), compose.AdoptCommand(p),
		compose.Command(p), deploy.Command(p), pin.Command(p), pin.UnpinCommand(p), host.Command(p), elastic.Command(p),
		elastic.AccountCommand(p), edgeCommand(p),
		document.ExportCommand(p), document.ImportCommand(p), backupCommand(p), restoreCommand(p), storeCommand(p),
		fsckCommand(p), daemon.TokenCommand(p), daemon.VersionCommand(p))
	return root
}
