package deploy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"berth/internal/cli"
	"berth/internal/deploy/rollout"
)

// show writes a plan as a person reads it.
func show(w io.Writer, p *rollout.Plan) error {
	page := &cli.Page{}
	for _, image := range p.Pull {
		page.Line("pull      %s", image)
	}
	for _, one := range p.Delete {
		page.Line("%-9s %s", one.Do, about(one))
	}
	for _, s := range p.Services {
		for _, one := range s.Instances {
			page.Line("%-9s %s", one.Do, about(one))
		}
	}
	page.Line("%s", summary(p))
	return page.Show(w)
}

// about is what a plan says of an instance in a line.
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
	gets := list(a.Gets)
	if had := list(a.Has); had != "" && had != gets {
		return had + " -> " + gets
	}
	return gets
}

func list(addrs []netip.Addr) string {
	var all []string
	for _, addr := range addrs {
		all = append(all, addr.String())
	}
	return strings.Join(all, ",")
}

// summary counts what a plan does.
func summary(p *rollout.Plan) string {
	if !p.Changes() {
		return fmt.Sprintf("%s is as its files say: nothing to do", p.Project)
	}
	var parts []string
	for _, do := range []rollout.Action{rollout.Create, rollout.Recreate, rollout.Start, rollout.Delete, rollout.Keep} {
		if n := p.Count(do); n > 0 {
			parts = append(parts, fmt.Sprintf("%d to %s", n, do))
		}
	}
	return fmt.Sprintf("%s: %s", p.Project, strings.Join(parts, ", "))
}

// telling writes what a deploy does, as lines or as events in JSON.
func telling(w io.Writer, asJSON bool) func(rollout.Event) {
	if asJSON {
		encoder := json.NewEncoder(w)
		return func(e rollout.Event) { _ = encoder.Encode(e) } // whoever reads it has gone; the deploy goes on
	}
	return func(e rollout.Event) {
		canary := ""
		if e.Canary {
			canary = " (canary)"
		}
		words := strings.TrimSpace(fmt.Sprintf("%s %s%s", e.Step, e.Instance, canary))
		if e.Detail != "" {
			words += ": " + e.Detail
		}
		fmt.Fprintln(w, cli.Printable(words))
		for _, line := range e.Lines {
			fmt.Fprintln(w, "  | "+cli.Printable(line))
		}
	}
}
