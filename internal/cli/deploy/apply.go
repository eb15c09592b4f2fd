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
)

const applyHelp = `Deploys a Compose project. It reserves addresses, pulls images, deletes containers that the
files no longer name (volumes stay), runs workers and creates missing containers. Then it recreates changed
containers, service by service: first a canary, then as many at once as in flight allows. Containers keep
their reserved addresses, except with order: start-first, where old and new run together. A failed canary
stops the deploy.

With a PLAN that berth deploy plan -o saved, it does exactly what the plan shows, and refuses if something has
changed since. It asks first; --yes skips the question, even if another deploy ran in between. A refusal
changes nothing.`

func applyCommand() cli.Row {
	var f flags
	var how carrying
	return cli.Verb{Use: "apply [PLAN]", Short: "Deploy a project or a saved plan", Long: applyHelp,
		Example: "  berth deploy apply shop.plan --yes\n  berth deploy apply -f compose.yaml -p shop",
		Flags:   append(f.flags(), how.flags()...),
		Check:   how.check,
		Run: func(r *cli.Run) error {
			var from *rollout.Plan
			if len(r.Args) > 0 {
				if r.Given("file") {
					return r.Usagef("a plan already names its files; leave out -f, or the plan")
				}
				var err error
				if from, err = saved(r.Args[0]); err != nil {
					return err
				}
				f.Source.Project = from.Project
				for _, file := range from.Files {
					f.Source.Files = append(f.Source.Files, file.Path)
				}
			}
			return how.carryOut(r, &f, from)
		}}
}

// carrying says how a plan is carried out, and what it is drawn for.
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

func (how *carrying) check(*cli.Run) error {
	if how.format != "text" && how.format != "json" {
		return fmt.Errorf("--format is text or json, not %q", how.format)
	}
	return nil
}

// title says what is done with the project, for the question to the user.
func (how *carrying) title() string {
	if how.task.Do == "" {
		return "apply"
	}
	return strings.TrimSpace(string(how.task.Do) + " " + how.task.Title())
}

// carryOut draws a plan, asks for consent, and carries it out.
func (how *carrying) carryOut(r *cli.Run, f *flags, from *rollout.Plan) error {
	return r.All(withSite(r, f, func(s *site) error {
		s.task = how.task
		var plan *rollout.Plan
		err := compose.Await(r, how.wait, func() (err error) {
			plan, err = s.agree(from, how)
			return err
		})
		if err != nil || plan == nil {
			return err
		}
		r, stop := r.UntilSignal()
		defer stop()
		context.AfterFunc(r, stop) // a second signal ends the process at once
		if err = s.on(r).apply(plan, how, how.yes && from == nil); err != nil && r.Err() != nil {
			return fmt.Errorf("%w; completed steps stay; run the command again for the rest (%v)", cli.ErrInterrupted,
				err)
		}
		return err
	}))
}

// agree draws the plan and asks for consent. It returns nil if there is nothing to do.
func (s *site) agree(from *rollout.Plan, how *carrying) (*rollout.Plan, error) {
	d, err := s.draw()
	if err != nil {
		return nil, err
	}
	plan := d.plan
	if from != nil {
		if moved := from.Moved(plan); len(moved) > 0 {
			return nil, fmt.Errorf("the plan is out of date: %s; make it again with `berth deploy plan`",
				strings.Join(moved, "; "))
		}
	}
	if !plan.Changes() {
		return nil, s.nothing(plan)
	}
	if how.dryRun {
		return nil, show(s.Out, plan)
	}
	if how.yes {
		return plan, nil
	}
	if err := show(s.Stderr, plan); err != nil {
		return nil, err
	}
	return plan, s.Confirm("Carry out this plan?")
}

// apply locks the project, makes the plan's reservations and carries the plan out. With free, the plan may differ from
// the agreed one, because another deploy came in between.
func (s *site) apply(agreed *rollout.Plan, how *carrying, free bool) (err error) {
	under, locked, err := take(s.Run, s.project.Name(), how.title(), s.project.Owners(), how.wait)
	if err != nil {
		return err
	}
	s = s.on(s.With(under))
	outcome, t := ipam.DeployRefused, newReporter(s.Program, agreed, how.format == "json")
	defer func() {
		t.end()
		did := t.did()
		switch {
		case err == nil:
			outcome = ipam.DeployDone
		case outcome == ipam.DeployRefused || t.failed == "":
			did += "; " + cli.OneLine(err)
		}
		err = errors.Join(err, locked.unlock(s, outcome, did))
	}()
	s.deploy = locked.edit.ID
	plan, err := s.underLock(agreed, free)
	if err != nil {
		return err
	}
	if !plan.Changes() {
		return s.nothing(plan)
	}
	t.plans(plan)
	outcome = ipam.DeployFailed
	err = rollout.Run(s, plan, s.tools(locked, t))
	if lost := locked.held(); lost != nil && err != nil {
		return lost
	}
	if err == nil && s.task.Do == rollout.Stop && how.format == "text" {
		err = s.sayRunning("")
	}
	return err
}

// nothing reports that there is nothing to do.
func (s *site) nothing(plan *rollout.Plan) error {
	if s.task.Do == rollout.Stop {
		return s.sayRunning(": nothing to do")
	}
	return s.Say(summary(plan))
}

// sayRunning lists the running services after some were stopped. The line ends with more.
func (s *site) sayRunning(more string) error {
	all, _, err := s.engine.Containers(s, s.project.Name())
	if err != nil {
		return err
	}
	return s.Say(runningText(s.project.Name(), s.task.Service, all) + more)
}

// runningText lists the running services of a project and those of meant that do not run: "web does not run; db and api
// run".
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
		return fmt.Sprintf("no container of %s runs", project)
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

// underLock draws the plan to carry out. It makes the plan's reservations only if nothing prevents the plan, so that a
// refusal changes nothing.
func (s *site) underLock(agreed *rollout.Plan, free bool) (*rollout.Plan, error) {
	d, err := s.draw()
	for reserve := false; err == nil; reserve = true {
		moved := agreed.Moved(d.plan)
		switch {
		case len(moved) > 0 && !free:
			return nil, fmt.Errorf("the state has changed since the plan was shown: %s; run the command again",
				strings.Join(moved, "; "))
		case reserve || !d.plan.Changes():
			return d.plan, nil
		}
		err = s.reserve(d)
	}
	return nil, err
}

// tools returns what a plan needs to be carried out under a lock.
func (s *site) tools(locked *lock, t *reporter) rollout.Tools {
	edit := func(ctx context.Context, e ipam.Edit) error {
		_, err := s.Edit(ctx, client.EditOptions{Deploy: s.deploy}, e)
		return err
	}
	return rollout.Tools{Engine: s.engine, Maker: s.maker, Tell: t.tell, Held: locked.held, Ran: s.ran, Edit: edit,
		Regain: s.regain, Host: locked.edit.Host, Orphans: s.Client.Orphans,
		Release: func(ctx context.Context, owner string) error { return edit(ctx, &ipam.ReleaseOwner{Owner: owner}) },
		Settle: func(ctx context.Context, owner string) error {
			return edit(ctx, &ipam.ReleaseOwner{Owner: owner, Replaced: true})
		}}
}
