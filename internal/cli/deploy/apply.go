package deploy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/cli/compose"
	"berth/internal/deploy"
	"berth/internal/deploy/rollout"
	"berth/internal/deploy/scene"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const applyHelp = `Deploys a Compose project. It reserves addresses, pulls images, deletes containers that the
files no longer name (volumes stay), runs workers and creates missing containers. Then it recreates changed
containers, service by service: first a canary, then as many at once as in flight allows. Containers keep
their reserved addresses, except with order: start-first, where old and new run together. A failed canary
stops the deploy.

With a PLAN of berth deploy plan -o it does exactly that, and refuses if something has changed since. It asks
first; --yes skips the question, also if another deploy came first. A refusal changes nothing.`

func applyCommand(p *cli.Program) cli.Row {
	var f flags
	var how carrying
	return cli.Verb{Use: "apply [PLAN]", Short: "Deploy a project or a saved plan", Long: applyHelp,
		Example: "  berth deploy apply shop.plan --yes\n  berth deploy apply -f compose.yaml -p shop",
		Flags:   append(f.flags(), how.flags()...),
		Check:   how.check,
		Run: func(cmd *cobra.Command, args []string) error {
			var from *rollout.Plan
			if len(args) > 0 {
				if cmd.Flags().Changed("file") {
					return cli.Usagef(cmd, "a plan says which files it is of; leave -f out, or the plan")
				}
				var err error
				if from, err = saved(args[0]); err != nil {
					return err
				}
				f.Source.Project = from.Project
				for _, file := range from.Files {
					f.Source.Files = append(f.Source.Files, file.Path)
				}
			}
			return how.carryOut(cmd, p, &f, from)
		}}
}

// carrying is how a plan is carried out, and what it is drawn for.
type carrying struct {
	task   rollout.Task
	yes    bool
	dryRun bool
	wait   time.Duration
	format string
}

func (how *carrying) flags() cli.Flags {
	how.format = "text"
	return cli.Flags{cli.YesFlag(&how.yes), cli.DryRunFlag(&how.dryRun),
		cli.Flag(&how.wait, "lock-wait", "how long to wait for another deploy of the project"),
		cli.Flag(&how.format, "format", "`form` of the progress report: text, or json (one event per line)")}
}

func (how *carrying) check([]string) error {
	if how.format != "text" && how.format != "json" {
		return fmt.Errorf("--format is text or json, not %q", how.format)
	}
	return nil
}

// title is what is done with the project, for those who ask.
func (how *carrying) title() string {
	if how.task.Do == "" {
		return "apply"
	}
	return strings.TrimSpace(string(how.task.Do) + " " + how.task.Title())
}

// carryOut draws a plan, has it agreed upon, and carries it out.
func (how *carrying) carryOut(cmd *cobra.Command, p *cli.Program, f *flags, from *rollout.Plan) error {
	return p.All(withSite(cmd, p, f, func(ctx context.Context, s *site) error {
		s.task = how.task
		var plan *rollout.Plan
		err := compose.Await(ctx, how.wait, func() (err error) {
			plan, err = s.agree(ctx, cmd, p, from, how)
			return err
		})
		if err != nil || plan == nil {
			return err
		}
		ctx, stop := cli.UntilSignal(ctx)
		defer stop()
		context.AfterFunc(ctx, stop) // a second signal ends the process at once
		if err = s.apply(ctx, p, plan, how, how.yes && from == nil); err != nil && ctx.Err() != nil {
			return fmt.Errorf("%w; what was done stays: run it again for the rest (%v)", cli.ErrInterrupted, err)
		}
		return err
	}))
}

// agree draws the plan that is to be carried out, and asks. nil: there is nothing to do.
func (s *site) agree(ctx context.Context, cmd *cobra.Command, p *cli.Program, from *rollout.Plan,
	how *carrying) (*rollout.Plan, error) {
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
		return nil, s.nothing(ctx, p, plan)
	}
	if how.dryRun {
		return nil, show(p.Out, plan)
	}
	if how.yes {
		return plan, nil
	}
	if err := show(p.Err, plan); err != nil {
		return nil, err
	}
	return plan, p.Confirm(cmd, "Do that?")
}

// apply locks the project, reserves what the plan gives, and carries it out. free: it need not be the plan that was
// agreed upon, where another deploy has come before.
func (s *site) apply(ctx context.Context, p *cli.Program, agreed *rollout.Plan, how *carrying, free bool) (err error) {
	ctx, locked, err := take(ctx, s.client, s.project.Name(), how.title(), s.project.Owners(), how.wait)
	if err != nil {
		return err
	}
	outcome, t := ipam.DeployRefused, newTeller(p, agreed, how.format == "json")
	defer func() {
		t.end()
		did := t.did()
		switch {
		case err == nil:
			outcome = ipam.DeployDone
		case outcome == ipam.DeployRefused || t.failed == "":
			did += "; " + cli.OneLine(err)
		}
		err = errors.Join(err, locked.unlock(ctx, outcome, did))
	}()
	s.deploy = locked.edit.ID
	plan, err := s.underLock(ctx, agreed, free)
	if err != nil {
		return err
	}
	if !plan.Changes() {
		return s.nothing(ctx, p, plan)
	}
	t.plans(plan)
	outcome = ipam.DeployFailed
	err = rollout.Run(ctx, plan, s.crew(locked, t))
	if lost := locked.held(); lost != nil && err != nil {
		return lost
	}
	if err == nil && s.task.Do == rollout.Stop && how.format == "text" {
		err = s.sayRunning(ctx, p, "")
	}
	return err
}

// nothing says that there is nothing to do.
func (s *site) nothing(ctx context.Context, p *cli.Program, plan *rollout.Plan) error {
	if s.task.Do == rollout.Stop {
		return s.sayRunning(ctx, p, ": nothing to do")
	}
	return p.Say(summary(plan))
}

// sayRunning says which services run, after a stop of some; the line ends with more.
func (s *site) sayRunning(ctx context.Context, p *cli.Program, more string) error {
	all, _, err := s.engine.Containers(ctx, s.project.Name())
	if err != nil {
		return err
	}
	return p.Say(runningText(s.project.Name(), s.task.Service, all) + more)
}

// runningText says which services of a project run and, of those that were meant, which do not: "web does not run; db
// and api run".
func runningText(project, meant string, all []scene.Container) string {
	runs := map[string]bool{}
	for i := range all {
		if c := &all[i]; !c.OneOff {
			runs[c.Service] = runs[c.Service] || c.Runs()
		}
	}
	var up, down []string
	for _, service := range slices.Sorted(maps.Keys(runs)) {
		switch {
		case runs[service]:
			up = append(up, service)
		case meant == "" || service == meant:
			down = append(down, service)
		}
	}
	if len(up) == 0 {
		return fmt.Sprintf("nothing of %s runs", project)
	}
	text := deploy.InWords(up) + plural(up, " runs", " run")
	if len(down) > 0 {
		text = deploy.InWords(down) + plural(down, " does not run; ", " do not run; ") + text
	}
	return text
}

func plural(names []string, one, more string) string {
	if len(names) == 1 {
		return one
	}
	return more
}

// underLock draws the plan that is carried out, and reserves what it gives once nothing is in its way: what is refused
// has changed nothing.
func (s *site) underLock(ctx context.Context, agreed *rollout.Plan, free bool) (plan *rollout.Plan, err error) {
	for _, reserve := range []bool{false, true} {
		if plan, err = s.draw(ctx, reserve); err != nil {
			return nil, err
		}
		if moved := agreed.Moved(plan); len(moved) > 0 && !free {
			return nil, fmt.Errorf("what was shown is not what there is any more: %s; run it again",
				strings.Join(moved, "; "))
		}
		if !plan.Changes() {
			break
		}
	}
	return plan, nil
}

// crew is what a plan is carried out with under a lock.
func (s *site) crew(locked *lock, t *teller) rollout.Crew {
	edit := func(ctx context.Context, e ipam.Edit) error {
		_, err := s.client.Edit(ctx, client.EditOptions{Deploy: s.deploy}, e)
		return err
	}
	return rollout.Crew{Engine: s.engine, Maker: s.maker, Tell: t.tell, Held: locked.held, Ran: s.ran, Edit: edit,
		Regain: s.regain, Host: locked.edit.Host, Orphans: s.client.Orphans,
		Release: func(ctx context.Context, owner string) error { return edit(ctx, &ipam.ReleaseOwner{Owner: owner}) },
		Settle: func(ctx context.Context, owner string) error {
			return edit(ctx, &ipam.ReleaseOwner{Owner: owner, Replaced: true})
		}}
}
