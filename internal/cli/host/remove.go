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

const hostRemoveHelp = `Removes a host from the cluster and releases all it holds there. It lists that first,
and asks. The
cluster refuses a removed host until "berth host admit".

If the host's daemon answers, the host leaves by itself, and the command waits for it. If not, only you can know
whether the host is off. Confirm that with --off, and its addresses are released at once. If the host runs after all,
others get the addresses of its containers.

With several hosts the command handles each by itself. If one is refused, the others continue.`

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
					"the host is off, and nothing that ran there has an address of the cluster any more"),
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
		holds += " What still uses these addresses loses them to others."
	}
	switch {
	case off:
		return holds + " You say that it is off: all of that is free at once, and given to others. Remove it?"
	case h.Present:
		return holds + " It is asked to give that back, and to take no more. Remove it?"
	}
	return holds + " Its daemon does not answer. Remove it?"
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
	text := fmt.Sprintf("host %s was asked to leave, and has not left within %s; it holds %s, and goes as soon as it "+
		"can (`berth host show %s`)", h.Name, wait, holdsText(h), h.Name)
	if !h.Present {
		text += fmt.Sprintf("; its daemon does not answer any more: if that machine is off, say so with `berth host "+
			"rm --off %s`", h.Name)
	}
	return errors.New(text)
}
