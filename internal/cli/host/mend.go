package host

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"berth/internal/cli"
	"berth/internal/ipam"
)

const storeMendHelp = `Repairs a shared store that lost changes, because etcd was restored from an older snapshot or
lost its data. Run the command with --yes on each host. Until all hosts have run it, Berth assigns no
address in the cluster's spaces. "berth status" shows since when the store is not trusted, and how much is missing.
The host writes back those of its Docker networks, leases and headroom that etcd lost, with the same ids. If it had
released some that etcd has again, it releases them again. It also records the addresses that its containers use
without a record. Networks, subnets and reservations come from the host that knows their latest version. If two hosts
hold the same address, the command names both, and the host whose container runs keeps the address.
The first run makes all hosts stop giving addresses. They resume when every host has run the command. With --gone HOST,
Berth does not wait for a host whose machine is off for good. If that machine returns, run the command there. --dry-run
shows what would change.`

const storeAcceptHelp = `Accepts the present content of a shared store that lost changes. The host writes nothing
back, and holds only the addresses of its running containers. Run this command instead of "berth state mend" on this
host; each other host must also run one of the two commands. What the store lost stays lost: plans, reservations, and
addresses whose containers do not run.`

// MendCommand is `berth state mend`.
func MendCommand() cli.Row {
	return mendCommand(false, cli.Verb{Use: "mend (--dry-run|--yes)", Long: storeMendHelp,
		Short:   "Repair a shared store that was rolled back",
		Example: "  berth state mend --dry-run\n  berth state mend --yes\n  berth state mend --yes --gone b"})
}

// AcceptCommand is `berth state accept`.
func AcceptCommand() cli.Row {
	return mendCommand(true, cli.Verb{Use: "accept (--dry-run|--yes)", Long: storeAcceptHelp,
		Short:   "Accept a shared store that was rolled back",
		Example: "  berth state accept --dry-run\n  berth state accept --yes"})
}

func mendCommand(accept bool, verb cli.Verb) cli.Row {
	var yes bool
	m := ipam.MendOptions{Accept: accept}
	verb.Flags = cli.Flags{
		cli.Flag(&m.DryRun, "dry-run", "show what would change, but change nothing"),
		cli.Flag(&yes, "yes", "make the changes").Short("y"),
		cli.Flag(&m.Gone, "gone",
			"do not wait for the host `HOST`, which is off for good; repeatable").Split().Words(),
	}
	verb.Check = func(*cli.Run) error {
		if m.DryRun == yes {
			return errors.New("give --dry-run to see what would change, or --yes to make the changes")
		}
		return nil
	}
	return cli.Showing[ipam.MendReport]{
		Verb: verb,
		Fetch: func(r *cli.Run) (ipam.MendReport, error) {
			return r.Mend(r, m)
		},
		Text: func(w io.Writer, r *ipam.MendReport) error {
			_, err := io.WriteString(w, mendText(r))
			return err
		},
	}
}

// mendText formats the result of a repair.
func mendText(r *ipam.MendReport) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "%s\n", cli.Printable(fmt.Sprintf(format, args...))) }
	if r.Nothing {
		return "there is nothing to mend: the shared store lacks nothing that this host knows of\n"
	}
	would := ""
	if r.DryRun {
		would = "would be "
	}
	switch {
	case !r.Remembers && !r.Sees:
		line("host %s remembers nothing of the shared store and does not see its running containers, so it has "+
			"nothing to put back", r.Host)
	case !r.Remembers:
		line("host %s remembers nothing of the shared store", r.Host)
	case !r.Sees:
		line("host %s does not see the running containers, and relies on its records", r.Host)
	}
	line("%sput back: %s, %s, %d of headroom; %s and %s of the plan", would, cli.Counted(r.Pools, "Docker network"),
		cli.Counted(r.Leases, "lease"), r.Headroom,
		cli.Counted(r.Networks, "network"), cli.Counted(r.Reserved, "reservation"))
	line("%sremoved again: %d of this host, %d of the plan; %sheld for a running container: %d", would, r.Ended,
		r.Removed, would, r.Running)
	if r.Planner != "" && r.Planner != r.Host {
		line("the plan comes from host %s, which remembers its latest version", r.Planner)
	}
	for _, c := range r.Collisions {
		seen := ""
		if c.Seen {
			seen = ", whose container runs"
		}
		line("%s (space %s) has two holders: here %s%s; in etcd %s. Host %s keeps the address: stop the other "+
			"container, and start it again", c.Address, c.Space, c.Here, seen, c.There, c.Kept)
	}
	for _, problem := range r.Problems {
		line("%s", problem)
	}
	switch {
	case r.DryRun && len(r.Missing) > 0:
		line("after that, Berth gives no addresses until the same is done on these hosts: %s",
			strings.Join(r.Missing, ", "))
	case r.DryRun:
		line("after that, no other host has to mend, and Berth gives addresses again")
	case len(r.Missing) > 0:
		line("host %s is done; Berth gives no addresses until the same is done on these hosts: %s. Run `berth state "+
			"mend --yes` there. If one is off for good, name it with --gone", r.Host, strings.Join(r.Missing, ", "))
	default:
		line("host %s is done, and so are all other hosts", r.Host)
	}
	return b.String()
}
