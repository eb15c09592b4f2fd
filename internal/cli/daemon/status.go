// Package daemon has the verbs about the daemon itself: how it is, which version, whether what it has given is what
// runs, who may ask it, and where its state is written. It promises to say what is wrong in words of a person, with the
// command that helps.
//
// status.go is the page of its status, with what cluster.go says of a shared store. check.go asks for a comparison with
// the engine, and shows an engine's view to a daemon that has none. token.go makes and removes tokens, version.go tells
// both versions, and save.go has the state written to its place.
package daemon

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const statusHelp = `Shows which Berth answers and since when, where its state is and how much it keeps,
whether it takes writes, and if not, why. It also shows an import that is under way or was cut off,
whether the engine can be read, how often the daemon guessed the name of a container because the engine
sent none, and what became of the hooks.

With --store etcd it also shows whether the shared store is in reach, and if not, since when and why, how
old the data shown from it is, which other hosts are there, what waits to be written to the store, and how
much headroom there is.`

// StatusCommand is `berth status`.
func StatusCommand(p *cli.Program) *cobra.Command {
	var socket string
	return cli.Showing[api.Status]{
		Verb: cli.Verb{Use: "status", Short: "Show the state of the daemon", Long: statusHelp,
			Example: "  berth status\n  berth status --format json\n  berth status --format '{{.Writable}}'"},
		Fetch: func(ctx context.Context, c *client.Client, _ []string) (api.Status, error) {
			socket = c.Socket()
			return c.Status(ctx)
		},
		Text: func(w io.Writer, st *api.Status) error { return statusText(w, socket, st) },
	}.Command(p)
}

func statusText(w io.Writer, socket string, st *api.Status) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name+":", cli.Printable(fmt.Sprintf(format, args...)))
	}
	line("Daemon", "%s on host %s, process %d", st.Version.Version, st.Host, st.PID)
	line("Up", "%s, since %s", (time.Duration(st.Uptime) * time.Second).String(), cli.LocalTime(st.Started))
	line("Socket", "%s", socket)
	kind := st.Store
	if st.Cluster != nil {
		kind = "the host's own, bolt"
	}
	line("State", "%s (%s %s)", st.State, kind, st.StoreID)
	if st.Writable {
		line("Writes", "taken")
	} else {
		line("Writes", "refused: %s", st.Reason)
	}
	if c := st.Cluster; c != nil {
		line("Cluster", "%s", clusterText(c))
		line("Shared", "%s", reachText(c))
		line("Host", "%s", selfText(st.Host, c))
		line("Waiting", "%s", waitingText(c))
		line("Headroom", "%s", headroomText(c.Headroom))
	}
	line("Keeps", "%s, %s, %s, %s, %s, %s", cli.Counted(st.Totals.Spaces, "space"),
		cli.Counted(st.Totals.Networks, "network"),
		cli.Counted(st.Totals.Subnets, "subnet"), cli.Counted(st.Totals.Docker, "Docker network"),
		fmt.Sprintf("%d addresses held", st.Totals.Leases), fmt.Sprintf("%d reserved", st.Totals.Reserved))
	line("Import", "%s", importText(st.Import))
	if st.Witness != nil {
		line("Engine", "%s", engineText(st.Witness))
		line("Check", "%s", checkText(st.Witness))
		line("Guesses", "%s", guessText(st.Witness))
	}
	if st.Hooks != nil {
		line("Hooks", "%d run, %d failed", st.Hooks.Runs, st.Hooks.Failures)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// engineText says whether what runs can be seen.
func engineText(w *ipam.WitnessState) string {
	switch {
	case w.Engine == ipam.NoEngine:
		return "none is read; `berth witness` reads one for this daemon, and `berth check` once"
	case w.Engine == ipam.EngineReachable:
		return "reachable, last read " + cli.LocalTime(w.Seen)
	case w.Seen.IsZero():
		return w.Engine + ": " + w.Detail
	}
	return fmt.Sprintf("%s since %s: %s", w.Engine, cli.LocalTime(w.Seen), w.Detail)
}

// guessText says how often a container that said no name was known all the same.
func guessText(w *ipam.WitnessState) string {
	text := fmt.Sprintf("%s since the start, %d of them wrong", cli.Counted(int(w.Guesses.Made), "name"),
		w.Guesses.Wrong)
	if !w.Live {
		text += "; none at present: the engine's events are not followed"
	}
	return text
}

// checkText says what the last comparison with what runs came to.
func checkText(w *ipam.WitnessState) string {
	if w.Runs == 0 {
		return "there was none yet"
	}
	found := "it could not see what runs"
	if w.Engine == ipam.EngineReachable {
		found = findingsText(w.Counts)
	}
	return fmt.Sprintf("%s since the start, the last %s: %s", cli.Counted(w.Runs, "run"), cli.LocalTime(w.Last), found)
}

// importText says how far an import is, and what is to be done about it.
func importText(im *ipam.ImportState) string {
	if im == nil {
		return "none is open"
	}
	by := ""
	if im.Actor != "" {
		by = " by " + im.Actor
	}
	in := ""
	if im.Network != "" {
		in = ", in network " + im.Network
	}
	text := fmt.Sprintf("begun %s%s, %d of %d steps done%s: ", cli.LocalTime(im.Began), by, im.Done, im.Total, in)
	switch {
	case im.Running && im.Undoing:
		return text + "it is being taken back"
	case im.Running:
		return text + "it is under way"
	case im.Undoing:
		return text + "the taking back was cut off; go on with `berth import --undo`"
	}
	return text + "it was cut off; finish it with `berth import --resume`, or take it back with `berth import --undo`"
}
