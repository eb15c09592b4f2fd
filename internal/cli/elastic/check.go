package elastic

import (
	"errors"
	"fmt"
	"io"

	"berth/internal/cli"
	"berth/internal/ipam"
)

var checkHelp = `Looks for problems with elastic addresses of this host. A sentence explains each
finding and what to do. It changes nothing. berth check reports these findings, too.

` + ipam.DescribeFindings(true) + `
Exit code 0: nothing was found. 2: there are findings. 1: the check itself failed.`

func checkCommand() cli.Row {
	return cli.Showing[ipam.CheckReport]{
		Verb: cli.Verb{Use: "check", Short: "Find problems with elastic addresses",
			Long:    checkHelp,
			Example: "  berth elastic check\n  berth elastic check --format json"},
		JSON: "the report, one object",
		Fetch: func(r *cli.Run) (ipam.CheckReport, error) {
			return r.CheckElastic(r)
		},
		Text: writeFindings,
		Then: func(r *cli.Run, report *ipam.CheckReport) error {
			if report.Engine == ipam.NoEngine {
				r.Note("the daemon cannot see a Docker Engine, so it could not look for all problems")
			}
			return leftOf(report)
		},
	}
}

func writeFindings(w io.Writer, r *ipam.CheckReport) error {
	for i := range r.Findings {
		f := &r.Findings[i]
		what := string(f.Kind)
		if f.Address.IsValid() {
			what += "  " + f.Address.String()
		}
		if _, err := fmt.Fprintf(w, "%s\n  %s\n", what, cli.Printable(f.Detail)); err != nil {
			return err
		}
	}
	if len(r.Findings) == 0 && r.Trouble == "" {
		_, err := fmt.Fprintf(w, "nothing is wrong on %s\n", cli.Printable(r.Host))
		return err
	}
	return nil
}

// leftOf returns the error of a check that found something, or that could not check everything.
func leftOf(r *ipam.CheckReport) error {
	switch {
	case r.Engine == ipam.EngineUnreachable:
		return fmt.Errorf("the engine did not answer: %s", r.Trouble)
	case r.Trouble != "":
		return errors.New(r.Trouble)
	case len(r.Findings) > 0:
		return cli.Difference(cli.Counted(len(r.Findings), "finding") + " left")
	}
	return nil
}
