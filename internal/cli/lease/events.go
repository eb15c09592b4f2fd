package lease

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/admin/api"
	"berth/internal/cli"
	"berth/internal/ipam"
)

const eventsHelp = `Shows who took, released or changed what and when, with the values before. The oldest
event comes first. Without --since it shows the last 100 events; with it, at most 10,000. --follow prints each
event as it happens, until you interrupt it. Past events need --since or --last.

--network shows only events of a network, by its name at that time. --verb shows one kind of event, such as
lease.take, or all of a noun, such as lease or lease.*. You can repeat both, and both filter --follow.

A line shows the time, verb, object, holder, change and author (unless it was the engine). --format wide adds
other fields, such as the host. --format json prints one object per line. --format yaml prints one sequence,
and --follow appends to it.

--watch shows the latest events first. --sort sorts by id, time, verb, address, network, name or by.

In --filter, the kind of an event is its verb: kind=lease.take or kind=lease.*.`

// eventsRequest holds the flags of events.
type eventsRequest struct {
	since, until    string
	networks, verbs []string
	last            int
	follow          bool
}

// EventsCommand is `berth events`.
func EventsCommand(p *cli.Program) cli.Row {
	var out cli.Output
	var req eventsRequest
	chosen := cli.NewFilter(cli.Keys[ipam.Event]("network", "space", "host", "owner=Name", "tag", "kind=Verb"))
	return cli.Verb{Use: "events", Aliases: []string{"event"}, Short: "Show who took, released or changed what",
		Long: eventsHelp,
		Example: `  berth events
  berth events --since 1h --format wide
  berth events --since 2h --network net1
  berth events --since 2026-11-17 --until "2026-11-17 10:00" --last 500
  berth events --follow --verb lease --verb reservation.add
  berth events --follow --format json`,
		Args: func(r *cli.Run) error {
			if len(r.Args) == 1 {
				if _, err := netip.ParseAddr(r.Args[0]); err == nil {
					return r.Usagef("berth events takes no address; `berth who %s` shows its holders", r.Args[0])
				}
			}
			return cli.NoArgs(r)
		},
		Instead: map[string]string{"tail": "--last N shows the last N events",
			"limit": "--last N shows the last N events"},
		Flags: slices.Concat(out.Flags(p), chosen.Flags(), req.flags()),
		Run: func(r *cli.Run) error {
			filter, err := req.filter(r, &out)
			if err == nil {
				err = chosen.Read()
			}
			if err != nil {
				return cli.Usage(r.Cmd, err)
			}
			if out.Watched() {
				out.SortUnless("-id") // a screen may not have space for older events
			}
			show, err := eventTable(r, out)
			if err != nil {
				return err
			}
			if err := r.Ask(); err != nil {
				return err
			}
			if err := chosen.Ask(r); err != nil {
				return err
			}
			if req.follow {
				return followEvents(r, filter, chosen, show)
			}
			return out.Show(r, func(r *cli.Run, w io.Writer) error {
				list, err := lastOf(r, filter, chosen)
				if err != nil {
					return err
				}
				if !out.Watched() {
					if err := req.note(r, &list); err != nil {
						return err
					}
				}
				show.W = w
				return show.Rows(list.Events)
			})
		}}
}

func (req *eventsRequest) flags() cli.Flags {
	req.last = api.DefaultEvents
	return cli.Flags{
		cli.Flag(&req.since, "since", "only events since `WHEN`: "+cli.WhenText),
		cli.Flag(&req.until, "until", "only events before `WHEN`, in the same forms"),
		cli.Flag(&req.networks, "network",
			"only events of the network `NAME` (repeatable)").Of(cli.NetworkRefs),
		cli.Flag(&req.verbs, "verb",
			"only events of the `VERB`, such as lease.take, or of a noun, such as lease "+
				"(repeatable)").Words(verbPatterns()...),
		cli.Flag(&req.last, "last", "at most the last `N` events").Short("n"),
		cli.Flag(&req.follow, "follow", "print each event as it happens").Short("f"),
	}
}

// note tells the user if older events were left out, or if there are no events at all.
func (req eventsRequest) note(r *cli.Run, list *api.EventList) error {
	if list.More && req.since != "" {
		fmt.Fprintf(r.Stderr, "berth: there are older events since that time; these are the last %d (see --last)\n",
			len(list.Events))
	}
	if len(list.Events) > 0 || req.last == 0 {
		return nil
	}
	return tellKnown(r, "no matching event")
}

// eventTable prints an event per line. Its columns are those of --sort.
func eventTable(r *cli.Run, out cli.Output) (*cli.Table[ipam.Event], error) {
	show, err := cli.NewTable(r, out, cli.Columns[ipam.Event](
		"ID=ID",
		cli.Col("TIME", func(e *ipam.Event) string { return e.Time.UTC().Format("2006-01-02T15:04:05.000000") }),
		"Verb",
		cli.Col("ADDRESS", eventObject),
		"Network", "Name", "BY=Actor",
	))
	if err != nil {
		return nil, err
	}
	show.Line, show.Header = eventLine, eventHeader(cli.LocalTime(r.Now()), "OBJECT", 15, "HOLDER  CHANGE")
	if out.Wide() {
		show.Line = func(e *ipam.Event) string { return wholeEvent(e, out.NoTrunc) }
		show.Header = eventHeader(r.Now().Local().Format(eventTime), "OBJECT", 18, "DETAILS")
	}
	return show, nil
}

// eventTime is the form of an event's time with --format wide.
const eventTime = "2006-01-02 15:04:05.000 MST"

// eventHeader is the title of events. time is a time as their lines have it, width that of the object.
func eventHeader(time, object string, width int, rest string) string {
	return fmt.Sprintf("%-*s  %-18s  %-*s  %s", len(time), "TIME", "VERB", width, object, rest)
}

// filter converts the flags to a filter. Its error is a usage error.
func (req eventsRequest) filter(r *cli.Run, out *cli.Output) (f ipam.EventFilter, err error) {
	f.Last = req.last
	switch {
	case req.follow && req.until != "":
		return f, errors.New("--follow shows new events, --until past events; give only one of the two flags")
	case req.follow && (out.Watched() || out.IsSorted()):
		return f, errors.New("--follow shows each event as it happens; leave out --watch and --sort")
	case req.last < 0 || req.last > api.MaxEvents:
		return f, fmt.Errorf("--last is %d and must be from 0 to %d", req.last, api.MaxEvents)
	case r.Given("last"):
	case req.since != "":
		f.Last = api.MaxEvents
	case req.follow:
		f.Last = 0
	}
	if f.Since, f.Before, err = cli.Period(req.since, req.until, r.Now()); err != nil {
		return f, err
	}
	if f.Networks = req.networks; slices.ContainsFunc(req.networks, func(name string) bool {
		return ipam.CheckName("network", name) != nil
	}) {
		return f, fmt.Errorf("--network is %q, and must be the name of a network", req.networks)
	}
	for _, pattern := range req.verbs {
		verbs := ipam.VerbsLike(pattern)
		if len(verbs) == 0 {
			return f, fmt.Errorf("--verb is %q and must be a verb such as lease.take, or a noun such as lease or "+
				"lease.* for all its verbs; the verbs are %s", pattern, strings.Join(ipam.Verbs(), ", "))
		}
		f.Verbs = append(f.Verbs, verbs...)
	}
	return f, nil
}

// verbPatterns returns the values of --verb: nouns and verbs.
func verbPatterns() []string {
	var nouns []string
	for _, verb := range ipam.Verbs() {
		noun, _, _ := strings.Cut(verb, ".")
		nouns = append(nouns, noun)
	}
	return append(slices.Compact(nouns), ipam.Verbs()...)
}

// followEvents prints events until it is interrupted.
func followEvents(r *cli.Run, f ipam.EventFilter, chosen *cli.Filter[ipam.Event], show *cli.Table[ipam.Event]) error {
	r, stop := r.UntilSignal()
	defer stop()
	if err := show.WriteHeader(show.W); err != nil {
		return err
	}
	for e, err := range r.Follow(r, f) {
		if r.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if !chosen.Fits(&e) {
			continue
		}
		if err := show.One(show.W, &e); err != nil {
			return err
		}
	}
	return nil
}

// lastOf asks for past events. With --filter it searches the last api.MaxEvents events.
func lastOf(r *cli.Run, f ipam.EventFilter, chosen *cli.Filter[ipam.Event]) (api.EventList, error) {
	most := f.Last
	if chosen.Given() {
		f.Last = api.MaxEvents
	}
	list, err := r.Events(r, f)
	if err != nil || !chosen.Given() {
		return list, err
	}
	list.Events = chosen.Rows(list.Events)
	if n := len(list.Events); n > most {
		list.Events, list.More = list.Events[n-most:], true
	}
	return list, nil
}

// eventWidth is the maximum width of an event's line without --format wide. If the change does not fit, it goes to a
// second line, which may be longer.
const eventWidth = 80

// eventLine formats an event for a person: time, verb, address or network, holder, change.
func eventLine(e *ipam.Event) string {
	object, who, changed := eventObject(e), e.Name, ""
	if len(e.Before)+len(e.After) > 0 {
		changed = e.Changed()
	}
	if changed != "" && e.Network != "" && !e.Address.IsValid() && !strings.HasPrefix(e.Verb.String(), "subnet.") {
		object = e.Network // the changed range shows the place
	}
	if who == "" || who == object {
		if who = ""; e.Network != "" && e.Network != object {
			who = "(network " + e.Network + ")"
		}
	}
	if changed == "" && who == "" {
		changed = e.Detail
	}
	line := strings.TrimRight(fmt.Sprintf("%s  %-18s  %-15s  %s", cli.LocalTime(e.Time), e.Verb, cli.Printable(object),
		printable(who)), " ")
	if changed = printable(changed); e.Actor != "" && e.Actor != engineActor {
		name, _, _ := strings.Cut(e.Actor, " (uid ")
		changed = strings.TrimLeft(changed+"  by "+cli.Printable(name), " ")
	}
	short := []rune(line)
	switch {
	case changed != "" && len(short)+2+len([]rune(changed)) <= eventWidth:
		return line + "  " + changed
	case changed != "":
		changed = "\n  " + changed
	}
	if len(short) > eventWidth {
		line = string(append(short[:eventWidth-len(dots)], []rune(dots)...))
	}
	return line + changed
}

// engineActor is the actor that lines do not name, because most events are the Docker Engine's.
const engineActor = "engine"

// dots mark a line that was cut.
const dots = "..."

// printable is cli.Printable, but keeps an empty text empty.
func printable(text string) string {
	if text == "" {
		return ""
	}
	return cli.Printable(text)
}

// eventObject returns the subject of an event.
func eventObject(e *ipam.Event) string {
	switch {
	case e.Address.IsValid():
		return e.Address.String()
	case e.Subnet.IsValid():
		return e.Subnet.String()
	case e.Network != "":
		return e.Network
	}
	return e.Space
}

// wholeEvent formats an event with all its fields, each with its name.
func wholeEvent(e *ipam.Event, noTrunc bool) string {
	object := eventObject(e)
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
	add("changed", e.Changed())
	return fmt.Sprintf("%s  %-18s  %-18s  %s", e.Time.Local().Format(eventTime), e.Verb, object,
		strings.Join(rest, " "))
}
