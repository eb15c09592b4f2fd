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

	"github.com/spf13/cobra"
)

const checkHelp = `Compares Berth's leases with what runs in the Docker Engine. Each difference comes with a
sentence that explains it and what to do. It changes nothing in Docker. Without --repair it changes nothing in
Berth either, with one exception: it releases a replaced address once the owner runs with the new one.

  empty_state             the engine has networks of this Berth, but Berth knows none: the state was lost
  unused_lease            an address is held, but no endpoint uses it
  uncovered_address       an endpoint uses an address that nobody holds
  doubled_address         two endpoints have one address
  outdated_lease          an endpoint uses an address that is held for another, removed endpoint
  lost_lease              a DHCP server withdrew a container's address, or the lease expired
  conflicting_lease       a DHCP server gave one address to two clients
  unconfirmed_lease       a DHCP server does not answer; the container keeps its last address
  unused_subnet           the Docker networks of the subnet no longer exist
  unused_attachment       its Docker network no longer exists
  unknown_pool            Berth does not know the subnet of a Docker network
  wrong_gateway           a Docker network has another gateway than its subnet
  foreign_holder          a container runs with an address that is reserved for another
  owner_elsewhere         an owner runs with another address than the one reserved for it
  stale_memory            an address is remembered for a holder that will not come back
  superseded_reservation  its owner runs with the address that replaced it
  published_elastic       a container publishes ports and has an elastic address, or has none for that reason
  no_system_address       a container needs a system address, but none is free
  shadowed_subnet         a newer route, such as a VPN's, covers the subnet of a Docker network
  bridge_on_lan           a Docker network of the driver bridge overlaps a LAN of this host
  unprobed_network        a network needs probes, but berth edge does not run on this host
  foreign_answer          another machine on the LAN answers for a container's address
  ending_token            a token of the admin API expires within two weeks

Findings about elastic addresses (berth elastic check --help): edge_away, unmapped_elastic, guest_gone,
missing_device, firewall_in_way.

--repair repairs a finding when it is certain. The engine must be reachable, and two checks must find it over
at least five minutes (berth serve --check-grace). --repair-from repairs only findings of an earlier report
(--format json) that still hold. The daemon checks by itself every five minutes (--check-every).

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
func CheckCommand(p *cli.Program) cli.Row {
	flags := checkFlags{format: "table"}
	return cli.Verb{Use: "check", Short: "Compare leases with running containers, and repair",
		Long: checkHelp,
		Example: `  berth check
  berth check --repair
  berth check --format json > report.json
  berth check --repair-from report.json
  berth check --docker-host unix:///run/docker.sock --ipam-driver berth:latest`,
		Flags: append(flags.engine.Flags(),
			cli.Flag(&flags.repair, "repair", "repair certain findings"),
			cli.Flag(&flags.from, "repair-from",
				"repair only certain findings of the report in `FILE`; - is standard input").
				Filled(),
			cli.Flag(&flags.format, "format",
				"`form` of the output: table, wide (also the host, the owner and when it "+
					"was seen), json (the report, one object), yaml (the same), or a Go template").
				Words("table", "wide", "json", "yaml").Filled()),
		Run: func(cmd *cobra.Command, _ []string) error {
			wide := flags.format == "wide"
			if wide {
				flags.format = "text"
			}
			show, err := cli.NewObject[ipam.CheckReport](p.Out, cmd, flags.format)
			if err != nil {
				return err
			}
			report, err := check(p, cmd, &flags)
			if err != nil {
				return err
			}
			err = cli.ShowObject(show, &report, func(w io.Writer) error { return writeReport(p, w, &report, wide) })
			if err != nil {
				return err
			}
			return leftOf(&report)
		}}
}

// check asks the daemon, and shows it the engine where it has none of its own.
func check(p *cli.Program, cmd *cobra.Command, flags *checkFlags) (report ipam.CheckReport, err error) {
	ctx := cmd.Context()
	req, err := checkRequest(p, cmd, flags)
	if err != nil {
		return report, err
	}
	c, err := p.Find(ctx)
	if err != nil {
		return report, err
	}
	defer c.Close()
	if st, err := c.Status(ctx); err == nil && len(st.Unknown) > 0 {
		p.Warn(unknownText(st.Unknown))
	}
	if flags.engine.Given() {
		if req.View, err = flags.engine.View(ctx, c); err != nil {
			return report, err
		}
		return c.Check(ctx, req)
	}
	report, err = c.Check(ctx, req)
	if err != nil {
		return report, err
	}
	if report.Engine != ipam.NoEngine || !flags.engine.MayLookHere(c) {
		return report, nil // where the daemon's own engine is away, another one is none to go by
	}
	if req.View, err = flags.engine.View(ctx, c); err != nil {
		return report, fmt.Errorf("the daemon reads no engine, and here: %w; name another with --docker-host", err)
	}
	return c.Check(ctx, req)
}

// checkRequest is what the flags ask for.
func checkRequest(p *cli.Program, cmd *cobra.Command, flags *checkFlags) (req ipam.CheckRequest, err error) {
	req.Repair = flags.repair
	switch {
	case flags.from == "":
		return req, nil
	case flags.repair:
		return req, cli.Usagef(cmd, "--repair-from repairs already; leave --repair out")
	}
	text, err := p.ReadFile(cmd, flags.from)
	if err != nil {
		return req, err
	}
	var before ipam.CheckReport
	if err := json.Unmarshal(text, &before); err != nil || before.Host == "" {
		return req, fmt.Errorf("%s is no report as `berth check --format json` writes it", cli.Named(flags.from))
	}
	return ipam.CheckRequest{Repair: true, Only: &before}, nil
}

// writeReport is a report for a person.
func writeReport(p *cli.Program, w io.Writer, r *ipam.CheckReport, wide bool) error {
	if r.Engine != ipam.EngineReachable {
		return nil // the error says it
	}
	var text bytes.Buffer
	rows := cli.PlainTable(p, &text, findingColumns(), wide)
	if err := rows.Rows(r.Findings); err != nil {
		return err
	}
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n") {
		if len(r.Findings) == 0 {
			break
		}
		fmt.Fprintln(&b, line)
		if i > 0 {
			fmt.Fprintf(&b, "  %s\n", cli.Printable(r.Findings[i-1].Detail))
		}
	}
	fmt.Fprintf(&b, "compared on %s at %s: %s\n", cli.Printable(r.Host), cli.LocalTime(r.Taken), reportSummary(r))
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

// placeText is the address, or else the subnet, that something is about.
func placeText(addr netip.Addr, subnet netip.Prefix) string {
	switch {
	case addr.IsValid():
		return addr.String()
	case subnet.IsValid():
		return subnet.String()
	}
	return ""
}

// reportSummary is how much was found, and what can be done about it.
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
	if repairable > 0 {
		text += fmt.Sprintf("; %d can be repaired with `berth check --repair`", repairable)
	}
	return text
}

// nothingWrong is what is said where nothing was found.
const nothingWrong = "nothing is wrong"

// findingsText counts findings by their kinds.
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

// leftOf is the error that ends a check which leaves something to do; the report has been shown.
func leftOf(r *ipam.CheckReport) error {
	switch left := len(r.Findings) - r.Repaired; {
	case r.Engine == ipam.NoEngine:
		return errors.New("the daemon reads no engine, so that nothing was compared; name one with --docker-host")
	case r.Engine != ipam.EngineReachable:
		return fmt.Errorf("the engine could not be asked, so that nothing was compared: %s", r.Trouble)
	case r.Trouble != "":
		return errors.New(r.Trouble)
	case left > 0:
		return cli.Difference(cli.Counted(left, "finding") + " left")
	}
	return nil
}
