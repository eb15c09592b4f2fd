package document

import (
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
)

// nothingChanged ends the error of a diff or an apply that is refused.
const nothingChanged = "nothing was changed"

// compareFlags are the flags of diff and apply.
type compareFlags struct {
	table  plan.Table
	prune  bool
	format string
}

// verb returns the command of diff or apply. It reads the flags and the document, compares, and calls do with the
// result.
func (f *compareFlags) verb(verb cli.Verb, do func(*compared, *cli.Table[Compared]) error) cli.Row {
	verb.Flags = slices.Concat(verb.Flags, tableFlags(&f.table, cli.Flag(&f.table.Network, "network",
		"only the network `NETWORK`; with --csv, the network of rows that name none").Filled()), cli.Flags{
		cli.Flag(&f.prune, "prune",
			"remove networks, their contents and settings that are not in the document"),
		cli.FormatFlag(&f.format, "one object per change, and the refusals")})
	verb.Check = f.check
	verb.Run = func(r *cli.Run) error {
		show, err := cli.NewObject[Compared](r, f.format)
		if err != nil {
			return err
		}
		if err := r.Ask(); err != nil {
			return err
		}
		d, err := f.compareFile(r, r.Args[0])
		if err != nil {
			return err
		}
		return do(d, show)
	}
	return verb
}

// tableFlags are the flags for a document that may be a table.
func tableFlags(table *plan.Table, network cli.FlagRow) cli.Flags {
	return cli.Flags{
		cli.Flag(&table.Noun, "csv",
			"FILE is a table of one `NOUN`: "+strings.Join(plan.Nouns, ", ")).Words(plan.Nouns...),
		network.Of(cli.NetworkRefs),
		cli.Flag(&table.Space, "space",
			"with --csv: the space `NAME` of rows that name none (default: local)").Of(cli.SpaceRefs),
		cli.Flag(&table.Ignore, "ignore-unknown",
			"with --csv: leave out unknown columns, instead of refusing them"),
	}
}

// onlyTables refuses flags for tables if FILE is not a table.
func onlyTables(r *cli.Run, flags ...string) error {
	for _, flag := range flags {
		if r.Given(flag) && !r.Given("csv") {
			return fmt.Errorf("--%s works only with --csv NOUN, which says what kind of table FILE is", flag)
		}
	}
	return nil
}

// check refuses flags that do not go together.
func (f *compareFlags) check(r *cli.Run) error {
	if r.Given("csv") && f.prune {
		return errors.New("a table is only one part of a plan, and --prune would remove the other parts; give a " +
			"document, or leave out --prune")
	}
	return onlyTables(r, "space", "ignore-unknown")
}

// Compared is the output of diff and apply.
type Compared struct {
	Changes []compare.Change `json:"changes"`
	// how many transactions it takes, or took; each is all or nothing
	Transactions int                `json:"transactions"`
	Refused      []ipam.PlanProblem `json:"refused,omitempty"`
	Applied      bool               `json:"applied,omitempty"`
}

// compared is a document and its difference from the plan.
type compared struct {
	*cli.Run
	file         string
	document     ipam.Plan
	difference   *compare.Difference
	transactions []compare.Part
	apart        bool // the host has two stores
}

// compareFile reads the document and compares it with the plan.
func (f *compareFlags) compareFile(r *cli.Run, file string) (*compared, error) {
	document, err := readPlan(r, f.table, file, nothingChanged)
	if err != nil {
		return nil, err
	}
	opt := compare.Options{Prune: f.prune, Now: r.Now()}
	if f.table.Noun == "" {
		opt.Network = f.table.Network
	}
	if opt.Network != "" && !names(&document, opt.Network) {
		return nil, fmt.Errorf("%s has no network %s", cli.Named(file), opt.Network)
	}
	now, err := present(r, &document, opt.Network)
	if err != nil {
		return nil, err
	}
	status, err := r.Status(r)
	if err != nil {
		return nil, err
	}
	d, err := compare.Plans(&document, now, opt)
	var wrong *ipam.PlanError
	if errors.As(err, &wrong) {
		return nil, listProblems(r, file, wrong.Problems, wrong.More, nothingChanged)
	}
	if err != nil {
		return nil, err
	}
	apart := status.Cluster != nil
	return &compared{r, file, document, d, d.Transactions(ipam.MaxEdits, apart), apart}, nil
}

func names(document *ipam.Plan, network string) bool {
	return slices.ContainsFunc(document.Networks, func(n ipam.PlannedNetwork) bool { return n.Name == network })
}

// present returns the current plan. It has the networks of an export, and others that the document names. With a
// network it has only that one.
func present(r *cli.Run, document *ipam.Plan, network string) (*ipam.Plan, error) {
	now := &ipam.Plan{}
	there := map[string]bool{}
	add := func(one string) error {
		for n, err := range r.Export(r, one) {
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
		elastic, err := exportElastic(r)
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

// isMissing reports whether an error is that an object does not exist.
func isMissing(err error) bool {
	var problem *api.Problem
	return errors.As(err, &problem) && problem.Code == api.CodeNotFound
}

// try makes the edits in dry runs, one for each store, and returns the refusals. If a store has more edits than one dry
// run holds, only the first are tried, because the others may depend on these. tried is then false.
func (d *compared) try() (refused []ipam.PlanProblem, tried bool, err error) {
	tried = true
	steps := d.difference.Transactions(ipam.MaxTried, d.apart)
	for i, step := range steps {
		if i > 0 && (!d.apart || steps[i-1].Space == step.Space) {
			tried = false
			continue
		}
		more, err := d.tryStep(step.Edits)
		if err != nil {
			return nil, tried, err
		}
		refused = append(refused, more...)
	}
	return refused, tried, nil
}

func (d *compared) tryStep(step []compare.Edit) (refused []ipam.PlanProblem, err error) {
	out, err := d.Edit(d, client.EditOptions{DryRun: true, Refused: true}, edits(step)...)
	if err == nil && d.nameGuests(step, out.Refused) {
		out, err = d.Edit(d, client.EditOptions{DryRun: true, Refused: true}, edits(step)...)
	}
	if err != nil {
		return nil, d.refusal(err, step)
	}
	for _, r := range out.Refused {
		refused = append(refused, ipam.PlanProblem{Line: step[r.Index].Line, Text: r.Detail, Advice: r.Advice})
	}
	return refused, nil
}

// nameGuests names the guest in associations that are refused because the guest is unclear. An association with a named
// guest keeps it for good, so the others name none.
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

// tell lists the refusals, each with its line.
func (d *compared) tell(refused []ipam.PlanProblem) error {
	return listProblems(d.Run, d.file, refused, 0, nothingChanged)
}

// refusal adds the line of the refused edit to an error.
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

// lines prints the changes.
func lines(w io.Writer, changes []compare.Change) error {
	for _, one := range changes {
		if _, err := fmt.Fprintln(w, cli.Printable(one.String())); err != nil {
			return err
		}
	}
	return nil
}

// untried warns that not all changes were tried.
func (d *compared) untried() string {
	return fmt.Sprintf("a dry run tries at most %d changes, and there are more; the rest were not tried and may "+
		"still be refused", ipam.MaxTried)
}
