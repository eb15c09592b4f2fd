package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"berth/internal/admin"
	"berth/internal/ipam"
	"berth/internal/plan"

	"github.com/spf13/cobra"
)

const importHelp = `Reads a document as berth export writes it, and adds what it has and what is not there: networks, and in those
that are there subnets, pools, exclusions, reservations and addresses. Nothing that is there is changed; what
contradicts it is refused. FILE may be -, which is standard input.

The document is checked as a whole before anything is written, and everything that is wrong with it is listed with
its line. Then it is written in small steps, during which Docker goes on getting addresses; a new network is there
as a whole or not at all. An import that is interrupted stays open: berth status names it, and --resume finishes it,
or --undo takes back what it has added. Nothing else is imported before that.

--csv reads a table of one kind of thing, as spreadsheets and NetBox write it (prefixes are subnets, ip-ranges
pools or exclusions, ip-addresses addresses or reservations). Its first row names the columns, in any order. Rows
that name no network belong to --network; without it, all but subnets find theirs by their address.`

// importFlags are the flags of import.
type importFlags struct {
	table  plan.Table
	edit   editing
	resume bool
	undo   bool
}

func (p *program) importCommand() *cobra.Command {
	var flags importFlags
	cmd := &cobra.Command{Use: "import FILE|-", Short: "Add what a document or a table has to the plan", Long: importHelp,
		Example: `  berth import plan.yaml --dry-run
  berth import plan.yaml
  berth export --admin-socket /run/a.sock | berth import - --admin-socket /run/b.sock
  berth import prefixes.csv --csv subnets --network site
  berth import --resume`}
	f := cmd.Flags()
	f.StringVar(&flags.table.Noun, "csv", "", "FILE is a table of one `NOUN`: "+strings.Join(plan.Nouns, ", "))
	f.StringVar(&flags.table.Network, "network", "", "with --csv: the `NETWORK` of the rows that name none")
	f.StringVar(&flags.table.Space, "space", "", "with --csv: the space `NAME` of the rows that name none (local)")
	f.BoolVar(&flags.table.Ignore, "ignore-unknown", false, "with --csv: leave out columns that are not known, instead of refusing them")
	f.BoolVar(&flags.edit.dryRun, "dry-run", false, "check, show what would be added, and change nothing")
	f.StringVar(&flags.edit.format, "format", "text", "`form` of the output: text, json or a Go template")
	f.BoolVar(&flags.resume, "resume", false, "finish the import that was cut off; takes no FILE")
	f.BoolVar(&flags.undo, "undo", false, "take back what the import that was cut off has added; takes no FILE")
	completes(cmd, "csv", words(plan.Nouns...))
	completes(cmd, "network", p.completeNetworks)
	completes(cmd, "space", p.completeSpaces)
	completes(cmd, "format", words("text", "json"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := flags.check(cmd, args); err != nil {
			return err
		}
		show, err := newObject[ipam.ImportReport](p.out, cmd, flags.edit.format)
		if err != nil {
			return err
		}
		report, err := p.importing(cmd, flags, first(args))
		if err != nil {
			return err
		}
		return showObject(show, &report, func(w io.Writer) error { return importSaid(w, report) })
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
		return usage(cmd, errors.New("--resume finishes the import and --undo takes it back: give one of them"))
	case goesOn && len(args) > 0:
		return usage(cmd, fmt.Errorf("the steps of the import that was cut off are kept by the daemon; leave %s out", args[0]))
	case goesOn && (f.edit.dryRun || cmd.Flags().Changed("csv") || csvOnly != ""):
		return usage(cmd, errors.New("--resume and --undo go alone"))
	case !goesOn && len(args) != 1:
		return usage(cmd, errors.New("it takes exactly one argument, the document to import (- is standard input)"))
	case csvOnly != "":
		return usage(cmd, fmt.Errorf("--%s is for tables; say with --csv of what FILE is one", csvOnly))
	}
	return nil
}

// importing does what the flags say.
func (p *program) importing(cmd *cobra.Command, flags importFlags, file string) (report ipam.ImportReport, err error) {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if flags.resume || flags.undo {
		client, err := p.find(ctx)
		if err != nil {
			return report, err
		}
		defer client.Close()
		progress := p.progress(flags.undo)
		defer progress.end()
		if flags.undo {
			return client.UndoImport(ctx, progress.set)
		}
		return client.ResumeImport(ctx, progress.set)
	}
	planned, err := p.readPlan(cmd, flags.table, file)
	if err != nil {
		return report, err
	}
	client, err := p.find(ctx)
	if err != nil {
		return report, err
	}
	defer client.Close()
	return p.importPlan(ctx, client, planned, flags.edit.dryRun, file)
}

// readPlan reads the document; what is wrong with it is listed.
func (p *program) readPlan(cmd *cobra.Command, table plan.Table, file string) (planned ipam.Plan, err error) {
	text, err := p.readFile(cmd, file)
	if err != nil {
		return planned, err
	}
	if table.Noun == "" && strings.EqualFold(filepath.Ext(file), ".csv") {
		return planned, usage(cmd, fmt.Errorf("%s is a table by its name; say of what, with --csv %s", file, strings.Join(plan.Nouns, "|")))
	}
	var notes plan.Notes
	if table.Noun != "" {
		planned, notes, err = plan.ReadCSV(bytes.NewReader(text), table)
	} else {
		planned, err = plan.ReadYAML(bytes.NewReader(text))
	}
	var wrong *ipam.PlanError
	if errors.As(err, &wrong) {
		return planned, p.listProblems(file, wrong.Problems, wrong.More)
	}
	if err != nil && table.Noun != "" {
		return planned, usage(cmd, err)
	}
	for _, left := range leftOut(notes) {
		fmt.Fprintf(p.err, "berth: %s: %s\n", named(file), printable(left))
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
		lines = append(lines, counted(notes.Prefixes, "row")+" left out: of prefixes that only hold others (status: container)")
	}
	return lines
}

func (p *program) readFile(cmd *cobra.Command, file string) ([]byte, error) {
	in := cmd.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, plan.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", named(file), err)
	}
	return text, nil
}

// importPlan hands the plan to the daemon; what is wrong with it is listed.
func (p *program) importPlan(ctx context.Context, client *admin.Client, planned ipam.Plan, dryRun bool, file string) (ipam.ImportReport, error) {
	progress := p.progress(false)
	report, err := client.Import(ctx, planned, dryRun, progress.set)
	progress.end()
	var refused *admin.Problem
	if errors.As(err, &refused) && len(refused.Problems) > 0 {
		return report, p.listProblems(file, refused.Problems, refused.More)
	}
	return report, err
}

// listProblems shows all that is wrong with a document, each with its line, and answers with the error that ends the command.
func (p *program) listProblems(file string, problems []ipam.PlanProblem, more int) error {
	lines := make([]string, len(problems))
	for i, problem := range problems {
		lines[i] = named(file) + ": " + problem.Text
		if problem.Line > 0 {
			lines[i] = fmt.Sprintf("%s:%d: %s", named(file), problem.Line, problem.Text)
		}
	}
	if len(lines) == 1 && more == 0 {
		return fmt.Errorf("%s; nothing was imported", printable(lines[0]))
	}
	for _, line := range lines {
		fmt.Fprintln(p.err, printable(line))
	}
	if more > 0 {
		return fmt.Errorf("%s has %d more problems than these %d; nothing was imported", named(file), more, len(lines))
	}
	return fmt.Errorf("%s has %d problems; nothing was imported", named(file), len(lines))
}

// named is what a document is called in messages.
func named(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// importSaid is what an import came to, for a person.
func importSaid(w io.Writer, r ipam.ImportReport) error {
	unchanged := ""
	if r.Unchanged.Sum() > 0 {
		unchanged = "; " + r.Unchanged.String() + " there already"
	}
	var b strings.Builder
	for _, n := range r.Networks {
		how := "gets "
		if n.New {
			n.Added.Networks = 0
			how = "is made, with "
		}
		fmt.Fprintf(&b, "%s %s%s\n", n.Name, how, n.Added)
	}
	switch {
	case r.Undone:
		fmt.Fprintf(&b, "taken back: %s\n", r.Added)
	case r.DryRun:
		fmt.Fprintf(&b, "would add %s%s\n", r.Added, unchanged)
	default:
		fmt.Fprintf(&b, "added %s%s\n", r.Added, unchanged)
	}
	_, err := io.WriteString(w, cmp.Or(b.String(), "\n"))
	return err
}
