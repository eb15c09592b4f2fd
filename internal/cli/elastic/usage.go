package elastic

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"berth/internal/cli"
	"berth/internal/ipam"
)

const usageHelp = `Shows for how many hours each account had elastic addresses: two addresses for an hour each are
two hours, whether they are associated or not. The figures come from the records and the events of releases. If the
events do not reach back to --since, the command reports that: earlier releases are unknown. Without --since it begins
with the first known event, and without --until it ends now. System addresses do not count.`

// usageForm holds the flags of usage.
type usageForm struct{ since, until, format string }

func usageCommand() cli.Row {
	form := usageForm{format: "table"}
	return cli.Verb{Use: "usage", Short: "Show how long accounts had addresses", Long: usageHelp,
		Example: `  berth elastic usage
  berth elastic usage --since 30d --format csv
  berth elastic usage --since 2026-01-01 --until 2026-02-01 --format json`,
		Flags: cli.Flags{
			cli.Flag(&form.since, "since", "only from `WHEN` on: "+cli.WhenText).Filled(),
			cli.Flag(&form.until, "until", "only until `WHEN`: "+cli.WhenText).Filled(),
			cli.Flag(&form.format, "format",
				"`form` of the output: table, csv, json (one object), yaml (the same) "+
					"or a Go template").Words("table", "csv", "json", "yaml")},
		Run: func(r *cli.Run) (err error) {
			var filter ipam.UsageFilter
			if filter.Since, filter.Until, err = cli.Period(form.since, form.until, time.Now()); err != nil {
				return cli.Usage(r.Cmd, err)
			}
			format := form.format
			if format == "csv" {
				format = "text"
			}
			show, err := cli.NewObject[ipam.UsageReport](r, format)
			if err != nil {
				return err
			}
			if err := r.Ask(); err != nil {
				return err
			}
			report, err := r.Usage(r, filter)
			if err != nil {
				return err
			}
			if !report.KnownSince.IsZero() {
				r.Note("events reach back to %s only; addresses released before that are not counted",
					cli.LocalTime(report.KnownSince))
			}
			return show.Object(&report, func(w io.Writer) error { return form.write(r.Program, w, &report) })
		}}
}

// write writes a report as a table or as CSV.
func (u *usageForm) write(p *cli.Program, w io.Writer, report *ipam.UsageReport) error {
	hours := func(a *ipam.AccountUsage) string { return strconv.FormatFloat(a.Hours, 'f', -1, 64) }
	if u.format != "csv" {
		return cli.PlainTable(p, w, cli.Columns[ipam.AccountUsage](
			"Account", "Domain", "Addresses",
			cli.Col("HOURS", hours),
		), false).Rows(report.Accounts)
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
