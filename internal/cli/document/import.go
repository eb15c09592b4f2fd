// Package document has the commands for the whole plan: export and import, as YAML or as tables. An import is all or
// nothing, and a refusal lists every error with its line. Files are written whole or not at all.
//
// import.go reads a file through internal/plan and sends the plan to the daemon. report.go sends any plan, shows
// progress and lists the result. Adoption of Docker networks also uses it. export.go writes the daemon's plan network
// by network. compare.go compares a file with that plan through internal/plan/compare, diff.go tries the resulting
// edits, and apply.go makes them.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"berth/internal/advice"
	"berth/internal/cli"
	"berth/internal/ipam"
	"berth/internal/plan"

	"github.com/spf13/cobra"
)

const importHelp = `Reads a document of berth plan export, and adds what is missing: networks, subnets, pools,
exclusions, reservations and addresses. It changes nothing that exists, and refuses a document that
contradicts it. FILE - is standard input.

The command first checks the whole document, and lists all errors with their lines. Then it writes in small
steps, so Docker can still get addresses. A new network appears as a whole. If an import is interrupted,
import the same document again to add the rest.

To undo an import, save the plan first with --export FILE, and restore it with berth plan apply --prune FILE.

Accounts, elastic ranges and elastic addresses are added after the networks. The command lists associations
that are refused, for example because the container has no address yet, and adds the rest.

--csv reads a table of one kind of object, as spreadsheets and NetBox write it (prefixes are subnets,
ip-ranges pools or exclusions, ip-addresses addresses or reservations). Its first row names the columns, in
any order. --network is the network of rows that name none. Without it, the address determines the network,
except for subnets.`

// importFlags are the flags of import.
type importFlags struct {
	table  plan.Table
	edit   cli.EditFlags
	export string // file; empty: none
}

// importCommand is `berth plan import`.
func importCommand(p *cli.Program) cli.Row {
	var flags importFlags
	return cli.Verb{Use: "import FILE|-",
		Short: "Add a document or a table to the plan", Long: importHelp,
		Example: `  berth plan import plan.yaml --dry-run
  berth plan import plan.yaml
  berth plan export --admin-socket /run/a.sock | berth plan import - --admin-socket /run/b.sock
  berth plan import more.yaml --export before.yaml
  berth plan import prefixes.csv --csv subnets --network site`,
		Flags: append(tableFlags(&flags.table, cli.Flag(&flags.table.Network, "network",
			"with --csv: the `NETWORK` of the rows that name none")),
			cli.Flag(&flags.edit.DryRun, "dry-run", "check, show what would be added, and change nothing"),
			cli.FormatFlag(&flags.edit.Format, ""),
			cli.Flag(&flags.export, "export",
				"first save the current plan to `FILE`, to undo the import").Filled()),
		Run: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(cmd); err != nil {
				return cli.Usage(cmd, err)
			}
			show, err := cli.NewObject[ipam.ImportReport](p.Out, cmd, flags.edit.Format)
			if err != nil {
				return err
			}
			report, err := importing(p, cmd, flags, args[0])
			if err != nil {
				return err
			}
			return cli.ShowObject(show, &report, func(w io.Writer) error {
				if err := Said(w, report); err != nil || !flags.edit.DryRun || !changes(report) {
					return err
				}
				_, err := fmt.Fprintln(w, "it would add to networks that are there; --export FILE keeps how they are now")
				return err
			})
		}}
}

// changes tells whether an import adds to a network that is there.
func changes(r ipam.ImportReport) bool {
	return slices.ContainsFunc(r.Networks, func(n ipam.ImportedNetwork) bool { return !n.New })
}

// check refuses flags that do not go together.
func (f *importFlags) check(cmd *cobra.Command) error {
	if err := onlyTables(cmd, "network", "space", "ignore-unknown"); err != nil {
		return err
	}
	if f.export != "" && f.edit.DryRun {
		return errors.New("a dry run changes nothing that --export would be the way back from; leave one of them out")
	}
	return nil
}

// importing does what the flags say.
func importing(p *cli.Program, cmd *cobra.Command, flags importFlags,
	file string) (report ipam.ImportReport, err error) {
	ctx, stop := cli.UntilSignal(cmd.Context())
	defer stop()
	planned, err := readPlan(p, cmd, flags.table, file, nothingImported)
	if err != nil {
		return report, err
	}
	c, err := p.Find(ctx)
	if err != nil {
		return report, err
	}
	defer c.Close()
	if flags.export != "" {
		if err := cli.WriteWith(cli.PrivateMode, p.Out, flags.export, func(w io.Writer) error {
			return export(ctx, c, "", w, yamlWriter)
		}); err != nil {
			return report, err
		}
	}
	report, err = Import(ctx, p, c, planned, flags.edit.DryRun, file)
	if err == nil {
		err = unmade(p, report.Unmade, file)
	}
	return report, err
}

// unmade lists the associations that were refused.
func unmade(p *cli.Program, problems []ipam.PlanProblem, file string) error {
	for _, one := range problems {
		where := ""
		if file != "" && one.Line > 0 {
			where = fmt.Sprintf("%s:%d: ", cli.Named(file), one.Line)
		}
		fmt.Fprintln(p.Err, cli.Printable(where+advice.Join(one.Text, one.Advice)))
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s could not be made, and all else is imported; import it again when that is fixed",
			cli.Counted(len(problems), "association"))
	}
	return nil
}

// readPlan reads the document; what is wrong with it is listed, with what that comes to.
func readPlan(p *cli.Program, cmd *cobra.Command, table plan.Table, file, comesTo string) (planned ipam.Plan,
	err error) {
	text, err := p.ReadFile(cmd, file)
	if err != nil {
		return planned, err
	}
	if table.Noun == "" && strings.EqualFold(filepath.Ext(file), ".csv") {
		return planned, cli.Usagef(cmd, "%s is a table by its name; say of what, with --csv %s", file,
			strings.Join(plan.Nouns, "|"))
	}
	var notes plan.Notes
	if table.Noun != "" {
		planned, notes, err = plan.ReadCSV(bytes.NewReader(text), table)
	} else {
		planned, err = plan.ReadYAML(bytes.NewReader(text))
	}
	var wrong *ipam.PlanError
	if errors.As(err, &wrong) {
		return planned, listProblems(p, file, wrong.Problems, wrong.More, comesTo)
	}
	if err != nil && table.Noun != "" {
		return planned, cli.Usage(cmd, err)
	}
	for _, left := range leftOut(notes) {
		fmt.Fprintf(p.Err, "berth: %s: %s\n", cli.Named(file), cli.Printable(left))
	}
	return planned, err
}

// leftOut says what of a table was not taken.
func leftOut(notes plan.Notes) (lines []string) {
	columns := strings.Join(notes.Ignored, ", ")
	switch {
	case len(notes.Ignored) == 1:
		lines = append(lines, "the column "+columns+" is left out: Berth has nothing of the kind")
	case len(notes.Ignored) > 1:
		lines = append(lines, "the columns "+columns+" are left out: Berth has nothing of the kind")
	}
	if notes.Prefixes > 0 {
		lines = append(lines, cli.Counted(notes.Prefixes, "row")+
			" left out: of prefixes that only hold others (status: container)")
	}
	return lines
}
