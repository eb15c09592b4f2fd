package document

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"berth/internal/admin/api"
	"berth/internal/advice"
	"berth/internal/cli"
	"berth/internal/ipam"
)

// Import sends the plan to the daemon. If the daemon refuses it, Import lists the problems.
func Import(r *cli.Run, planned ipam.Plan, dryRun bool, file string) (ipam.ImportReport, error) {
	progress := r.ShowProgress("importing", false)
	report, err := r.Import(r, planned, dryRun, progress.Set)
	progress.End()
	var refused *api.Problem
	if errors.As(err, &refused) && len(refused.Problems) > 0 {
		return report, listProblems(r, file, refused.Problems, refused.More, nothingImported)
	}
	return report, err
}

// nothingImported ends the error of an import that is refused.
const nothingImported = "nothing was imported"

// listProblems prints all problems of a document, each with its line. It returns the error that ends the command, which
// ends with comesTo.
func listProblems(r *cli.Run, file string, problems []ipam.PlanProblem, more int, comesTo string) error {
	lines := make([]string, len(problems))
	for i, problem := range problems {
		text := advice.Join(problem.Text, problem.Advice)
		lines[i] = cli.Named(file) + ": " + text
		if problem.Line > 0 {
			lines[i] = fmt.Sprintf("%s:%d: %s", cli.Named(file), problem.Line, text)
		}
	}
	if len(lines) == 1 && more == 0 {
		return fmt.Errorf("%s; %s", cli.Printable(lines[0]), comesTo)
	}
	for _, line := range lines {
		fmt.Fprintln(r.Stderr, cli.Printable(line))
	}
	if more > 0 {
		return fmt.Errorf("%s has %d more problems than these %d; %s", cli.Named(file), more, len(lines), comesTo)
	}
	return fmt.Errorf("%s has %d problems; %s", cli.Named(file), len(lines), comesTo)
}

// Said prints the result of an import for a person.
func Said(w io.Writer, r ipam.ImportReport) error {
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
	case r.DryRun:
		fmt.Fprintf(&b, "would add %s%s\n", r.Added, unchanged)
	default:
		fmt.Fprintf(&b, "added %s%s\n", r.Added, unchanged)
	}
	_, err := io.WriteString(w, cmp.Or(b.String(), "\n"))
	return err
}
