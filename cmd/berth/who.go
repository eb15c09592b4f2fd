package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/admin"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const whoHelp = `Tells who has an address and who had it, or what a MAC, or a name, has and had: since when, until when, on which host, and
who took it. A NAME is that of an endpoint, or an owner. It is read out of the events, and goes back as far as they are
kept (berth serve --event-age, --event-count), and further for what lasts.

WHAT is a lease, an address in somebody's hands, or a reservation, an address that belongs to somebody. --at asks who had it
at one moment: a time, or how long ago.`

func (p *program) whoCommand() *cobra.Command {
	var out output
	var filter ipam.WhoFilter
	var at string
	cmd := &cobra.Command{Use: "who ADDRESS|MAC|NAME", Short: "Tell who has an address, and who had it", Long: whoHelp,
		Args: takes("ADDRESS|MAC|NAME"), ValidArgsFunction: p.completeRefs(anyOwners),
		Example: `  berth who 10.8.0.9
  berth who 10.8.0.9 --at 2h
  berth who 02:42:0a:08:00:09 --at 2026-01-31T08:00:00Z
  berth who shop/web/1 --format json`}
	out.flags(cmd)
	cmd.Flags().StringVar(&at, "at", "", "only who had it `WHEN`: a time (RFC 3339), or how long ago (2h)")
	p.spaceFlag(cmd, &filter.Space)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if at != "" {
			if filter.At, err = since(at, p.now()); err != nil {
				return usage(cmd, fmt.Errorf("--at is %q and %w", at, err))
			}
		}
		if err := whom(args[0], &filter); err != nil {
			return usage(cmd, err)
		}
		show, err := newTable(p.out, cmd, out, nil, func(t *ipam.Tenure) string { return t.Address.String() })
		if err != nil {
			return err
		}
		return p.ask(cmd, func(ctx context.Context, c *admin.Client) error {
			all, err := c.Who(ctx, filter)
			if err != nil {
				return err
			}
			show.columns = whoColumns(all)
			return show.rows(all)
		})
	}
	return cmd
}

// whom says what was asked for: an address, a MAC, or else a name, which a mistyped address is not.
func whom(text string, f *ipam.WhoFilter) error {
	if a, err := netip.ParseAddr(text); err == nil {
		f.Address = a
		return nil
	}
	if mac, err := ipam.ParseMAC(text); err == nil {
		f.MAC = mac
		return nil
	}
	f.Name = text
	err := ipam.CheckOwner(text)
	if first, _, path := strings.Cut(text, "/"); err == nil && (!path || isNumber(text[len(first)+1:])) {
		err = ipam.CheckName("container", first) // 10.0.0.999 and 10.0.0.0/24 have the letters of names
	}
	if err != nil {
		return fmt.Errorf("%q is no address, and no MAC or name of a container or an owner", text)
	}
	return nil
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// whoColumns name the space only where addresses are of several.
func whoColumns(all []ipam.Tenure) []column[ipam.Tenure] {
	columns := []column[ipam.Tenure]{
		{"FROM", tenureFrom},
		{"UNTIL", func(t *ipam.Tenure) string {
			if t.Until.IsZero() {
				return "now"
			}
			return localTime(t.Until)
		}},
		{"ADDRESS", func(t *ipam.Tenure) string { return t.Address.String() }},
		{"WHAT", func(t *ipam.Tenure) string { return t.What }},
		{"NAME", func(t *ipam.Tenure) string { return t.Name }},
		{"MAC", func(t *ipam.Tenure) string { return t.MAC.String() }},
		{"HOST", func(t *ipam.Tenure) string { return t.Host }},
		{"BY", func(t *ipam.Tenure) string { return t.By }},
	}
	if slices.ContainsFunc(all, func(t ipam.Tenure) bool { return t.Space != all[0].Space }) {
		columns = append(columns, column[ipam.Tenure]{"SPACE", func(t *ipam.Tenure) string { return t.Space }})
	}
	return columns
}

// tenureFrom is when a tenure began, or by when, where that is all that events still tell.
func tenureFrom(t *ipam.Tenure) string {
	if t.Early && t.What == ipam.ReservationTenure && !t.Until.IsZero() {
		return "by " + localTime(t.From)
	}
	return localTime(t.From)
}
