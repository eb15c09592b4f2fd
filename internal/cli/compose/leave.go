package compose

import (
	"fmt"
	"net/netip"
	"os/signal"
	"slices"
	"syscall"

	"berth/internal/cli"
	"berth/internal/docker/leave"
	"berth/internal/docker/pin"
	"berth/internal/ipam"
)

const leaveHelp = `Moves a Docker network, or all networks of a Compose project, back to the engine's own IPAM
driver. Subnets, gateways, options and labels stay. Each container keeps its address and requests it from then
on, as with docker run --ip. A container that does not run gets the address that Berth would give it. It is
the way back from berth adopt.

A Docker network cannot change its driver. So the command disconnects the containers, recreates the network
and reconnects them with their aliases, links, driver options and configured MACs. They keep running, but lose
the network for some seconds. Without --yes the command asks first.

For a project the command writes an override file with the address of each service. It replaces Berth's
earlier file, or is berth.override.yaml next to the Compose file (-o names another). Keep it. At the end the
command prints what to delete from the Compose file. Replicas keep their addresses only until they are
recreated.

The command first saves what it needs to a note. If a run is interrupted, run the command again to finish it.
If the engine refuses the new network, the command recreates the old one.

At the end it removes the network's plan and reservations from Berth, unless somebody else uses them; --keep
keeps them.`

// leaveFlags are the flags of leave.
type leaveFlags struct {
	engine cli.EngineFlags
	dryRun bool
	yes    bool
	keep   bool
	output string
	state  string
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
			cli.Flag(&flags.keep, "keep",
				"leave the plan of the network in Berth, with what is reserved in it"),
			cli.Flag(&flags.output, "output", "write the override of a project to `FILE`").Short("o"),
			cli.Flag(&flags.state, "note-dir",
				"keep the note of what is under way in `DIR` (default: that of your state, "+
					"such as ~/.local/state/berth)")),
		Run: func(r *cli.Run) error { return leaving(r, &flags, r.Args[0]) },
	}
}

// leaveRun is one run of leave.
type leaveRun struct {
	*cli.Run
	flags     *leaveFlags
	connector *leave.Connector
	notes     *leaveNotes
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
	if flags.engine.Host == cli.NoDockerHost {
		return run.Usagef("--docker-host is none, and an engine is to be changed: give its URL")
	}
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
	if r.notes != nil {
		fmt.Fprintf(run.Stderr, "berth: %s was begun at %s and cut off; it is finished now\n", what,
			cli.LocalTime(r.notes.Begun))
	} else if r.notes, err = r.begin(what); err != nil {
		return err
	}
	r.notes.file = file
	if flags.dryRun {
		return r.wouldLeave()
	}
	if !flags.yes {
		question := fmt.Sprintf("%s recreated, and %s cut off for some seconds. Go on?",
			cli.Counted(len(r.notes.Networks), "network"), cli.Counted(r.notes.running(), "running container"))
		if err := run.Confirm(question); err != nil {
			return err
		}
	}
	return r.leave()
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
			return notes, nil
		case note.Project == what:
			notes.Networks, notes.Project = append(notes.Networks, note), what
		}
	}
	if len(notes.Networks) == 0 {
		return nil, fmt.Errorf("there is no Docker network %s that has its addresses from this Berth, and none that "+
			"Compose made for a project %s; `docker network ls` lists those that are there", what, what)
	}
	return notes, nil
}

// plannedOf returns the ids of Berth's networks that a Docker network is on. Docker does not know them, so they are
// found by subnet. If several spaces have the subnet, the network's options decide, or else the space local.
func plannedOf(n *ipam.EngineNetwork, subnets []ipam.SubnetInfo) (ids []string) {
	for _, sub := range n.Subnets {
		var found []ipam.SubnetInfo
		for _, s := range subnets {
			if s.CIDR == sub.CIDR && len(s.Attachments) > 0 && (n.Options["network"] == "" ||
				n.Options["network"] == s.Network || n.Options["network"] == s.NetworkID.String()) &&
				(n.Options["space"] == "" || n.Options["space"] == s.Space) {
				found = append(found, s)
			}
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
