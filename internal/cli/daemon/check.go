package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/cli"
	"berth/internal/ipam"
)

var checkHelp = `Compares Berth's leases with the running containers of the Docker Engine. For each difference,
the report says what it means and what to do. The command changes nothing in Docker. Without --repair it changes
nothing in Berth either, with one exception: it releases a replaced address once the owner uses the new address.

` + ipam.DescribeFindings(false) + `
Findings about elastic addresses (berth elastic check finds only these):

` + ipam.DescribeFindings(true) + `
The report also counts the releases that Berth could not write to a store yet, for example on a full disk. Berth writes
them as soon as it can. In a cluster each host compares its own leases; the report names hosts whose daemons
are not connected.

--repair repairs each finding that is certain: the engine is reachable, and two checks, at least five minutes
apart (berth serve --check-grace), have found it. --repair-from repairs only those findings of an earlier report
(--format json) that are still true. The daemon checks by itself every five minutes (--check-every).

If the daemon cannot read an engine, as in a managed plugin, the command reads this host's engine.

Exit codes: 0 no findings are left; 1 the check failed; 2 findings are left.`

// checkFlags are the flags of check.
type checkFlags struct {
	engine cli.EngineFlags
	repair bool
	from   string
	format string
}

// CheckCommand is `berth check`.
func CheckCommand() cli.Row {
	flags := checkFlags{format: "table"}
	return cli.Verb{Use: "check", Short: "Compare leases with running containers, and repair",
		Long: checkHelp,
		Example: `  berth check
  berth check --repair
  berth check --format json > report.json
  berth check --repair-from report.json
  berth check --docker-host unix:///run/docker.sock --ipam-driver berth:latest`,
		Flags: append(flags.engine.Flags(),
			cli.Flag(&flags.repair, "repair", "repair every finding that is certain (see above)"),
			cli.Flag(&flags.from, "repair-from",
				"repair only findings of the report in `FILE`, if they are certain; - is standard input").
				Filled(),
			cli.Flag(&flags.format, "format",
				"`form` of the output: table, wide (also the host, the owner and "+
					"when Berth first found the difference), json (the report, one object), yaml (the same), or "+
					"a Go template").
				Words("table", "wide", "json", "yaml").Filled()),
		Run: func(r *cli.Run) error {
			wide := flags.format == "wide"
			if wide {
				flags.format = "text"
			}
			show, err := cli.NewObject[ipam.CheckReport](r, flags.format)
			if err != nil {
				return err
			}
			report, err := check(r, &flags)
			if err != nil {
				return err
			}
			err = show.Object(&report, func(w io.Writer) error { return writeReport(r, w, &report, wide) })
			if err != nil {
				return err
			}
			return leftOf(&report)
		}}
}

// check asks the daemon for a report. If the daemon reads no engine, check sends it a view of the local one.
func check(r *cli.Run, flags *checkFlags) (report ipam.CheckReport, err error) {
	req, err := checkRequest(r, flags)
	if err == nil {
		err = r.Ask()
	}
	if err != nil {
		return report, err
	}
	if st, err := r.Status(r); err == nil && len(st.Unknown) > 0 {
		r.Warn(unknownText(st.Unknown))
	}
	if flags.engine.Given() {
		if req.View, err = flags.engine.View(r); err != nil {
			return report, err
		}
		return r.Check(r, req)
	}
	report, err = r.Check(r, req)
	if err != nil {
		return report, err
	}
	if report.Engine != ipam.NoEngine || !flags.engine.MayLookHere(r) {
		return report, nil // another engine cannot replace the daemon's own, even if that is unreachable
	}
	if req.View, err = flags.engine.View(r); err != nil {
		return report, fmt.Errorf("the daemon cannot see a Docker Engine, and neither can this command: %w; name "+
			"another engine with --docker-host", err)
	}
	return r.Check(r, req)
}

// checkRequest converts the flags to a request.
func checkRequest(r *cli.Run, flags *checkFlags) (req ipam.CheckRequest, err error) {
	req.Repair = flags.repair
	switch {
	case flags.from == "":
		return req, nil
	case flags.repair:
		return req, r.Usagef("--repair-from already repairs; leave out --repair")
	}
	text, err := r.ReadFile(flags.from)
	if err != nil {
		return req, err
	}
	var before ipam.CheckReport
	if err := json.Unmarshal(text, &before); err != nil || before.Host == "" {
		return req, fmt.Errorf("%s is not a report of `berth check --format json`", cli.Named(flags.from))
	}
	return ipam.CheckRequest{Repair: true, Only: &before}, nil
}

// writeReport writes a report for a person.
func writeReport(r *cli.Run, w io.Writer, report *ipam.CheckReport, wide bool) error {
	if report.Engine != ipam.EngineReachable {
		return nil // the error explains it
	}
	var text bytes.Buffer
	rows := cli.PlainTable(r.Program, &text, findingColumns(), wide)
	if err := rows.Rows(report.Findings); err != nil {
		return err
	}
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n") {
		if len(report.Findings) == 0 {
			break
		}
		fmt.Fprintln(&b, line)
		if i > 0 {
			fmt.Fprintf(&b, "  %s\n", cli.Printable(report.Findings[i-1].Detail))
		}
	}
	fmt.Fprintf(&b, "compared on %s at %s: %s\n", cli.Printable(report.Host), cli.LocalTime(report.Taken),
		reportSummary(report))
	_, err := io.WriteString(w, b.String())
	return err
}

func findingColumns() []cli.Column[ipam.Finding] {
	return cli.Columns[ipam.Finding](
		cli.Field[ipam.Finding]("Kind").Stands(func(f *ipam.Finding) cli.Alarm {
			if f.Repaired {
				return ""
			}
			return cli.Wrong
		}),
		cli.Col("ADDRESS", func(f *ipam.Finding) string { return placeText(f.Address, f.Subnet) }),
		"Network",
		cli.Col("REPAIRABLE", func(f *ipam.Finding) string {
			if f.Repaired {
				return "repaired"
			}
			return cli.Yes(f.Repairable)
		}),
		"Host,wide", "Owner,wide",
		cli.Col("SEEN", func(f *ipam.Finding) string { return cli.LocalTime(f.Seen) }).Wide(),
	)
}

// placeText returns an address, or else a subnet, or else "".
func placeText(addr netip.Addr, subnet netip.Prefix) string {
	switch {
	case addr.IsValid():
		return addr.String()
	case subnet.IsValid():
		return subnet.String()
	}
	return ""
}

// reportSummary counts the findings and says how to repair them.
func reportSummary(r *ipam.CheckReport) string {
	text := findingsText(r.Counts)
	repairable := 0
	for i := range r.Findings {
		if r.Findings[i].Repairable && !r.Findings[i].Repaired {
			repairable++
		}
	}
	if r.Repaired > 0 {
		text += fmt.Sprintf("; %d repaired", r.Repaired)
	}
	if r.Waiting > 0 {
		text += fmt.Sprintf("; %s still to be written", cli.Counted(r.Waiting, "release"))
	}
	for _, away := range r.Absent {
		text += fmt.Sprintf("; not compared: %s of host %s, whose daemon is not connected (they stay held)",
			cli.Counted(away.Leases, "lease"), cli.Printable(away.Host))
	}
	if repairable > 0 {
		text += fmt.Sprintf("; %d can be repaired with `berth check --repair`", repairable)
	}
	return text
}

// nothingWrong replaces an empty list of findings.
const nothingWrong = "nothing is wrong"

// findingsText counts findings by kind.
func findingsText(counts map[ipam.FindingKind]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	if len(parts) == 0 {
		return nothingWrong
	}
	return strings.Join(parts, ", ")
}

// leftOf returns the error of a check that leaves something to do. The report was printed before.
func leftOf(r *ipam.CheckReport) error {
	switch left := len(r.Findings) - r.Repaired; {
	case r.Engine == ipam.NoEngine:
		return errors.New("the daemon cannot see a Docker Engine, so Berth compared nothing; name an engine with " +
			"--docker-host")
	case r.Engine != ipam.EngineReachable:
		return fmt.Errorf("the engine did not answer, so nothing was compared: %s", r.Trouble)
	case r.Trouble != "":
		return errors.New(r.Trouble)
	case left > 0:
		return cli.Difference(cli.Counted(left, "finding") + " left")
	}
	return nil
}
