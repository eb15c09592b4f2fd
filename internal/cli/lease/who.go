package lease

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"berth/internal/alloc"
	"berth/internal/cli"
	"berth/internal/ipam"
)

const whoHelp = `Shows the current and past holders of an address, or the addresses of a MAC or name. Each
line has the start, the end and the host. NAME is an endpoint or an owner. shop-web-1, shop_web_1 and
shop/web/1 are the same replica. The history reaches back as far as the events (berth serve --event-age,
--event-count, --event-size). Current holders are always known.

One line covers restarts of a holder that are at most ten minutes apart. --format json lists each.

WHAT is lease (held), reservation (reserved for an owner) or elastic (associated). --at shows the holder at
one moment: a time, or how long ago. --format wide adds the MAC, the host, the author (BY) and the notes.`

// WhoCommand is `berth who`.
func WhoCommand() cli.Row {
	var filter ipam.WhoFilter
	var at string
	var asTable bool
	return cli.Listing[ipam.Tenure]{
		Verb: cli.Verb{Use: "who ADDRESS|MAC|NAME", Short: "Show the current and past holders of an address", Long: whoHelp,
			Refs: []cli.Refs{cli.AnyNames},
			Example: `  berth who 10.8.0.9
  berth who 10.8.0.9 --at 2h
  berth who 10.8.0.9 --at "2026-11-17 10:00"
  berth who 02:42:0a:08:00:09 --at 7d
  berth who shop-web-1
  berth who shop/web/1 --format json`,
			Flags: cli.Flags{cli.Flag(&at, "at",
				"only the holder at `WHEN`: "+cli.WhenText), cli.SpaceFlag(&filter.Space)},
			Check: func(r *cli.Run) (err error) {
				if filter.At, err = cli.WhenFlag("at", at, r.Now()); err != nil {
					return err
				}
				return whom(r.Args[0], &filter)
			}},
		Keys: cli.Fields{"network", "space", "host", "owner=Name", "tag", cli.Choice("kind=What,Kind",
			append([]string{ipam.LeaseTenure, ipam.ReservationTenure, ipam.ElasticTenure}, ipam.Kinds()...)...)},
		ColumnsOf: func(out cli.Output) cli.Fields {
			asTable = out.IsTable()
			return whoColumns(&filter)
		},
		Said: true,
		Fetch: func(r *cli.Run) ([]ipam.Tenure, error) {
			all, err := r.Who(r, filter)
			if err == nil && len(all) == 0 {
				nobody := "no holder on record"
				if filter.Name != "" {
					nobody = fmt.Sprintf("no address of %s on record; `berth find %s` also searches for parts of names",
						filter.Name, filter.Name)
				}
				err = tellKnown(r, nobody)
			}
			if asTable {
				all = joined(all)
			}
			return all, err
		},
	}
}

// restart is how long a holder may be gone between two leases that are shown as one tenure.
const restart = 10 * time.Minute

// joined joins the tenures of a holder that restarts. all is sorted, the earliest first.
func joined(all []ipam.Tenure) (lines []ipam.Tenure) {
	type place struct {
		space string
		addr  netip.Addr
	}
	last := map[place]int{} // the index of the last line of an address
	for i := range all {
		t := &all[i]
		if t.What != ipam.LeaseTenure {
			lines = append(lines, *t)
			continue
		}
		at := place{t.Space, t.Address}
		if n, had := last[at]; had && continues(&lines[n], t) {
			from := lines[n]
			lines[n] = *t
			lines[n].From, lines[n].By, lines[n].Early = from.From, from.By, from.Early
			continue
		}
		last[at] = len(lines)
		lines = append(lines, *t)
	}
	return lines
}

// continues reports whether a lease is that of the previous holder, which came back.
func continues(before, t *ipam.Tenure) bool {
	same := before.Name == t.Name && (t.Name != "" || before.MAC == t.MAC) && before.Host == t.Host
	return same && !before.Until.IsZero() && t.From.Sub(before.Until) <= restart
}

// tellKnown prints that nothing was found, and how far back the events reach.
func tellKnown(r *cli.Run, nothing string) error {
	since, err := r.KnownSince(r)
	if err != nil {
		return err
	}
	known := "there are no events"
	if !since.IsZero() {
		known = "events start at " + since.Local().Format("2006-01-02 15:04:05 MST")
	}
	r.Warn(nothing + "; " + known)
	return nil
}

// whom parses the argument: an address, a MAC or a name. A mistyped address is not a name.
func whom(text string, f *ipam.WhoFilter) error {
	addr, wrong := alloc.ParseAddr(text)
	if wrong == nil {
		f.Address = addr
		return nil
	}
	if _, err := netip.ParseAddr(text); err == nil {
		return wrong // an address in another form than Berth's
	}
	if mac, err := ipam.ParseMAC(text); err == nil {
		f.MAC = mac
		return nil
	}
	f.Name = text
	err := ipam.CheckOwner(text)
	if first, _, path := strings.Cut(text, "/"); err == nil && (!path || isNumber(text[len(first)+1:])) {
		err = ipam.CheckName("container", first) // 10.0.0.999 and 10.0.0.0/24 have only letters that names can have
	}
	if err != nil {
		return fmt.Errorf("%q is neither an address nor a MAC, nor the name of a container or an owner: %w", text,
			wrong)
	}
	return nil
}

func isNumber(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// whoColumns shows the requested address or name only in the wide format, because the user knows it. For a MAC it shows
// both, and 80 columns then have no space for WHAT.
func whoColumns(asked *ipam.WhoFilter) cli.Fields {
	unless := func(known bool, column string) string {
		if known {
			return column + ",wide"
		}
		return column
	}
	return cli.Fields{
		cli.RefCol(func(t *ipam.Tenure) string { return t.Address.String() }),
		cli.Col("FROM", tenureFrom),
		cli.Col("UNTIL", func(t *ipam.Tenure) string {
			if t.Until.IsZero() {
				return "now"
			}
			return cli.ShortTime(t.Until)
		}),
		unless(asked.Address.IsValid(), "Address"),
		unless(asked.MAC != (ipam.MAC{}), "What"), unless(asked.Name != "", "Name"),
		"Network,wide", "MAC,wide", "Host,wide", "By,wide", "Space,wide", "Note,wide",
	}
}

// tenureFrom returns when a tenure began, or "by" a time if its earlier events are gone.
func tenureFrom(t *ipam.Tenure) string {
	if t.Early && t.What != ipam.LeaseTenure && !t.Until.IsZero() {
		return "by " + cli.ShortTime(t.From)
	}
	return cli.ShortTime(t.From)
}
