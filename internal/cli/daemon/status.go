// Package daemon has the commands about the daemon itself: status, version, consistency checks, tokens, and backups of
// the state. Problems are reported in plain words, with the command that helps.
//
// status.go prints the status, with the shared store's part from cluster.go. check.go compares the records with the
// engine, or shows an engine's view to a daemon that has no engine. token.go manages tokens, version.go prints both
// versions, and save.go makes the daemon save its state.
package daemon

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"berth/internal/admin/api"
	"berth/internal/cli"
	"berth/internal/ipam"
)

const statusHelp = `Shows the daemon: its version, since when it has been running, where its state is, how
much the state holds, and whether it can be written. It also shows networks that are 90% full or more, the engine and
the last check, whether the engine sends container names, and the state of hooks, webhooks and DNS.

It shows how many releases wait until the state can be written again, if any do.

With --store etcd it also shows whether the shared store is reachable, how old the daemon's copy is, which hosts are
present, what is still to be written to the shared store, and the headroom.

--settings lists each setting in force and its source: a flag, the environment or the default.`

// StatusCommand is `berth status`.
func StatusCommand(p *cli.Program) cli.Row {
	var socket string
	var networks []ipam.NetworkInfo
	var settings bool
	return cli.Showing[api.Status]{
		Verb: cli.Verb{Use: "status", Short: "Show the state of the daemon", Long: statusHelp,
			Example: `  berth status
  berth status --settings
  berth status --format json
  berth status --format '{{.Writable}}'`,
			Flags: cli.Flags{cli.Flag(&settings, "settings",
				"show the settings in force, and where each comes from")}},
		JSON: "one object",
		Fetch: func(r *cli.Run) (st api.Status, err error) {
			socket = r.Socket()
			if networks, err = r.Networks(r, ""); err != nil {
				return st, err
			}
			return r.Status(r)
		},
		Text: func(w io.Writer, st *api.Status) error {
			if settings {
				return settingsText(p, w, st)
			}
			return statusText(w, socket, st, networks)
		},
	}
}

// settingsText lists the settings in force.
func settingsText(p *cli.Program, w io.Writer, st *api.Status) error {
	return cli.PlainTable(p, w, cli.Columns[api.Setting]("SETTING=Name", "Value", "Source"), false).Rows(st.Settings)
}

// unknownText warns of unknown variables in the daemon's environment.
func unknownText(names []string) string {
	return fmt.Sprintf("unknown settings in the daemon's environment: %s; `berth serve --help` lists all settings",
		strings.Join(names, ", "))
}

func statusText(w io.Writer, socket string, st *api.Status, networks []ipam.NetworkInfo) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name+":", cli.Printable(fmt.Sprintf(format, args...)))
	}
	line("Daemon", "%s on host %s, process %d", st.Version.Version, st.Host, st.PID)
	line("Up", "%s, since %s", (time.Duration(st.Uptime) * time.Second).String(), cli.LocalTime(st.Started))
	line("Socket", "%s", socket)
	kind := st.Store
	if st.Cluster != nil {
		kind = "shared store: etcd; own store: bolt"
	}
	line("State", "%s (%s %s)", st.State, kind, st.StoreID)
	if st.Writable {
		line("Store", "writable")
	} else {
		line("Store", "refuses writes: %s", st.Reason)
	}
	if len(st.Unknown) > 0 {
		line("Settings", "%s", unknownText(st.Unknown))
	}
	own := st.Waiting
	if c := st.Cluster; c != nil {
		line("Cluster", "%s", clusterText(c))
		line("Shared", "%s", reachText(c))
		line("Host", "%s", selfText(st.Host, c))
		line("Waiting", "%s", waitingText(c))
		line("Headroom", "%s", headroomText(c.Headroom))
		own -= c.Waiting
	}
	if own > 0 {
		line("Releases", "%d wait until the state is writable", own)
	}
	line("Keeps", "%s, %s, %s, %s, %s, %s", cli.Counted(st.Totals.Spaces, "space"),
		cli.Counted(st.Totals.Networks, "network"),
		cli.Counted(st.Totals.Subnets, "subnet"), cli.Counted(st.Totals.Docker, "Docker network"),
		heldText(st.Totals.Leases), ipam.ReservedText(st.Totals.Reservations, st.Totals.Reserved))
	line("Full", "%s", fullText(networks))
	if st.Witness != nil {
		line("Engine", "%s", engineText(st.Witness))
		line("Check", "%s", checkText(st.Witness))
		line("Starts", "%s", startText(st.Witness))
	}
	if st.Hooks != nil {
		line("Hooks", "%d run, %d failed", st.Hooks.Runs, st.Hooks.Failures)
	}
	if st.Names != nil {
		line("Names", "%s", namesText(st.Names))
	}
	for i := range st.Webhooks {
		line("Webhook", "%s", webhookText(&st.Webhooks[i]))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func heldText(held uint64) string {
	if held == 1 {
		return "1 address held"
	}
	return fmt.Sprintf("%d addresses held", held)
}

// namesText describes the DNS server: its zone, its addresses and its number of queries.
func namesText(s *api.NamesState) string {
	var at []string
	for _, one := range s.Listen {
		at = append(at, one.String())
	}
	all := uint64(0)
	for _, n := range s.Queries {
		all += n
	}
	return fmt.Sprintf("%s of %s at %s; %s since the start, %d of them refused",
		cli.Counted(s.Names, "name"), s.Zone, strings.Join(at, ", "), cli.Counted(int(all), "question"),
		s.Queries["REFUSED"])
}

// webhookText describes the state of a receiver of events.
func webhookText(s *api.WebhookState) string {
	text := fmt.Sprintf("%s: %d events delivered, %d attempts failed", s.Receiver, s.Delivered, s.Failures)
	if s.Aside > 0 {
		text += fmt.Sprintf(", %d set aside", s.Aside)
	}
	switch {
	case s.Error != "":
		return fmt.Sprintf("%s; waiting since %s: %s", text, cli.LocalTime(s.Waiting), s.Error)
	case !s.Waiting.IsZero():
		return text + "; one is being sent"
	}
	return text
}

// A network is nearly full from this percentage on. The status names this many of them.
const (
	nearlyFull = 90
	namedFull  = 5
)

// fullText lists the nearly full networks, the fullest first.
func fullText(networks []ipam.NetworkInfo) string {
	type full struct {
		name    string
		percent int
	}
	var all []full
	for i := range networks {
		if percent, ok := networks[i].Use.Percent(); ok && percent >= nearlyFull {
			all = append(all, full{networks[i].Name, percent})
		}
	}
	if len(all) == 0 {
		return fmt.Sprintf("no network is %d%% full or more", nearlyFull)
	}
	slices.SortStableFunc(all, func(a, b full) int { return b.percent - a.percent })
	var texts []string
	for i, f := range all {
		if i == namedFull {
			texts = append(texts, fmt.Sprintf("and %d more (berth network ls)", len(all)-i))
			break
		}
		texts = append(texts, fmt.Sprintf("%s %d%%", f.name, f.percent))
	}
	return strings.Join(texts, ", ")
}

// engineText describes whether the daemon can see the running containers.
func engineText(w *ipam.WitnessState) string {
	switch {
	case w.Engine == ipam.NoEngine:
		return "Berth cannot see a Docker Engine, so it does not know which containers run; start `berth witness`, " +
			"or run `berth check`"
	case w.Engine == ipam.EngineReachable:
		version := ""
		if w.Version != "" {
			version = w.Version + ", "
		}
		return version + "reachable, last read " + cli.LocalTime(w.Seen)
	case w.Seen.IsZero():
		return w.Engine + ": " + w.Detail
	}
	return fmt.Sprintf("%s since %s: %s", w.Engine, cli.LocalTime(w.Seen), w.Detail)
}

// startText describes which containers keep their addresses when they start, and what helps the others.
func startText(w *ipam.WitnessState) string {
	const help = "containers that start together may swap addresses: run `berth pin`"
	sends, known := w.SendsNames()
	switch {
	case sends:
		return "the engine sends container names: all containers keep their addresses"
	case !w.Live && !known:
		return "Berth does not read the engine: before Docker 29, containers are sure to keep only reserved addresses"
	case !w.Live:
		return "the engine sends no container names, and Berth cannot follow its events: containers are sure to keep " +
			"only reserved addresses"
	}
	q := &w.Questions
	text := "the engine sends no container names, so Berth asks it which container starts"
	var counts []string
	for _, count := range []struct {
		n    uint64
		text string
	}{
		{q.One, "%d recognized"}, {q.Several, "%d one of several"}, {q.None, "%d new"},
		{q.Late, "%d without an answer"}, {q.Boots, "%d while the engine booted"}, {w.Guesses.Wrong, "%d wrong"},
		{w.PutBack.Done, "%d moved back"}, {w.PutBack.Refused, "%d not moved back"},
	} {
		if count.n > 0 {
			counts = append(counts, fmt.Sprintf(count.text, count.n))
		}
	}
	if len(counts) > 0 {
		text += ": " + strings.Join(counts, ", ")
	}
	return text + "; " + help
}

// checkText describes what the last comparison with the engine found, and other findings on this host.
func checkText(w *ipam.WitnessState) string {
	found := findingsText(w.Counts)
	wrong := found != nothingWrong
	switch {
	case w.Runs == 0 && wrong:
		return "Berth has not compared the running containers yet; other findings: " + found
	case w.Runs == 0:
		return "none yet"
	case w.Engine != ipam.EngineReachable && wrong:
		found += "; Berth could not read the engine"
	case w.Engine != ipam.EngineReachable:
		found = "Berth could not read the engine"
	}
	return fmt.Sprintf("%s since the start, the last %s: %s", cli.Counted(w.Runs, "run"), cli.LocalTime(w.Last), found)
}
