package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"

	"berth/internal/admin"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

func (p *program) hostCommand() *cobra.Command {
	return group("host", "Hosts that share a store", p.hostListCommand(), p.hostShowCommand(), p.hostDrainCommand(), p.hostRemoveCommand(), p.hostAdmitCommand())
}

const hostListHelp = `Lists the hosts that share a store (berth serve --store etcd), those that were removed last. SELF is the host whose
daemon answers. PRESENT says whether a host's daemon is there at this moment; nothing is freed when it is not. POOLS are the Docker networks
that have a hold on a subnet there, LEASES the addresses in use through them, and HEADROOM those that the host has claimed in advance.`

func (p *program) hostListCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List hosts", Long: hostListHelp, Args: noArgs,
		Example: "  berth host ls\n  berth host ls -q\n  berth host ls --format json"}
	out.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return list(p, cmd, out, hostColumns(), func(h *ipam.HostInfo) string { return h.Name },
			func(ctx context.Context, c *admin.Client) ([]ipam.HostInfo, error) { return c.Hosts(ctx) })
	}
	return cmd
}

func hostColumns() []column[ipam.HostInfo] {
	return []column[ipam.HostInfo]{
		{"NAME", func(h *ipam.HostInfo) string { return h.Name }},
		{"SELF", func(h *ipam.HostInfo) string { return mark(h.Self) }},
		{"STATE", func(h *ipam.HostInfo) string { return stateText(h.State) }},
		{"PRESENT", func(h *ipam.HostInfo) string { return yesNo(h.Present) }},
		{"POOLS", func(h *ipam.HostInfo) string { return strconv.Itoa(h.Pools) }},
		{"LEASES", func(h *ipam.HostInfo) string { return strconv.Itoa(h.Leases) }},
		{"HEADROOM", func(h *ipam.HostInfo) string { return strconv.Itoa(h.Headroom) }},
		{"STARTED", func(h *ipam.HostInfo) string { return localTime(h.Started) }},
		{"VERSION", func(h *ipam.HostInfo) string { return h.Version }},
	}
}

func mark(b bool) string {
	if b {
		return "*"
	}
	return ""
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// stateText is a host's state for a person.
func stateText(s ipam.HostState) string {
	if s == "" {
		return "active"
	}
	return string(s)
}

const hostShowHelp = `Shows a host that shares the store, and what "berth host rm" would free: its holds on subnets, the addresses in use through
them, the first of which are named, and those that it has claimed in advance.`

func (p *program) hostShowCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "show HOST", Aliases: []string{"inspect"}, Short: "Show a host and what it holds", Long: hostShowHelp,
		Args: takes("HOST"), ValidArgsFunction: p.completeRefs(hostRefs),
		Example: "  berth host show b\n  berth host show b --format json\n  berth host show b --format '{{.State}}'"}
	cmd.Flags().StringVar(&format, "format", "text", "`form` of the output: text, json (one object), or a Go template")
	completes(cmd, "format", words("text", "json"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		show, err := newObject[ipam.HostInfo](p.out, cmd, format)
		if err != nil {
			return err
		}
		return p.ask(cmd, func(ctx context.Context, c *admin.Client) error {
			h, err := c.Host(ctx, args[0])
			if err != nil {
				return err
			}
			return showObject(show, &h, func(w io.Writer) error { return writeHost(w, &h) })
		})
	}
	return cmd
}

func writeHost(w io.Writer, h *ipam.HostInfo) error {
	pg := &page{}
	pg.line("HOST %s", h.Name)
	pg.entry("id", h.ID.String())
	pg.entry("state", stateText(h.State))
	pg.entry("present", yesNo(h.Present))
	pg.entry("joined", localTime(h.Joined))
	pg.entry("started", localTime(h.Started))
	pg.entry("version", h.Version)
	pg.entry("holds", holdsText(h))
	_, err := io.WriteString(w, pg.text.String())
	return err
}

// holdsText says what a host holds.
func holdsText(h *ipam.HostInfo) string {
	if h.Pools == 0 {
		return "nothing"
	}
	text := fmt.Sprintf("%s with %s", counted(h.Pools, "Docker network"), addressesText(h.Leases, h.First))
	if h.Headroom > 0 {
		text += fmt.Sprintf(", and %d more as headroom", h.Headroom)
	}
	return text
}

// addressesText counts addresses, and names the first of them.
func addressesText(n int, first []netip.Addr) string {
	if n == 0 {
		return "no address in use"
	}
	names := make([]string, len(first))
	for i, a := range first {
		names[i] = a.String()
	}
	if n > len(first) {
		names = append(names, "...")
	}
	if n == 1 {
		return "1 address in use (" + strings.Join(names, ", ") + ")"
	}
	return fmt.Sprintf("%d addresses in use (%s)", n, strings.Join(names, ", "))
}

const hostDrainHelp = `Has a host take no new address, and no hold on a subnet, in the spaces of the cluster. What it has it keeps, and gives back as its
containers end. --undo has it take them again.`

func (p *program) hostDrainCommand() *cobra.Command {
	var edit editing
	var undo bool
	cmd := &cobra.Command{Use: "drain HOST", Short: "Have a host take no new address", Long: hostDrainHelp,
		Args: takes("HOST"), ValidArgsFunction: p.completeRefs(hostRefs),
		Example: "  berth host drain b\n  berth host drain b --undo"}
	cmd.Flags().BoolVar(&undo, "undo", false, "have it take them again")
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.edit(cmd, edit, echo(args[0]), &ipam.DrainHost{Name: args[0], Undo: undo})
	}
	return cmd
}

const hostAdmitHelp = `Lets a host take part again that was removed. It holds nothing at first: what it held may be in other hands, so that its
containers on networks of the cluster are to be stopped before, and started again afterwards.`

func (p *program) hostAdmitCommand() *cobra.Command {
	var edit editing
	cmd := &cobra.Command{Use: "admit HOST", Short: "Let a host take part again that was removed", Long: hostAdmitHelp,
		Args: takes("HOST"), ValidArgsFunction: p.completeRefs(hostRefs), Example: "  berth host admit b"}
	edit.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return p.edit(cmd, edit, echo(args[0]), &ipam.AdmitHost{Name: args[0]})
	}
	return cmd
}

func hostRefs(ctx context.Context, c *admin.Client, _ string) (names []string, err error) {
	all, err := c.Hosts(ctx)
	for _, h := range all {
		names = append(names, h.Name+"\t"+stateText(h.State))
	}
	return names, err
}
