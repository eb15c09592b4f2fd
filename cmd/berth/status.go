package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"berth/internal/admin"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const statusHelp = `Shows which Berth answers, since when, where its state is, how much it keeps, whether it takes writes and why
not, an import that is under way or was cut off, how it stands with the engine that is read, and what became of the
hooks. With --store etcd also whether the shared store is in reach, since when not and why, and how old is what is
shown of it, which other hosts are there, what waits to be told to the store, and how much headroom there is.`

func (p *program) statusCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "status", Short: "Show how the daemon is", Long: statusHelp, Args: noArgs,
		Example: "  berth status\n  berth status --format json\n  berth status --format '{{.Writable}}'"}
	cmd.Flags().StringVar(&format, "format", "text", "`form` of the output: text, json or a Go template")
	completes(cmd, "format", words("text", "json"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		show, err := newObject[admin.Status](p.out, cmd, format)
		if err != nil {
			return err
		}
		return p.ask(cmd, func(ctx context.Context, c *admin.Client) error {
			st, err := c.Status(ctx)
			if err != nil {
				return err
			}
			return showObject(show, &st, func(w io.Writer) error { return statusText(w, c.Socket(), &st) })
		})
	}
	return cmd
}

func statusText(w io.Writer, socket string, st *admin.Status) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name+":", printable(fmt.Sprintf(format, args...)))
	}
	line("Daemon", "%s on host %s, process %d", st.Version.Version, st.Host, st.PID)
	line("Up", "%s, since %s", (time.Duration(st.Uptime) * time.Second).String(), localTime(st.Started))
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
	line("Keeps", "%s, %s, %s, %s, %s, %s", counted(st.Totals.Spaces, "space"), counted(st.Totals.Networks, "network"),
		counted(st.Totals.Subnets, "subnet"), counted(st.Totals.Docker, "Docker network"),
		fmt.Sprintf("%d addresses held", st.Totals.Leases), fmt.Sprintf("%d reserved", st.Totals.Reserved))
	line("Import", "%s", importText(st.Import))
	if st.Witness != nil {
		line("Engine", "%s", engineText(st.Witness))
		line("Check", "%s", checkText(st.Witness))
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
		return "reachable, last read " + localTime(w.Seen)
	case w.Seen.IsZero():
		return w.Engine + ": " + w.Detail
	}
	return fmt.Sprintf("%s since %s: %s", w.Engine, localTime(w.Seen), w.Detail)
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
	return fmt.Sprintf("%s since the start, the last %s: %s", counted(w.Runs, "run"), localTime(w.Last), found)
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
	text := fmt.Sprintf("begun %s%s, %d of %d steps done%s: ", localTime(im.Began), by, im.Done, im.Total, in)
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
