package document

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/advice"
	"berth/internal/cli"
	"berth/internal/ipam"
	"berth/internal/plan"
	"berth/internal/plan/compare"

	"github.com/spf13/cobra"
)

// nothingChanged is what diff and apply come to when they are refused.
const nothingChanged = "nothing was changed"

// compareFlags are those of diff and apply.
type compareFlags struct {
	table  plan.Table
	prune  bool
	format string
}

// verb is the command of diff or apply: it reads its flags and its document, and does what it is for with what they
// come to.
func (f *compareFlags) verb(p *cli.Program, verb cli.Verb,
	do func(context.Context, *compared, *cli.Table[Compared]) error) cli.Row {
	verb.Flags = slices.Concat(verb.Flags, tableFlags(&f.table, cli.Flag(&f.table.Network, "network",
		"only the network `NETWORK`, or with --csv the one of the rows that name none").Filled()), cli.Flags{
		cli.Flag(&f.prune, "prune",
			"remove networks, their contents and settings that are not in the document"),
		cli.FormatFlag(&f.format, "changes, an object each, and what was refused")})
	verb.Run = func(cmd *cobra.Command, args []string) error {
		show, err := cli.NewObject[Compared](p.Out, cmd, f.format)
		if err != nil {
			return err
		}
		if err := f.check(cmd); err != nil {
			return cli.Usage(cmd, err)
		}
		return p.Ask(cmd, func(ctx context.Context, c *client.Client) error {
			d, err := f.compareFile(ctx, p, cmd, c, args[0])
			if err != nil {
				return err
			}
			return do(ctx, d, show)
		})
	}
	return verb
}

// tableFlags are those of a document that may be a table.
func tableFlags(table *plan.Table, network cli.FlagRow) cli.Flags {
	return cli.Flags{
		cli.Flag(&table.Noun, "csv",
			"FILE is a table of one `NOUN`: "+strings.Join(plan.Nouns, ", ")).Words(plan.Nouns...),
		network.Of(cli.NetworkRefs),
		cli.Flag(&table.Space, "space",
			"with --csv: the space `NAME` of the rows that name none (local)").Of(cli.SpaceRefs),
		cli.Flag(&table.Ignore, "ignore-unknown",
			"with --csv: leave out unknown columns, instead of refusing them"),
	}
}

// onlyTables refuses flags for tables where FILE is none.
func onlyTables(cmd *cobra.Command, flags ...string) error {
	for _, flag := range flags {
		if cmd.Flags().Changed(flag) && !cmd.Flags().Changed("csv") {
			return fmt.Errorf("--%s is for tables; say with --csv of what FILE is one", flag)
		}
	}
	return nil
}

// check refuses flags that do not go together.
func (f *compareFlags) check(cmd *cobra.Command) error {
	if cmd.Flags().Changed("csv") && f.prune {
		return errors.New("a table is one part of a plan, and --prune would end all others; give a document, or leave " +
			"--prune out")
	}
	return onlyTables(cmd, "space", "ignore-unknown")
}

// Compared is what diff and apply show.
type Compared struct {
	Changes []compare.Change `json:"changes"`
	// how many it takes, or took; one is all or nothing
	Transactions int                `json:"transactions"`
	Refused      []ipam.PlanProblem `json:"refused,omitempty"`
	Applied      bool               `json:"applied,omitempty"`
}

// compared is a document that is held against the plan.
type compared struct {
	p            *cli.Program
	c            *client.Client
	file         string
	document     ipam.Plan
	difference   *compare.Difference
	transactions []compare.Part
	apart        bool // the host has two stores
}

// compareFile reads the document, and holds it against the plan.
func (f *compareFlags) compareFile(ctx context.Context, p *cli.Program, cmd *cobra.Command, c *client.Client,
	file string) (*compared, error) {
	document, err := readPlan(p, cmd, f.table, file, nothingChanged)
	if err != nil {
		return nil, err
	}
	opt := compare.Options{Prune: f.prune, Now: p.Now()}
	if f.table.Noun == "" {
		opt.Network = f.table.Network
	}
	if opt.Network != "" && !names(&document, opt.Network) {
		return nil, fmt.Errorf("%s has no network %s", cli.Named(file), opt.Network)
	}
	now, err := present(ctx, c, &document, opt.Network)
	if err != nil {
		return nil, err
	}
	status, err := c.Status(ctx)
	if err != nil {
		return nil, err
	}
	d, err := compare.Plans(&document, now, opt)
	var wrong *ipam.PlanError
	if errors.As(err, &wrong) {
		return nil, listProblems(p, file, wrong.Problems, wrong.More, nothingChanged)
	}
	if err != nil {
		return nil, err
	}
	apart := status.Cluster != nil
	return &compared{p, c, file, document, d, d.Transactions(ipam.MaxEdits, apart), apart}, nil
}

func names(document *ipam.Plan, network string) bool {
	return slices.ContainsFunc(document.Networks, func(n ipam.PlannedNetwork) bool { return n.Name == network })
}

// present is the plan that there is: what an export has, and those networks besides that the document names.
func present(ctx context.Context, c *client.Client, document *ipam.Plan, network string) (*ipam.Plan, error) {
	now := &ipam.Plan{}
	there := map[string]bool{}
	add := func(one string) error {
		for n, err := range c.Export(ctx, one) {
			if err != nil {
				return err
			}
			if !there[n.Name] {
				now.Networks = append(now.Networks, n)
			}
			there[n.Name] = true
		}
		return nil
	}
	if network == "" {
		if err := add(""); err != nil {
			return nil, err
		}
		elastic, err := exportElastic(ctx, c)
		if err != nil {
			return nil, err
		}
		now.Elastic = elastic
	}
	for i := range document.Networks {
		name := document.Networks[i].Name
		if name == "" || there[name] || network != "" && name != network {
			continue
		}
		if err := add(name); err != nil && !isMissing(err) {
			return nil, err
		}
	}
	return now, nil
}

// isMissing tells whether what was asked for is not there.
func isMissing(err error) bool {
	var problem *api.Problem
	return errors.As(err, &problem) && problem.Code == api.CodeNotFound
}

// try makes the edits in dry runs, one for each store, and answers what would be refused. Of more than one dry run
// holds the first are tried alone: what these make, the others would not know.
func (d *compared) try(ctx context.Context) (refused []ipam.PlanProblem, tried bool, err error) {
	tried = true
	steps := d.difference.Transactions(ipam.MaxTried, d.apart)
	for i, step := range steps {
		if i > 0 && (!d.apart || steps[i-1].Space == step.Space) {
			tried = false
			continue
		}
		more, err := d.tryStep(ctx, step.Edits)
		if err != nil {
			return nil, tried, err
		}
		refused = append(refused, more...)
	}
	return refused, tried, nil
}

func (d *compared) tryStep(ctx context.Context, step []compare.Edit) (refused []ipam.PlanProblem, err error) {
	out, err := d.c.Edit(ctx, client.EditOptions{DryRun: true, Refused: true}, edits(step)...)
	if err == nil && d.nameGuests(step, out.Refused) {
		out, err = d.c.Edit(ctx, client.EditOptions{DryRun: true, Refused: true}, edits(step)...)
	}
	if err != nil {
		return nil, d.refusal(err, step)
	}
	for _, r := range out.Refused {
		refused = append(refused, ipam.PlanProblem{Line: step[r.Index].Line, Text: r.Detail, Advice: r.Advice})
	}
	return refused, nil
}

// nameGuests says of associations which guest is meant, where that is not clear without it. One that is named is meant
// for ever.
func (d *compared) nameGuests(step []compare.Edit, refused []ipam.Refused) (named bool) {
	for _, r := range refused {
		guest, is := compare.Guest(&d.document, step[r.Index].Edit)
		if is && r.Reason == ipam.GuestUnclear {
			step[r.Index].Edit.(*ipam.AssociateElastic).Guest = guest
			named = true
		}
	}
	return named
}

func edits(all []compare.Edit) []ipam.Edit {
	plain := make([]ipam.Edit, len(all))
	for i := range all {
		plain[i] = all[i].Edit
	}
	return plain
}

// tell says what would be refused, each with its line.
func (d *compared) tell(refused []ipam.PlanProblem) error {
	return listProblems(d.p, d.file, refused, 0, nothingChanged)
}

// refusal is that of an edit which was made in earnest, with its line.
func (d *compared) refusal(err error, step []compare.Edit) error {
	var problem *api.Problem
	if !errors.As(err, &problem) {
		return err
	}
	at := 0
	if problem.Index != nil {
		at = *problem.Index
	}
	if at >= len(step) || step[at].Line == 0 {
		return err
	}
	return fmt.Errorf("%s:%d: %s", cli.Named(d.file), step[at].Line, advice.Text(err))
}

// lines shows the changes.
func lines(w io.Writer, changes []compare.Change) error {
	for _, one := range changes {
		if _, err := fmt.Fprintln(w, cli.Printable(one.String())); err != nil {
			return err
		}
	}
	return nil
}

// untried says that not all could be tried before.
func (d *compared) untried() string {
	return fmt.Sprintf("these are more changes than one dry run tries (%d); what is behind them may be refused yet",
		ipam.MaxTried)
}
