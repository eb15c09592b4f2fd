package deploy

import (
	"fmt"
	"io"
	"strings"

	"berth/internal/cli"
	"berth/internal/deploy"
	"berth/internal/deploy/rollout"
)

// show writes a plan as text.
func show(w io.Writer, p *rollout.Plan) error {
	page := &cli.Page{}
	for _, image := range p.Pull {
		page.Line("pull      %s", image)
	}
	for _, one := range p.Delete {
		page.Line("%-9s %s", one.Do, about(one))
	}
	for _, n := range p.Networks {
		page.Line("network   %s is recreated: %s", n.Name, strings.Join(n.Why, "; "))
	}
	for _, s := range p.Services {
		for _, one := range s.Instances {
			page.Line("%-9s %s", one.Do, about(one))
		}
	}
	for _, v := range p.Volumes {
		page.Line("%-9s volume %s", v.Do, v.Title())
	}
	for _, note := range p.Notes {
		page.Line("note      %s", note)
	}
	page.Line("%s", summary(p))
	return page.Show(w)
}

// about describes an instance of a plan in one line.
func about(one *rollout.Instance) string {
	text := one.Owner
	for _, a := range one.On {
		if len(a.Gets) > 0 {
			text += fmt.Sprintf("  %s on %s", addresses(&a), a.Network)
		}
	}
	if len(one.Why) > 0 {
		text += "  (" + strings.Join(one.Why, "; ") + ")"
	}
	return text
}

func addresses(a *rollout.Address) string {
	gets := deploy.Listed(a.Gets, ",")
	if had := deploy.Listed(a.Has, ","); had != "" && had != gets {
		return had + " -> " + gets
	}
	return gets
}

// summary counts the actions of a plan.
func summary(p *rollout.Plan) string {
	switch {
	case p.Changes():
	case p.Task.Do == rollout.Start:
		return fmt.Sprintf("%s runs: nothing to do", p.Project)
	default:
		return fmt.Sprintf("%s matches its files: nothing to do", p.Project)
	}
	var parts []string
	for _, do := range []rollout.Action{rollout.Create, rollout.Recreate, rollout.Start, rollout.Work,
		rollout.Stop, rollout.Delete, rollout.Keep} {
		if n := p.Count(do); n > 0 {
			parts = append(parts, fmt.Sprintf("%d to %s", n, do))
		}
	}
	if n := len(p.Volumes); n > 0 {
		parts = append(parts, fmt.Sprintf("%d of its volumes to orphan or copy", n))
	}
	switch n := len(p.Networks); n {
	case 0:
	case 1:
		parts = append(parts, "1 network to recreate")
	default:
		parts = append(parts, fmt.Sprintf("%d networks to recreate", n))
	}
	return fmt.Sprintf("%s: %s", p.Project, strings.Join(parts, ", "))
}
