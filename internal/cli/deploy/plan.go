package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/deploy/rollout"

	"github.com/spf13/cobra"
)

const planHelp = `Shows which containers a deploy would create, recreate (and why), start or delete, with
their old and new addresses. It changes nothing. -o saves the plan for berth deploy apply.

Exit codes: 0 nothing to do; 1 refused, with the reasons on standard error; 2 there are changes.`

func planCommand(p *cli.Program) cli.Row {
	var f flags
	var output, format string
	return cli.Verb{Use: "plan", Short: "Show what a deploy would do", Long: planHelp,
		Example: "  berth deploy plan\n  berth deploy plan -f compose.yaml -p shop -o shop.plan",
		Flags: append(f.flags(), cli.Flag(&output, "output", "save the plan in `FILE`").Short("o"),
			cli.FormatFlag(&format, "the plan as it is saved")),
		Run: func(cmd *cobra.Command, _ []string) error {
			table, err := cli.NewObject[rollout.Plan](p.Out, cmd, format)
			if err != nil {
				return err
			}
			var plan *rollout.Plan
			err = withSite(cmd, p, &f, func(ctx context.Context, s *site) (err error) {
				plan, err = s.draw(ctx, false)
				return err
			})
			if err != nil {
				return p.All(err)
			}
			if err := save(p.Out, output, plan); err != nil {
				return err
			}
			if err := cli.ShowObject(table, plan, func(w io.Writer) error { return show(w, plan) }); err != nil {
				return err
			}
			if plan.Changes() {
				return cli.Difference("")
			}
			return nil
		}}
}

// withSite finds the site of a project, and lets it go afterwards.
func withSite(cmd *cobra.Command, p *cli.Program, f *flags, do func(context.Context, *site) error) error {
	project, err := f.Load(cmd.Context(), p)
	if err != nil {
		return err
	}
	return p.Ask(cmd, func(ctx context.Context, c *client.Client) error {
		s, err := open(ctx, f, project, c)
		if err != nil {
			return err
		}
		defer s.close()
		return do(ctx, s)
	})
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

// saved reads a plan that was saved.
func saved(file string) (*rollout.Plan, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var plan rollout.Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		return nil, fmt.Errorf("%s is no plan of `berth deploy plan -o`: %w", file, err)
	}
	if plan.Project == "" || len(plan.Files) == 0 {
		return nil, errors.New(file + " is no plan of `berth deploy plan -o`: it names no project")
	}
	return &plan, nil
}
