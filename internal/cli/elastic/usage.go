package elastic

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const usageHelp = `Shows for how many hours each account had elastic addresses: two addresses for an hour each are
two hours, whether they are associated or not. The figures come from the records and the events of releases. If the
events do not reach back to --since, the command reports that: earlier releases are unknown. Without --since it begins
with the first known event, and without --until it ends now. System addresses do not count.`

// usageForm is how usage is shown.
type usageForm struct{ since, until, format string }

func usageCommand(p *cli.Program) *cobra.Command {
	var form usageForm
	cmd := cli.Verb{Use: "usage", Short: "Show how long accounts had addresses", Long: usageHelp,
		Example: "  berth elastic usage\n  berth elastic usage --since 30d --format csv\n" +
			"  berth elastic usage --since 2026-01-01 --until 2026-02-01 --format json",
	}.Command(p)
	f := cmd.Flags()
	f.StringVar(&form.since, "since", "", "only from `WHEN` on: "+cli.WhenText)
	f.StringVar(&form.until, "until", "", "only until `WHEN`: "+cli.WhenText)
	f.StringVar(&form.format, "format", "table", "`form` of the output: table, csv, json (one object), yaml (the same) "+
		"or a Go template")
	cli.Completes(cmd, "format", cli.Words("table", "csv", "json", "yaml"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		filter, err := form.filter(cmd)
		if err != nil {
			return cli.Usage(cmd, err)
		}
		format := form.format
		if format == "csv" || format == "table" {
			format = "text"
		}
		show, err := cli.NewObject[ipam.UsageReport](p.Out, cmd, format)
		if err != nil {
			return err
		}
		return p.Ask(cmd, func(ctx context.Context, c *client.Client) error {
			report, err := c.Usage(ctx, filter)
			if err != nil {
				return err
			}
			if !report.KnownSince.IsZero() {
				fmt.Fprintf(p.Err, "%s: events reach back to %s only: of addresses that were released before, nothing "+
					"is known\n", cmd.CommandPath(), cli.LocalTime(report.KnownSince))
			}
			return cli.ShowObject(show, &report, func(w io.Writer) error { return form.write(p, w, &report) })
		})
	}
	return cmd
}

func (u *usageForm) filter(cmd *cobra.Command) (f ipam.UsageFilter, err error) {
	if err := cli.NotEmpty(cmd, "since", "until"); err != nil {
		return f, err
	}
	f.Since, f.Until, err = cli.Period(u.since, u.until, time.Now())
	return f, err
}

// write shows a report as a table, or as CSV.
func (u *usageForm) write(p *cli.Program, w io.Writer, report *ipam.UsageReport) error {
	hours := func(a *ipam.AccountUsage) string { return strconv.FormatFloat(a.Hours, 'f', -1, 64) }
	if u.format != "csv" {
		return cli.PlainTable(p, w, []cli.Column[ipam.AccountUsage]{
			cli.Col("ACCOUNT", func(a *ipam.AccountUsage) string { return a.Account }),
			cli.Col("DOMAIN", func(a *ipam.AccountUsage) string { return a.Domain }),
			cli.Col("ADDRESSES", func(a *ipam.AccountUsage) string { return strconv.Itoa(a.Addresses) }),
			cli.Col("HOURS", hours),
		}, false).Rows(report.Accounts)
	}
	table := csv.NewWriter(w)
	rows := [][]string{{"account", "domain", "addresses", "hours", "since", "until"}}
	for i := range report.Accounts {
		a := &report.Accounts[i]
		rows = append(rows, []string{a.Account, a.Domain, strconv.Itoa(a.Addresses), hours(a),
			report.Since.UTC().Format(time.RFC3339), report.Until.UTC().Format(time.RFC3339)})
	}
	return table.WriteAll(rows)
}
