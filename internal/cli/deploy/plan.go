package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"berth/internal/cli"
	"berth/internal/deploy/rollout"
)

const planHelp = `Shows which containers a deploy would create, recreate (and why), start or delete, with
their old and new addresses. It changes nothing. -o saves the plan for berth deploy apply.

Exit codes: 0 nothing to do; 1 refused, with the reasons on standard error; 2 there are changes.`

func planCommand() cli.Row {
	var f flags
	var output, format string
	return cli.Verb{Use: "plan", Short: "Show what a deploy would do", Long: planHelp,
		Example: "  berth deploy plan\n  berth deploy plan -f compose.yaml -p shop -o shop.plan",
		Flags: append(f.flags(), cli.Flag(&output, "output", "save the plan in `FILE`").Short("o"),
			cli.FormatFlag(&format, "the plan as -o saves it")),
		Run: func(r *cli.Run) error {
			table, err := cli.NewObject[rollout.Plan](r, format)
			if err != nil {
				return err
			}
			var d *drawing
			err = withSite(r, &f, func(s *site) (err error) {
				d, err = s.draw()
				return err
			})
			if err != nil {
				return r.All(err)
			}
			plan := d.plan
			if err := save(r.Out, output, plan); err != nil {
				return err
			}
			if err := table.Object(plan, func(w io.Writer) error { return show(w, plan) }); err != nil {
				return err
			}
			if plan.Changes() {
				return cli.Difference("")
			}
			return nil
		}}
}

// withSite opens the site of a project, and closes it afterwards.
func withSite(r *cli.Run, f *flags, do func(*site) error) error {
	project, err := f.Load(r)
	if err != nil {
		return err
	}
	if err := r.Ask(); err != nil {
		return err
	}
	s, err := open(r, f, project)
	if err != nil {
		return err
	}
	defer func() { _ = s.engine.Close() }()
	return do(s)
}

// save writes a plan to a file, or to standard output with "-", for `berth deploy apply`.
func save(out io.Writer, file string, plan *rollout.Plan) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(plan, "", "  ")
	if err != nil {
		return err
	}
	return cli.WriteText(cli.PrivateMode, out, file, append(text, '\n'))
}

// saved reads a saved plan.
func saved(file string) (*rollout.Plan, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var plan rollout.Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		return nil, fmt.Errorf("%s is not a plan of `berth deploy plan -o`: %w", file, err)
	}
	if plan.Project == "" || len(plan.Files) == 0 {
		return nil, errors.New(file + " is not a plan of `berth deploy plan -o`: it names no project")
	}
	return &plan, nil
}
