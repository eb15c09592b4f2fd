package deploy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/deploy/rollout"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const applyHelp = `Brings a Compose project to what its files say: what is new is reserved, images are pulled, what the files
do not name any more is deleted with its addresses (its volumes stay), missing containers are made, and
then service by service what has changed is made anew: first a canary, then so many at once as may be in
flight. Each container keeps the addresses that are reserved for it. A canary that fails stops it.

With a PLAN of berth deploy plan -o exactly that is done; if something has moved since, it is refused. It
asks before it begins; --yes is the answer.

Exit code 0: all is done. 1: refused, or something failed. 64: wrong usage.`

func applyCommand(p *cli.Program) *cobra.Command {
	var f flags
	var yes bool
	var wait time.Duration
	var format string
	cmd := cli.Verb{Use: "apply [PLAN]", Short: "Do what a plan says, or what the files say now", Long: applyHelp,
		Example: "  berth deploy apply shop.plan --yes\n  berth deploy apply -f compose.yaml -p shop"}.Command(p)
	f.add(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().DurationVar(&wait, "lock-wait", 0, "wait so long for another deploy of the project")
	cmd.Flags().StringVar(&format, "format", "text", "`form` of what is told meanwhile: text, or json (an event a line)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if format != "text" && format != "json" {
			return cli.Usage(cmd, fmt.Errorf("--format is text or json, not %q", format))
		}
		var from *rollout.Plan
		if len(args) > 0 {
			if cmd.Flags().Changed("file") {
				return cli.Usage(cmd, errors.New("a plan says which files it is of; leave -f out, or the plan"))
			}
			var err error
			if from, err = saved(args[0]); err != nil {
				return err
			}
			f.source.Project = from.Project
			for _, file := range from.Files {
				f.source.Files = append(f.source.Files, file.Path)
			}
		}
		return allOf(p, withSite(cmd, p, &f, func(ctx context.Context, s *site) error {
			plan, err := s.agree(ctx, cmd, p, from, yes)
			if err != nil || plan == nil {
				return err
			}
			return s.apply(ctx, plan, wait, telling(p.Out, format == "json"))
		}))
	}
	return cmd
}

// agree draws the plan that is to be carried out, and asks. nil: there is nothing to do.
func (s *site) agree(ctx context.Context, cmd *cobra.Command, p *cli.Program, from *rollout.Plan,
	yes bool) (*rollout.Plan, error) {
	plan, err := s.draw(ctx, false)
	if err != nil {
		return nil, err
	}
	if from != nil {
		if moved := from.Moved(plan); len(moved) > 0 {
			return nil, fmt.Errorf("the plan is out of date: %s; make it again with `berth deploy plan`",
				strings.Join(moved, "; "))
		}
	}
	if !plan.Changes() {
		return nil, p.Say([]string{summary(plan)})
	}
	if yes {
		return plan, nil
	}
	if err := show(p.Err, plan); err != nil {
		return nil, err
	}
	return plan, p.Confirm(cmd, "Do that?")
}

// apply locks the project, reserves what the plan gives, and carries it out.
func (s *site) apply(ctx context.Context, agreed *rollout.Plan, wait time.Duration,
	tell func(rollout.Event)) (err error) {
	ctx, locked, err := take(ctx, s.client, s.project.Name(), s.project.Owners(), wait)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locked.unlock(ctx)) }()
	s.deploy = locked.edit.ID
	plan, err := s.draw(ctx, true)
	if err != nil {
		return err
	}
	if moved := agreed.Moved(plan); len(moved) > 0 {
		return fmt.Errorf("what was shown is not what there is any more: %s; run it again", strings.Join(moved, "; "))
	}
	err = rollout.Run(ctx, plan, rollout.Crew{Engine: s.engine, Maker: s.maker, Tell: tell, Held: locked.held,
		Release: func(ctx context.Context, owner string) error {
			_, err := s.client.Edit(ctx, client.EditOptions{Deploy: s.deploy}, &ipam.ReleaseOwner{Owner: owner})
			return err
		}})
	if lost := locked.held(); lost != nil && err != nil {
		return lost
	}
	return err
}
