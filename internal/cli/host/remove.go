package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth/internal/admin/api"
	"berth/internal/cli"
	"berth/internal/ipam"
)

const hostRemoveHelp = `Removes a host from the cluster and releases everything that it holds there. The command
first lists what the host holds, and asks. The cluster refuses a removed host until "berth host admit".

If the host's daemon answers, the host leaves by itself, and the command waits for it. If the
daemon does not answer, only you can know whether the host is off. Confirm it with --off; Berth then releases the
host's addresses at once. If the host runs after all, others may get the addresses of its containers.

The command removes several hosts one by one. If Berth refuses to remove one, the command continues with the others.`

// removal holds the flags of host rm.
type removal struct {
	off, yes bool
	wait     time.Duration
}

func hostRemoveCommand() cli.Row {
	r := removal{wait: 30 * time.Second}
	return cli.Change{
		Verb: cli.Verb{Use: "rm HOST...", Short: "Remove hosts from the cluster", Long: hostRemoveHelp,
			Refs: []cli.Refs{hostRefs},
			Example: `  berth host rm b
  berth host rm b --off
  berth host rm b --off --yes
  berth host rm b --dry-run`,
			Flags: cli.Flags{
				cli.Flag(&r.off, "off",
					"confirm that the host is off, and that nothing that ran there still uses an address of the "+
						"cluster"),
				cli.YesFlag(&r.yes),
				cli.Flag(&r.wait, "wait",
					"how long to wait until a host that answers has left, a `duration`")},
			Check: func(*cli.Run) error {
				if r.wait < 0 {
					return fmt.Errorf("--wait is %s and must not be negative", r.wait)
				}
				return nil
			}},
		Make: func(e *cli.Editor) error {
			return cli.Each(e.Args, func(name string) error { return removeHost(e, name, r) })
		}}
}

// removeHost shows what the removal releases, and asks. Without --off it waits until the host has left.
func removeHost(e *cli.Editor, name string, r removal) error {
	h, err := e.Host(e, name)
	if err != nil {
		return err
	}
	edit := &ipam.RemoveHost{Name: h.Name, Off: r.off}
	if e.DryRun || h.State == ipam.HostRemoved {
		return e.Make(cli.Echo(h.Name), edit)
	}
	if !r.yes {
		if err := e.Confirm(removalQuestion(&h, r.off)); err != nil {
			return err
		}
	}
	if r.off {
		return e.Make(cli.Echo(h.Name), edit)
	}
	if err := e.Make(cli.Echo(h.Name+" is asked to leave"), edit); err != nil {
		return err
	}
	return awaitLeft(e.Run, &h, r.wait)
}

// removalQuestion describes the effect of a removal for the question.
func removalQuestion(h *ipam.HostInfo, off bool) string {
	holds := fmt.Sprintf("Host %s holds %s.", h.Name, holdsText(h))
	if h.Leases > 0 && !off {
		holds += " Containers that still use these addresses lose them to others."
	}
	switch {
	case off:
		return holds + " You say that the host is off: all of that is free at once, and others may get it. Remove " +
			"the host?"
	case h.Present:
		return holds + " Berth asks the host to give all of that back, and to take nothing new. Remove the host?"
	}
	return holds + " The host's daemon does not answer. Remove the host?"
}

// lookForHost is the pause between two looks whether a host has left.
const lookForHost = 200 * time.Millisecond

// awaitLeft waits until a host that was asked to leave is removed.
func awaitLeft(r *cli.Run, h *ipam.HostInfo, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(r, wait)
	defer cancel()
	again := time.NewTicker(lookForHost)
	defer again.Stop()
	for {
		now, err := r.Host(ctx, h.Name)
		var refused *api.Problem
		switch {
		case err == nil && now.State == ipam.HostRemoved, h.Self && errors.As(err, &refused) &&
			refused.Code == api.CodeHostRefused:
			_, err = fmt.Fprintf(r.Out, "%s has left\n", h.Name)
			return err
		case err == nil:
			*h = now
		case ctx.Err() == nil:
			return fmt.Errorf("host %s was asked to leave; the outcome is unknown: %w", h.Name, err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return stillThere(h, wait)
		}
	}
}

// stillThere returns the error for a host that has not left in time.
func stillThere(h *ipam.HostInfo, wait time.Duration) error {
	text := fmt.Sprintf("host %s was asked to leave, but has not left within %s; it still holds %s, and leaves as "+
		"soon as it can (see `berth host show %s`)", h.Name, wait, holdsText(h), h.Name)
	if !h.Present {
		text += fmt.Sprintf("; its daemon no longer answers: if that machine is off, run `berth host rm --off %s`",
			h.Name)
	}
	return errors.New(text)
}
