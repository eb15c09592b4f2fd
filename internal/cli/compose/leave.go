package compose

import (
	"fmt"
	"net/netip"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"berth/internal/cli"
	"berth/internal/docker/leave"
	"berth/internal/docker/pin"
	"berth/internal/ipam"
)

const leaveHelp = `Moves a Docker network, or all networks of a Compose project, back to the engine's own IPAM
driver. Subnets, gateways, options and labels stay. A pool becomes its --ip-range, as one aligned block;
devices, exclusions and reservations of owners that are not on it become auxiliary addresses, 64 at most. The
command names what does not fit. Each container keeps its address and requests it from then on, as with
docker run --ip. A container that does not run gets the address that Berth would give it. It is the way back
from berth adopt.

A Docker network cannot change its driver. So the command disconnects the containers, recreates the network
and reconnects them with their aliases, links, driver options and configured MACs. They keep running, but lose
the network for some seconds. Without --yes the command asks first. Engines 25.0 to 29.2 cannot give them their
MACs again: there the command refuses containers with a configured MAC, unless you accept the loss with
--lose-mac. Compose gives the MACs back when it recreates the containers.

For a project the command writes an override file with the address of each service. It replaces Berth's
earlier file, or is berth.override.yaml next to the Compose file (-o names another). Keep it. At the end the
command prints what to delete from the Compose file. Replicas keep their addresses only until they are
recreated.

The command first saves what it needs to a note. If a run is interrupted, run the command again to finish it.
If the engine refuses the new network, the command recreates the old one.

At the end it removes the network's plan and reservations from Berth; --keep keeps them. They also stay
while a device or another Docker network uses them.`

// leaveFlags are the flags of leave.
type leaveFlags struct {
	engine cli.EngineFlags
	dryRun bool
	yes    bool
	keep   bool
	output string
	state  string

	loseMAC bool
}

// LeaveCommand is `berth leave`.
func LeaveCommand() cli.Row {
	var flags leaveFlags
	return cli.Verb{Use: "leave PROJECT|NETWORK",
		Short: "Move a network or project back to Docker's own IPAM", Long: leaveHelp,
		Example: `  berth leave shop --dry-run
  berth leave shop
  berth leave front --yes --keep`,
		Refs: []cli.Refs{cli.UsedRefs},
		Flags: append(flags.engine.Flags(), cli.DryRunFlag(&flags.dryRun), cli.YesFlag(&flags.yes),
			cli.LoseMACFlag(&flags.loseMAC),
			cli.Flag(&flags.keep, "keep",
				"keep the plan of the network in Berth, with its reservations"),
			cli.Flag(&flags.output, "output", "write the override of a project to `FILE`").Short("o"),
			cli.Flag(&flags.state, "note-dir",
				"save the note for finishing an interrupted run in `DIR` (default: your state "+
					"directory, such as ~/.local/state/berth)")),
		Run: func(r *cli.Run) error { return leaving(r, &flags, r.Args[0]) },
	}
}

// leaveRun is one run of leave.
type leaveRun struct {
	*cli.Run
	flags     *leaveFlags
	connector *leave.Connector
	notes     *leaveNotes
	keepers   map[string][]string // who keeps plans, by their ids; empty for an interrupted run
}

// leaving moves networks away from Berth. It reads them from the engine, or from the notes of an interrupted run. A
// signal interrupts no step.
func leaving(run *cli.Run, flags *leaveFlags, what string) error {
	ctx, stop := signal.NotifyContext(run, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	run = run.With(ctx)
	if err := overwrites(flags.output); err != nil {
		return err
	}
	engine, err := flags.engine.Open()
	if err != nil {
		return cli.Usage(run.Cmd, err)
	}
	defer engine.Close()
	connector, err := leave.Open(flags.engine.Host)
	if err != nil {
		return cli.Usage(run.Cmd, err)
	}
	defer connector.Close()
	if err := flags.engine.Ask(run); err != nil {
		return err
	}
	r := &leaveRun{Run: run, flags: flags, connector: connector}
	file, err := flags.noteFile(run.Program, what)
	if err != nil {
		return err
	}
	if r.notes, err = readNotes(file); err != nil {
		return err
	}
	if r.notes != nil { // begin compares the engines itself
		if err := flags.engine.CheckEngine(run, engine); err != nil {
			return err
		}
		fmt.Fprintf(run.Stderr, "berth: leaving %s began at %s and was interrupted; finishing it now\n", what,
			cli.LocalTime(r.notes.Begun))
	} else if r.notes, err = r.begin(what); err != nil {
		return err
	} else if err := r.refuseLosses(); err != nil {
		return err
	}
	r.notes.file = file
	for _, note := range r.notes.Networks {
		for _, lost := range note.Lost {
			run.Warnf("%s: %s", note.Network, lost)
		}
	}
	override, err := r.override()
	if err != nil {
		return err
	}
	plans := r.plans(run)
	if flags.dryRun {
		return r.wouldLeave(override, plans)
	}
	if !flags.yes {
		if err := run.Confirm(r.question(override, plans)); err != nil {
			return err
		}
	}
	return r.leave(override)
}

// begin reads the networks and makes the notes.
func (r *leaveRun) begin(what string) (*leaveNotes, error) {
	view, err := r.flags.engine.View(r.Run)
	if err != nil {
		return nil, err
	}
	rec, err := r.PinRecords()
	if err != nil {
		return nil, err
	}
	rec.TakesAny = true // Leave creates the network with its subnet
	notes := &leaveNotes{What: what, Begun: r.Now().UTC(), Keep: r.flags.keep}
	pins := pin.Find(view, rec)
	gateways := map[netip.Prefix]netip.Addr{}
	for i := range rec.Leases {
		if l := &rec.Leases[i]; l.Kind == ipam.Gateway && l.State == "held" {
			gateways[l.Subnet] = l.Address
		}
	}
networks:
	for _, n := range view.Networks {
		note, err := r.connector.Read(r, n.Name, pins, gateways, r.Now())
		switch {
		case err != nil && (n.Name == what || n.ID == what || note != nil && note.Project == what):
			return nil, err
		case err != nil:
			continue
		}
		note.Planned = plannedOf(&n, rec.Subnets)
		for j := range note.Endpoints {
			endpoint := &note.Endpoints[j]
			for k := range view.Containers {
				if c := &view.Containers[k]; c.ID == endpoint.ID && c.Project == note.Project {
					endpoint.Service, endpoint.Number = c.Service, c.Number
				}
			}
		}
		switch {
		case n.Name == what || n.ID == what:
			notes.Networks, notes.Project = []*leave.Note{note}, ""
			note.Carry(rec, view.Host)
			break networks
		case note.Project == what:
			note.Carry(rec, view.Host)
			notes.Networks, notes.Project = append(notes.Networks, note), what
		}
	}
	if len(notes.Networks) == 0 {
		return nil, fmt.Errorf("this Berth gives addresses to no Docker network %s, and to no network of a Compose "+
			"project %s; `docker network ls` lists all networks", what, what)
	}
	r.keepers = leave.Keepers(notes.Networks, rec)
	for _, id := range notes.planned() {
		if len(r.keepers[id]) == 0 {
			leave.EndPlan(notes.Networks, id, view.Host, rec)
		}
	}
	return notes, nil
}

// refuseLosses refuses to connect containers again that lose their MACs by it, unless the user accepts that.
func (r *leaveRun) refuseLosses() error {
	var names []string
	compose := false
	for _, note := range r.notes.Networks {
		for i := range note.Endpoints {
			if one := &note.Endpoints[i]; one.LosesMAC && !r.flags.loseMAC {
				names = append(names, fmt.Sprintf("%s (%s)", one.Container, one.Settings.MacAddress))
				compose = compose || one.Service != ""
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	advice := ""
	if compose {
		advice = "; a Compose project gets its MACs back when you run it with the override file of this command"
	}
	return fmt.Errorf("nothing was changed: Docker Engine 25.0 to 29.2 gives a reconnected container another MAC "+
		"than the configured one. To accept that for %s, add --lose-mac%s", strings.Join(names, ", "), advice)
}

// plannedOf returns the ids of Berth's networks that a Docker network is on. Docker does not know them, so they are
// found by subnet. If several spaces have the subnet, the network's options decide, or else the space local.
func plannedOf(n *ipam.EngineNetwork, subnets []ipam.SubnetInfo) (ids []string) {
	for _, sub := range n.Subnets {
		var found, named []ipam.SubnetInfo
		for _, s := range subnets {
			if s.CIDR != sub.CIDR || len(s.Attachments) == 0 ||
				n.Options["space"] != "" && n.Options["space"] != s.Space {
				continue
			}
			found = append(found, s)
			if n.Options["network"] == s.Network || n.Options["network"] == s.NetworkID.String() {
				named = append(named, s)
			}
		}
		if len(named) > 0 { // else the planned network was renamed later
			found = named
		}
		if len(found) > 1 {
			found = slices.DeleteFunc(found, func(s ipam.SubnetInfo) bool { return s.Space != ipam.LocalSpace })
		}
		if len(found) == 1 && !slices.Contains(ids, found[0].NetworkID.String()) {
			ids = append(ids, found[0].NetworkID.String())
		}
	}
	return ids
}
