package daemon

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"berth/internal/admin/api"
	"berth/internal/cli"
	"berth/internal/ipam"
)

const bugReportHelp = `Collects what helps to find a fault: versions, settings, the state of the daemon,
counts, the findings of the last check, the last events and the last lines of the
log. Without --with-names the report has no names, no addresses and no secrets: it shows
only the time and the verb of events, only the kind of findings, and placeholders
in the lines of the log.

The command prints the report. With --output it also writes the report to FILE,
after you say yes.`

// How many events and log lines a report has, and how long the journal may take.
const (
	reportEvents = 50
	reportLines  = "100"
	journalTime  = 10 * time.Second
)

// BugReportCommand is `berth bugreport`.
func BugReportCommand() cli.Row {
	var names, yes bool
	var file string
	return cli.Verb{Use: "bugreport", Short: "Collect what a bug report needs", Long: bugReportHelp,
		Example: `  berth bugreport
  berth bugreport --output report.txt
  berth bugreport --with-names --output report.txt --yes`,
		Flags: cli.Flags{
			cli.Flag(&names, "with-names", "show names and addresses, too"),
			cli.Flag(&file, "output", "also write the report to `FILE`").Short("o").Filled(),
			cli.Flag(&yes, "yes", "write the file without asking").Short("y")},
		Run: func(r *cli.Run) error {
			var text bytes.Buffer
			report := &bugReport{w: &text, clear: names}
			report.collect(r)
			if _, err := r.Out.Write(text.Bytes()); err != nil || file == "" {
				return err
			}
			if !yes {
				if err := r.Confirm("Write this report to " + cli.Named(file) + "?"); err != nil {
					return err
				}
			}
			return cli.WriteText(cli.PrivateMode, r.Out, file, text.Bytes())
		}}
}

// bugReport writes a report. It reports each failure and continues, because a report is needed most when something
// fails.
type bugReport struct {
	w     *bytes.Buffer
	clear bool // names are shown
	hide  *scrubber
}

func (r *bugReport) section(name string) { fmt.Fprintf(r.w, "\n## %s\n", name) }
func (r *bugReport) line(format string, args ...any) {
	fmt.Fprintln(r.w, cli.Printable(fmt.Sprintf(format, args...)))
}

// failed reports why something is missing. A daemon's error may contain names.
func (r *bugReport) failed(err error) {
	r.line("not available: %s", r.shown(cli.OneLine(err)))
}

// shown returns a text as this report may show it.
func (r *bugReport) shown(text string) string {
	if r.clear {
		return text
	}
	return r.hide.text(text)
}

func (r *bugReport) collect(run *cli.Run) {
	r.hide = newScrubber()
	var st api.Status
	var list api.EventList
	var noEvents error
	err := run.Ask()
	if err == nil {
		st, err = run.Status(run)
		last := reportEvents
		if !r.clear {
			last = scrubEvents
		}
		list, noEvents = run.Events(run, ipam.EventFilter{Last: last})
		if !r.clear {
			r.hide.learn(run, &st, list.Events)
		}
	}
	fmt.Fprintln(r.w, "# Berth bug report")
	r.section("Versions")
	r.line("command %s, %s, %s/%s", run.Build, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if err != nil {
		r.failed(err)
	} else {
		r.daemon(&st)
		r.section("Last events")
		if noEvents != nil {
			r.failed(noEvents)
		}
		r.events(list.Events)
	}
	r.section("Log")
	r.journal(run)
}

// daemon writes the daemon's status and settings.
func (r *bugReport) daemon(st *api.Status) {
	r.line("daemon %s, store %s, up %s", st.Version.Version, st.Store, time.Duration(st.Uptime)*time.Second)
	r.section("Settings")
	for _, s := range st.Settings {
		if s.Source != "default" {
			r.line("%s = %s (%s)", s.Name, r.setting(s.Value), s.Source)
		}
	}
	if len(st.Unknown) > 0 {
		r.line("%d unknown BERTH_ variables", len(st.Unknown))
	}
	r.section("State")
	t := &st.Totals
	r.line("%d spaces, %d networks, %d subnets, %d Docker networks, %d addresses held, %s",
		t.Spaces, t.Networks, t.Subnets, t.Docker, t.Leases, ipam.ReservedText(t.Reservations, t.Reserved))
	r.line("writable: %t %s", st.Writable, r.shown(st.Reason))
	if w := st.Witness; w != nil {
		r.line("engine %s %s %s", w.Engine, w.Version, r.shown(w.Detail))
		r.line("starts: %s", startText(w))
		r.section("Findings of the last check")
		r.line("%s", findingsText(w.Counts))
	}
	if h := st.Hooks; h != nil {
		r.line("hooks: %d run, %d failed", h.Runs, h.Failures)
	}
	for i := range st.Webhooks {
		one := &st.Webhooks[i]
		r.line("webhook: %d delivered, %d failures, %d set aside %s", one.Delivered, one.Failures, one.Aside,
			r.shown(one.Error))
	}
	r.cluster(st.Cluster)
}

// events writes the last events.
func (r *bugReport) events(all []ipam.Event) {
	all = all[max(0, len(all)-reportEvents):]
	for i := range all {
		e := &all[i]
		text := e.Time.UTC().Format(time.RFC3339) + " " + e.Verb.String()
		if r.clear {
			place := placeText(e.Address, e.Subnet)
			text += strings.TrimRight(fmt.Sprintf(" %s %s %s %s", e.Network, e.Name, place, e.Detail), " ")
		}
		r.line("%s", text)
	}
}

func (r *bugReport) cluster(c *api.ClusterStatus) {
	if c == nil {
		return
	}
	r.line("cluster: %d endpoints; %s", len(c.Endpoints), r.shown(reachText(c)))
	r.line("waiting: %s", waitingText(c))
}

// setting hides a value unless it says nothing about the user: a number, a duration, or one of Berth's own words.
func (r *bugReport) setting(value string) string {
	if r.clear {
		return value
	}
	if _, err := time.ParseDuration(value); err == nil {
		return value
	}
	if _, err := strconv.ParseFloat(value, 64); err == nil {
		return value
	}
	switch value {
	case "true", "false", "none", "off", "all", "reserved", "bolt", "etcd", "mem", "text", "json", "debug", "info",
		"warning", "error", "":
		return value
	}
	return "set"
}

// journal writes the last lines of the log, if systemd has it.
func (r *bugReport) journal(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, journalTime)
	defer cancel()
	args := []string{"--no-pager", "--quiet", "--output", "cat", "--lines", reportLines}
	for _, unit := range []string{"berth", "berth-witness", "berth-edge"} {
		args = append(args, "--unit", unit+".service")
	}
	out, err := exec.CommandContext(ctx, "journalctl", args...).Output()
	if err != nil {
		r.line("cannot read the log from the journal: %v; add the log lines from your container or terminal", err)
		return
	}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if !r.clear {
			line = r.hide.logLine(line)
		}
		r.line("%s", line)
	}
}
