package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"berth/internal/admin"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const hostRemoveHelp = `Takes a host out of the cluster, and frees all it holds there: what that is it says first, and asks. A host that was removed is refused in
the spaces of the cluster until "berth host admit".

A host whose daemon answers is asked to leave: it gives everything back by itself, for which the command waits. Of a host whose daemon does
not answer nobody but you can know that it is off: say so with --off, and what it holds is free at once. If it is not off, addresses of its
containers are given to others.`

// removal holds the flags of host rm.
type removal struct {
	off, yes bool
	wait     time.Duration
	edit     editing
}

func (p *program) hostRemoveCommand() *cobra.Command {
	var r removal
	cmd := &cobra.Command{Use: "rm HOST", Aliases: []string{"remove"}, Short: "Take a host out of the cluster", Long: hostRemoveHelp,
		Args: takes("HOST"), ValidArgsFunction: p.completeRefs(hostRefs),
		Example: "  berth host rm b\n  berth host rm b --off\n  berth host rm b --off --yes\n  berth host rm b --dry-run"}
	f := cmd.Flags()
	f.BoolVar(&r.off, "off", false, "the host is off, and nothing that ran there has an address of the cluster any more")
	f.BoolVarP(&r.yes, "yes", "y", false, "do not ask")
	f.DurationVar(&r.wait, "wait", 30*time.Second, "how long a host that answers is waited for until it has left, a `duration`")
	r.edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if r.wait < 0 {
			return usage(cmd, fmt.Errorf("--wait is %s and must not be less than nothing", r.wait))
		}
		e, err := p.editor(cmd, r.edit)
		if err != nil {
			return err
		}
		defer e.close()
		return p.removeHost(e, args[0], r)
	}
	return cmd
}

// removeHost shows what the removal frees, asks, and waits until a host that was asked to leave has left.
func (p *program) removeHost(e *editor, name string, r removal) error {
	ctx := e.cmd.Context()
	h, err := e.client.Host(ctx, name)
	if err != nil {
		return err
	}
	edit := &ipam.RemoveHost{Name: h.Name, Off: r.off}
	if r.edit.dryRun || h.State == ipam.HostRemoved {
		return e.make(echo(h.Name), edit)
	}
	if !r.yes {
		if err := p.confirm(e.cmd, removalQuestion(&h, r.off)); err != nil {
			return err
		}
	}
	if r.off {
		return e.make(echo(h.Name), edit)
	}
	if err := e.make(echo(h.Name+" is asked to leave"), edit); err != nil {
		return err
	}
	return p.awaitLeft(ctx, e.client, &h, r.wait)
}

// removalQuestion says what will be, to somebody who may still say no.
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

// confirm asks on the terminal. Where there is none nobody can say yes.
func (p *program) confirm(cmd *cobra.Command, question string) error {
	in, ok := p.in.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return usage(cmd, fmt.Errorf("nobody can be asked, because standard input is no terminal; say yes with --yes. The question is: %s", question))
	}
	fmt.Fprintf(p.err, "%s [y/N] ", question)
	line, err := bufio.NewReader(in).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
		return nil
	}
	if err != nil {
		fmt.Fprintln(p.err)
	}
	return errors.New("nothing was changed")
}

// lookForHost is how often it is looked whether a host has left.
const lookForHost = 200 * time.Millisecond

// awaitLeft waits until a host that was asked to leave is removed.
func (p *program) awaitLeft(ctx context.Context, c *admin.Client, h *ipam.HostInfo, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	again := time.NewTicker(lookForHost)
	defer again.Stop()
	for {
		now, err := c.Host(ctx, h.Name)
		var refused *admin.Problem
		switch {
		case err == nil && now.State == ipam.HostRemoved, h.Self && errors.As(err, &refused) && refused.Code == admin.CodeHostRefused:
			_, err = fmt.Fprintf(p.out, "%s has left\n", h.Name)
			return err
		case err == nil:
			*h = now
		case ctx.Err() == nil:
			return fmt.Errorf("host %s was asked to leave; whether it has is not known: %w", h.Name, err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return stillThere(h, wait)
		}
	}
}

// stillThere says how it stands with a host that was asked to leave.
func stillThere(h *ipam.HostInfo, wait time.Duration) error {
	text := fmt.Sprintf("host %s was asked to leave, and has not left within %s; it holds %s, and goes as soon as it can (`berth host show %s`)", h.Name, wait, holdsText(h), h.Name)
	if !h.Present {
		text += fmt.Sprintf("; its daemon does not answer any more: if that machine is off, say so with `berth host rm --off %s`", h.Name)
	}
	return errors.New(text)
}
