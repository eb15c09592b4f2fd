package compose

import (
	"context"
	"fmt"
	"net/netip"
	"os/signal"
	"slices"
	"syscall"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/docker/leave"
	"berth/internal/docker/pin"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
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
func LeaveCommand(p *cli.Program) cli.Row {
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
		Run: func(cmd *cobra.Command, args []string) error { return leaving(p, cmd, &flags, args[0]) },
	}
}

// leaveRun is one run of leave.
type leaveRun struct {
	p     *cli.Program
	flags *leaveFlags
	c     *client.Client
	hand  *leave.Hand
	notes *leaveNotes
}

// leaving reads the networks from the engine, or the notes of an earlier run that was cut off, and moves those networks
// away from Berth. A signal ends nothing that is under way.
func leaving(p *cli.Program, cmd *cobra.Command, flags *leaveFlags, what string) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := overwrites(flags.output); err != nil {
		return err
	}
	if flags.engine.Host == cli.NoDockerHost {
		return cli.Usagef(cmd, "--docker-host is none, and an engine is to be changed: give its URL")
	}
	hand, err := leave.Open(flags.engine.Host)
	if err != nil {
		return cli.Usage(cmd, err)
	}
	defer hand.Close()
	c, err := flags.engine.OfDaemon(ctx, p, cmd)
	if err != nil {
		return err
	}
	defer c.Close()
	r := &leaveRun{p: p, flags: flags, c: c, hand: hand}
	file, err := flags.noteFile(p, what)
	if err != nil {
		return err
	}
	if r.notes, err = readNotes(file); err != nil {
		return err
	}
	if r.notes != nil {
		fmt.Fprintf(p.Err, "berth: %s was begun at %s and cut off; it is finished now\n", what,
			cli.LocalTime(r.notes.Begun))
	} else if r.notes, err = r.begin(ctx, what); err != nil {
		return err
	}
	r.notes.file = file
	if flags.dryRun {
		return r.wouldLeave()
	}
	if !flags.yes {
		question := fmt.Sprintf("%s recreated, and %s cut off for some seconds. Go on?",
			cli.Counted(len(r.notes.Networks), "network"), cli.Counted(r.notes.running(), "running container"))
		if err := p.Confirm(cmd, question); err != nil {
			return err
		}
	}
	return r.leave(ctx)
}

// begin reads the networks that are meant.
func (r *leaveRun) begin(ctx context.Context, what string) (*leaveNotes, error) {
	view, err := r.flags.engine.View(ctx, r.c)
	if err != nil {
		return nil, err
	}
	rec, err := cli.PinRecords(ctx, r.c)
	if err != nil {
		return nil, err
	}
	rec.TakesAny = true // the network is made with its subnet
	notes := &leaveNotes{What: what, Begun: r.p.Now().UTC(), Keep: r.flags.keep}
	pins := pin.Find(view, rec)
	gateways := map[netip.Prefix]netip.Addr{}
	for i := range rec.Leases {
		if l := &rec.Leases[i]; l.Kind == ipam.Gateway && l.State == "held" {
			gateways[l.Subnet] = l.Address
		}
	}
	for _, n := range view.Networks {
		note, err := r.hand.Read(ctx, n.Name, pins, gateways, r.p.Now())
		switch {
		case err != nil && (n.Name == what || n.ID == what || note != nil && note.Project == what):
			return nil, err
		case err != nil:
			continue
		}
		note.Planned = plannedOf(&n, rec.Subnets)
		for j := range note.Seats {
			seat := &note.Seats[j]
			for k := range view.Containers {
				if c := &view.Containers[k]; c.ID == seat.ID && c.Project == note.Project {
					seat.Service, seat.Number = c.Service, c.Number
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

// plannedOf are the networks of Berth's that a Docker network is on, which Docker tells nobody: they are known by
// their subnets, and where several spaces have one by what the network's options say.
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
