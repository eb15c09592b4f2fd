package lease

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const eventsHelp = `Shows who took, gave back or changed what, how it was before, and when; the oldest first.
Without --since it shows the last 100 events, with it the events since then, at most 10,000. --follow
shows each event as it happens, until it is interrupted, and past ones only if --since or --last asks for
them.`

// eventsRequest is what the flags of events say.
type eventsRequest struct {
	since  string
	last   int
	follow bool
}

// EventsCommand is `berth events`.
func EventsCommand(p *cli.Program) *cobra.Command {
	var out cli.Output
	var req eventsRequest
	cmd := cli.Verb{Use: "events", Short: "Show who took, gave back or changed what", Long: eventsHelp,
		Example: `  berth events
  berth events --since 2h
  berth events --since 2026-01-31T08:00:00Z --last 500
  berth events --follow --format json`}.Command(p)
	out.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&req.since, "since", "", "only those since `WHEN`: a time (RFC 3339), or how long ago (2h)")
	f.IntVar(&req.last, "last", api.DefaultEvents, "at most the last `N` of them")
	f.BoolVarP(&req.follow, "follow", "f", false, "go on with each event as it happens")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := req.filter(cmd, p)
		if err != nil {
			return err
		}
		show, err := cli.NewTable(p.Out, cmd, out, []cli.Column[ipam.Event]{
			cli.Col("ID", func(e *ipam.Event) string { return strconv.FormatUint(e.ID, 10) }),
		})
		if err != nil {
			return err
		}
		show.Line = func(e *ipam.Event) string { return eventLine(e, out.NoTrunc) }
		c, err := p.Find(cmd.Context())
		if err != nil {
			return err
		}
		defer c.Close()
		if req.follow {
			return followEvents(cmd.Context(), c, filter, show)
		}
		list, err := c.Events(cmd.Context(), filter)
		if err != nil {
			return err
		}
		if list.More && req.since != "" {
			fmt.Fprintf(p.Err, "berth: there are older events since then; these are the last %d (--last)\n",
				len(list.Events))
		}
		return show.Rows(list.Events)
	}
	return cmd
}

// filter works out how many past events are wanted.
func (req eventsRequest) filter(cmd *cobra.Command, p *cli.Program) (f ipam.EventFilter, err error) {
	f.Last = req.last
	switch {
	case req.last < 0 || req.last > api.MaxEvents:
		return f, cli.Usage(cmd, fmt.Errorf("--last is %d and must be from 0 to %d", req.last, api.MaxEvents))
	case cmd.Flags().Changed("last"):
	case req.since != "":
		f.Last = api.MaxEvents
	case req.follow:
		f.Last = 0
	}
	if req.since != "" {
		if f.Since, err = cli.Since(req.since, p.Now()); err != nil {
			return f, cli.Usage(cmd, fmt.Errorf("--since is %q and %w", req.since, err))
		}
	}
	return f, nil
}

// followEvents shows events until it is interrupted.
func followEvents(ctx context.Context, c *client.Client, f ipam.EventFilter, show *cli.Table[ipam.Event]) error {
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	for e, err := range c.Follow(ctx, f) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := show.One(show.W, &e); err != nil {
			return err
		}
	}
	return nil
}

// eventLine is an event for a person: when, what, about which address or subnet, and the rest by name.
func eventLine(e *ipam.Event, noTrunc bool) string {
	object := e.Space
	if e.Network != "" {
		object = e.Network
	}
	switch {
	case e.Address.IsValid():
		object = e.Address.String()
	case e.Subnet.IsValid():
		object = e.Subnet.String()
	}
	var rest []string
	add := func(name, value string) {
		if value != "" {
			rest = append(rest, name+"="+cli.Printable(value))
		}
	}
	add("name", e.Name)
	add("mac", e.MAC.String())
	if e.Address.IsValid() && e.Subnet.IsValid() {
		add("subnet", e.Subnet.String())
	}
	if object != e.Network {
		add("network", e.Network)
	}
	add("space", e.Space)
	add("pool", cli.ShortID(e.Attachment, noTrunc))
	add("host", e.Host)
	add("by", e.Actor)
	add("detail", e.Detail)
	add("before", string(e.Before))
	add("after", string(e.After))
	return fmt.Sprintf("%s  %-18s  %-18s  %s", e.Time.Local().Format("2006-01-02 15:04:05.000"), e.Verb, object,
		strings.Join(rest, " "))
}
