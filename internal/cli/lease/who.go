package lease

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const whoHelp = `Tells who has an address and who had it, or what a MAC or a name has and had: since when,
until when, on which host, and who took it. A NAME is that of an endpoint or an owner. The answer comes
from the events, and goes back as far as they are kept (berth serve --event-age, --event-count); what
still lasts is known for longer.

WHAT is a lease, for which somebody held the address, or a reservation, for which it belonged to somebody.
--at asks who had it at one moment: a time, or how long ago. --wide also shows the notes.`

// WhoCommand is `berth who`.
func WhoCommand(p *cli.Program) *cobra.Command {
	var filter ipam.WhoFilter
	var at string
	var wide bool
	cmd := cli.Listing[ipam.Tenure]{
		Verb: cli.Verb{Use: "who ADDRESS|MAC|NAME", Short: "Tell who has an address, and who had it", Long: whoHelp,
			Refs: []cli.Refs{cli.AnyOwners},
			Example: `  berth who 10.8.0.9
  berth who 10.8.0.9 --at 2h
  berth who 02:42:0a:08:00:09 --at 2026-01-31T08:00:00Z
  berth who shop/web/1 --format json`},
		Check: func(args []string) (err error) {
			if at != "" {
				if filter.At, err = cli.Since(at, p.Now()); err != nil {
					return fmt.Errorf("--at is %q and %w", at, err)
				}
			}
			return whom(args[0], &filter)
		},
		Columns: func(cli.Output) []cli.Column[ipam.Tenure] { return whoColumns(wide) },
		Fetch: func(ctx context.Context, c *client.Client, _ []string) ([]ipam.Tenure, error) {
			return c.Who(ctx, filter)
		},
	}.Command(p)
	cmd.Flags().StringVar(&at, "at", "", "only who had it `WHEN`: a time (RFC 3339), or how long ago (2h)")
	cmd.Flags().BoolVarP(&wide, "wide", "w", false, "also the notes")
	p.SpaceFlag(cmd, &filter.Space)
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
func whoColumns(wide bool) []cli.Column[ipam.Tenure] {
	columns := []cli.Column[ipam.Tenure]{
		cli.Col("FROM", tenureFrom),
		cli.Col("UNTIL", func(t *ipam.Tenure) string {
			if t.Until.IsZero() {
				return "now"
			}
			return cli.LocalTime(t.Until)
		}),
		cli.Col("ADDRESS", func(t *ipam.Tenure) string { return t.Address.String() }).Names(),
		cli.Col("WHAT", func(t *ipam.Tenure) string { return t.What }),
		cli.Col("NAME", func(t *ipam.Tenure) string { return t.Name }),
		cli.Col("MAC", func(t *ipam.Tenure) string { return t.MAC.String() }),
		cli.Col("HOST", func(t *ipam.Tenure) string { return t.Host }),
		cli.Col("BY", func(t *ipam.Tenure) string { return t.By }),
		cli.Col("SPACE", func(t *ipam.Tenure) string { return t.Space }).When(func(all []ipam.Tenure) bool {
			return slices.ContainsFunc(all, func(t ipam.Tenure) bool { return t.Space != all[0].Space })
		}),
	}
	if wide {
		columns = append(columns, cli.Col("NOTE", func(t *ipam.Tenure) string { return t.Note }))
	}
	return columns
}

// tenureFrom is when a tenure began, or by when, where that is all that events still tell.
func tenureFrom(t *ipam.Tenure) string {
	if t.Early && t.What == ipam.ReservationTenure && !t.Until.IsZero() {
		return "by " + cli.LocalTime(t.From)
	}
	return cli.LocalTime(t.From)
}
