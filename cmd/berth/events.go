package main

import (
	"context"
	"fmt"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"berth/internal/admin"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const eventsHelp = `Shows who took, gave back or changed what, how it was before, and when; the oldest first. Without --since
it shows the last 100 events, with it those since then; never more than 10,000 that are past. --follow
goes on with each event as it happens, until it is interrupted, and shows past ones only if --since or
--last asks for them.`

// eventsRequest is what the flags of events say.
type eventsRequest struct {
	since  string
	last   int
	follow bool
}

func (p *program) eventsCommand() *cobra.Command {
	var out output
	var req eventsRequest
	cmd := &cobra.Command{Use: "events", Short: "Show who took, gave back or changed what", Long: eventsHelp, Args: noArgs,
		Example: `  berth events
  berth events --since 2h
  berth events --since 2026-01-31T08:00:00Z --last 500
  berth events --follow --format json`}
	out.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&req.since, "since", "", "only those since `WHEN`: a time (RFC 3339), or how long ago (2h)")
	f.IntVar(&req.last, "last", admin.DefaultEvents, "at most the last `N` of them")
	f.BoolVarP(&req.follow, "follow", "f", false, "go on with each event as it happens")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := req.filter(cmd, p)
		if err != nil {
			return err
		}
		show, err := newTable(p.out, cmd, out, nil, func(e *ipam.Event) string { return strconv.FormatUint(e.ID, 10) })
		if err != nil {
			return err
		}
		show.line = func(e *ipam.Event) string { return eventLine(e, out.noTrunc) }
		client, err := p.find(cmd.Context())
		if err != nil {
			return err
		}
		defer client.Close()
		if req.follow {
			return followEvents(cmd.Context(), client, filter, show)
		}
		list, err := client.Events(cmd.Context(), filter)
		if err != nil {
			return err
		}
		if list.More && req.since != "" {
			fmt.Fprintf(p.err, "berth: there are older events since then; these are the last %d (--last)\n", len(list.Events))
		}
		return show.rows(list.Events)
	}
	return cmd
}

// filter works out how many past events are wanted.
func (req eventsRequest) filter(cmd *cobra.Command, p *program) (f ipam.EventFilter, err error) {
	f.Last = req.last
	switch {
	case req.last < 0 || req.last > admin.MaxEvents:
		return f, usage(cmd, fmt.Errorf("--last is %d and must be from 0 to %d", req.last, admin.MaxEvents))
	case cmd.Flags().Changed("last"):
	case req.since != "":
		f.Last = admin.MaxEvents
	case req.follow:
		f.Last = 0
	}
	if req.since != "" {
		if f.Since, err = since(req.since, p.now()); err != nil {
			return f, usage(cmd, fmt.Errorf("--since is %q and %w", req.since, err))
		}
	}
	return f, nil
}

// followEvents shows events until it is interrupted.
func followEvents(ctx context.Context, client *admin.Client, f ipam.EventFilter, show *table[ipam.Event]) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	for e, err := range client.Follow(ctx, f) {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := show.one(show.w, &e); err != nil {
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
			rest = append(rest, name+"="+printable(value))
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
	add("pool", shortID(e.Attachment, noTrunc))
	add("host", e.Host)
	add("by", e.Actor)
	add("detail", e.Detail)
	add("before", string(e.Before))
	add("after", string(e.After))
	return fmt.Sprintf("%s  %-18s  %-18s  %s", e.Time.Local().Format("2006-01-02 15:04:05.000"), e.Verb, object, strings.Join(rest, " "))
}
