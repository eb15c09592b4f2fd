// Package document has the verbs for the plan as a whole: export and import of a YAML document or a table. It promises
// that a document is added as a whole or refused with all that is wrong with it, each with its line, and that a file is
// written whole or not at all.
//
// import.go reads a file by way of internal/plan and hands the plan to the daemon; report.go does that for any plan,
// shows how far it is and lists what was refused or added, also for the adoption of Docker networks. export.go writes
// what the daemon tells, network by network. compare.go holds a file against that by way of internal/plan/compare, for
// diff.go, which tries the edits that come of it, and apply.go, which makes them.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"berth/internal/advice"
	"berth/internal/cli"
	"berth/internal/ipam"
	"berth/internal/plan"

	"github.com/spf13/cobra"
)

const importHelp = `Reads a document in the form that berth export writes, and adds what is missing: networks,
and in networks that exist already, subnets, pools, exclusions, reservations and addresses. Nothing that
exists is changed; a document that contradicts it is refused. FILE may be -, which is standard input.

The document is checked as a whole before anything is written, and everything that is wrong with it is
listed with its line. Then it is written in small steps, between which Docker goes on getting addresses; a
new network appears as a whole or not at all. An import that is interrupted stays open: berth status names
it, --resume finishes it, and --undo takes back what it has added. Nothing else is imported before that.

Accounts, elastic ranges and elastic addresses are added after the networks. An association that is refused,
because its container has no address yet for one, is listed, and the rest is made.

--csv reads a table of one kind of thing, as spreadsheets and NetBox write it (prefixes are subnets,
ip-ranges pools or exclusions, ip-addresses addresses or reservations). Its first row names the columns,
in any order. Rows that name no network belong to --network. Without that flag, all but subnets find their
network by their address.`

// importFlags are the flags of import.
type importFlags struct {
	table  plan.Table
	edit   cli.EditFlags
	resume bool
	undo   bool
}

// ImportCommand is `berth import`.
func ImportCommand(p *cli.Program) *cobra.Command {
	var flags importFlags
	cmd := cli.Verb{Args: cobra.ArbitraryArgs, Use: "import FILE|-",
		Short: "Add the contents of a document or a table to the plan", Long: importHelp,
		Example: `  berth import plan.yaml --dry-run
  berth import plan.yaml
  berth export --admin-socket /run/a.sock | berth import - --admin-socket /run/b.sock
  berth import prefixes.csv --csv subnets --network site
  berth import --resume`}.Command(p)
	f := cmd.Flags()
	tableFlags(p, cmd, &flags.table, "with --csv: the `NETWORK` of the rows that name none")
	f.BoolVar(&flags.edit.DryRun, "dry-run", false, "check, show what would be added, and change nothing")
	cli.FormatFlag(cmd, &flags.edit.Format, "")
	f.BoolVar(&flags.resume, "resume", false, "finish the import that was cut off; takes no FILE")
	f.BoolVar(&flags.undo, "undo", false, "take back what the import that was cut off has added; takes no FILE")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := flags.check(cmd, args); err != nil {
			return err
		}
		show, err := cli.NewObject[ipam.ImportReport](p.Out, cmd, flags.edit.Format)
		if err != nil {
			return err
		}
		report, err := importing(p, cmd, flags, cli.First(args))
		if err != nil {
			return err
		}
		return cli.ShowObject(show, &report, func(w io.Writer) error { return Said(w, report) })
	}
	return cmd
}

// check refuses flags and arguments that do not go together.
func (f *importFlags) check(cmd *cobra.Command, args []string) error {
	goesOn := f.resume || f.undo
	csvOnly := ""
	for _, flag := range []string{"network", "space", "ignore-unknown"} {
		if cmd.Flags().Changed(flag) && !cmd.Flags().Changed("csv") {
			csvOnly = flag
		}
	}
	switch {
	case f.resume && f.undo:
		return cli.Usage(cmd, errors.New("--resume finishes the import and --undo takes it back: give one of them"))
	case goesOn && len(args) > 0:
		return cli.Usage(cmd, fmt.Errorf("the steps of the import that was cut off are kept by the daemon; "+
			"leave %s out", args[0]))
	case goesOn && (f.edit.DryRun || cmd.Flags().Changed("csv") || csvOnly != ""):
		return cli.Usage(cmd, errors.New("--resume and --undo go alone"))
	case !goesOn && len(args) != 1:
		return cli.Usage(cmd, errors.New("it takes exactly one argument, the document to import (- is standard input)"))
	case csvOnly != "":
		return cli.Usage(cmd, fmt.Errorf("--%s is for tables; say with --csv of what FILE is one", csvOnly))
	}
	return nil
}

// importing does what the flags say.
func importing(p *cli.Program, cmd *cobra.Command, flags importFlags,
	file string) (report ipam.ImportReport, err error) {
	ctx, stop := cli.UntilSignal(cmd.Context())
	defer stop()
	if flags.resume || flags.undo {
		c, err := p.Find(ctx)
		if err != nil {
			return report, err
		}
		defer c.Close()
		progress := p.Progress(flags.undo)
		defer progress.End()
		if flags.undo {
			return c.UndoImport(ctx, progress.Set)
		}
		report, err := c.ResumeImport(ctx, progress.Set)
		if err == nil {
			err = unmade(p, report.Unmade, "")
		}
		return report, err
	}
	planned, err := readPlan(p, cmd, flags.table, file, nothingImported)
	if err != nil {
		return report, err
	}
	c, err := p.Find(ctx)
	if err != nil {
		return report, err
	}
	defer c.Close()
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
		return fmt.Errorf("%s could not be made, and all else is imported; import it again when that is put right",
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
		return planned, cli.Usage(cmd, fmt.Errorf("%s is a table by its name; say of what, with --csv %s", file,
			strings.Join(plan.Nouns, "|")))
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
