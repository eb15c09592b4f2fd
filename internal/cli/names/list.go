package names

import (
	"berth/internal/cli"
	"berth/internal/dns"
)

const listHelp = `Lists all names with their addresses, by KIND:

  long      OWNER.NETWORK.ZONE, the only name that a reverse query (PTR) for the address returns
  service   SERVICE.PROJECT.NETWORK.ZONE, with the addresses of all running containers of the service
  alias     the name of a container
  short     a name without its network, while it is unique

If two owners on a network have the same name in DNS, one of them gets a mark at the end of the first label.
--format wide shows the owner of the name without the mark (INSTEAD).`

func listCommand() cli.Row {
	var zone zoneFlag
	return cli.Listing[dns.Name]{
		Verb: cli.Verb{Use: "ls", Short: "List names", Long: listHelp,
			Example: `  berth dns ls
  berth dns ls --filter kind=long
  berth dns ls --filter network=home --format json`,
			Flags: cli.Flags{zone.flag()},
			Check: func(*cli.Run) error { return zone.check() }},
		Keys:    cli.Fields{"network=Network", "owner", cli.Choice("kind", dns.Kinds()...)},
		Columns: cli.Fields{"Name", "Address", "Kind", "Owner,wide", "Network,wide", "IN USE=Held,wide", "Instead,wide"},
		Fetch: func(r *cli.Run) ([]dns.Name, error) {
			x, err := zone.index(r)
			if err != nil {
				return nil, err
			}
			return x.Names(), nil
		},
	}
}
