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
any order. --network is the network of rows that name none. Without --network, the address determines the network,
except for subnets.`

// importFlags are the flags of import.
type importFlags struct {
	table  plan.Table
	edit   cli.EditFlags
	export string // path; empty for no export
}

// importCommand is `berth plan import`.
func importCommand() cli.Row {
	var flags importFlags
	return cli.Verb{Use: "import FILE|-",
		Short: "Add a document or a table to the plan", Long: importHelp,
		Example: `  berth plan import plan.yaml --dry-run
  berth plan import plan.yaml
  berth plan export --admin-socket /run/a.sock | berth plan import - --admin-socket /run/b.sock
  berth plan import more.yaml --export before.yaml
  berth plan import prefixes.csv --csv subnets --network site`,
		Flags: append(tableFlags(&flags.table, cli.Flag(&flags.table.Network, "network",
			"with --csv: the `NETWORK` of rows that name none")),
			cli.Flag(&flags.edit.DryRun, "dry-run", "check, show what would be added, and change nothing"),
			cli.FormatFlag(&flags.edit.Format, ""),
			cli.Flag(&flags.export, "export",
				"first save the current plan to `FILE`, to undo the import").Filled()),
		Check: flags.check,
		Run: func(r *cli.Run) error {
			show, err := cli.NewObject[ipam.ImportReport](r, flags.edit.Format)
			if err != nil {
				return err
			}
			report, err := flags.importing(r, r.Args[0])
			if err != nil {
				return err
			}
			return show.Object(&report, func(w io.Writer) error {
				if err := Said(w, report); err != nil || !flags.edit.DryRun || !changes(report) {
					return err
				}
				_, err := fmt.Fprintln(w, "the import adds to existing networks; to save the current plan first, use "+
					"--export FILE")
				return err
			})
		}}
}

// changes reports whether an import adds to an existing network.
func changes(r ipam.ImportReport) bool {
	return slices.ContainsFunc(r.Networks, func(n ipam.ImportedNetwork) bool { return !n.New })
}

// check refuses flags that do not go together.
func (f *importFlags) check(r *cli.Run) error {
	if err := onlyTables(r, "network", "space", "ignore-unknown"); err != nil {
		return err
	}
	if f.export != "" && f.edit.DryRun {
		return errors.New("a dry run changes nothing, so it needs no --export; leave out --dry-run or --export")
	}
	return nil
}

// importing runs the import. With --export it first saves the current plan.
func (f *importFlags) importing(r *cli.Run, file string) (report ipam.ImportReport, err error) {
	r, stop := r.UntilSignal()
	defer stop()
	planned, err := readPlan(r, f.table, file, nothingImported)
	if err == nil {
		err = r.Ask()
	}
	if err != nil {
		return report, err
	}
	if f.export != "" {
		if err := cli.WriteWith(cli.PrivateMode, r.Out, f.export, func(w io.Writer) error {
			return export(r, "", w, yamlWriter)
		}); err != nil {
			return report, err
		}
	}
	report, err = Import(r, planned, f.edit.DryRun, file)
	if err == nil {
		err = unmade(r, report.Unmade, file)
	}
	return report, err
}

// unmade prints the associations that were refused.
func unmade(r *cli.Run, problems []ipam.PlanProblem, file string) error {
	for _, one := range problems {
		where := ""
		if file != "" && one.Line > 0 {
			where = fmt.Sprintf("%s:%d: ", cli.Named(file), one.Line)
		}
		fmt.Fprintln(r.Stderr, cli.Printable(where+advice.Join(one.Text, one.Advice)))
	}
	if len(problems) > 0 {
		return fmt.Errorf("%s could not be made; everything else is imported; fix the causes and import again",
			cli.Counted(len(problems), "association"))
	}
	return nil
}

// readPlan reads the document. If it has errors, readPlan lists them and returns an error that ends with comesTo.
func readPlan(r *cli.Run, table plan.Table, file, comesTo string) (planned ipam.Plan,
	err error) {
	text, err := r.ReadFile(file)
	if err != nil {
		return planned, err
	}
	if table.Noun == "" && strings.EqualFold(filepath.Ext(file), ".csv") {
		return planned, r.Usagef("%s seems to be a table; say what kind of table with --csv %s", file,
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
		return planned, listProblems(r, file, wrong.Problems, wrong.More, comesTo)
	}
	if err != nil && table.Noun != "" {
		return planned, cli.Usage(r.Cmd, err)
	}
	for _, left := range leftOut(notes) {
		fmt.Fprintf(r.Stderr, "berth: %s: %s\n", cli.Named(file), cli.Printable(left))
	}
	return planned, err
}

// leftOut lists what of a table was left out or changed.
func leftOut(notes plan.Notes) (lines []string) {
	columns := strings.Join(notes.Ignored, ", ")
	switch {
	case len(notes.Ignored) == 1:
		lines = append(lines, "Berth ignores the column "+columns+", because it does not store such data")
	case len(notes.Ignored) > 1:
		lines = append(lines, "Berth ignores the columns "+columns+", because it does not store such data")
	}
	if notes.Prefixes > 0 {
		lines = append(lines, "Berth ignores "+cli.Counted(notes.Prefixes, "row")+
			": prefixes that only contain other prefixes (status: container)")
	}
	for _, r := range notes.Renamed {
		lines = append(lines, fmt.Sprintf("line %d: the %s %q becomes %s: a name has only letters, digits, '_', '.' and '-'",
			r.Line, r.Noun, r.From, r.To))
	}
	return lines
}
