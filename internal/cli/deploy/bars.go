package deploy

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"berth/internal/cli"
	"berth/internal/deploy/rollout"
	"berth/internal/ipam"
)

// reporter shows the progress of a deploy: as a bar on a terminal, otherwise as lines or as JSON events, one per line.
// It also counts the actions for the deploy's record.
type reporter struct {
	p       *cli.Program
	json    *json.Encoder // nil: text
	bar     *cli.Progress
	project string
	begun   time.Time
	todo    map[string]rollout.Action // by owner
	total   int
	done    map[rollout.Action]int
	anew    []string // the recreated instances
	failed  string   // the first instance that failed, with the reason
}

func newReporter(p *cli.Program, plan *rollout.Plan, asJSON bool) *reporter {
	t := &reporter{p: p, project: plan.Project, begun: p.Now(), bar: p.ShowProgress("deploying "+plan.Project, false)}
	if asJSON {
		t.json = json.NewEncoder(p.Out)
	}
	t.plans(plan)
	return t
}

// plans announces a plan.
func (t *reporter) plans(plan *rollout.Plan) {
	t.todo, t.total, t.done, t.anew = map[string]rollout.Action{}, 0, map[rollout.Action]int{}, nil
	all := plan.Delete
	for _, s := range plan.Services {
		all = append(all[:len(all):len(all)], s.Instances...)
	}
	for _, one := range all {
		if one.Do != rollout.Keep {
			name := one.Owner
			if one.Leftover { // its owner has another one
				name = one.Name
			}
			t.todo[name] = one.Do
			t.total++
		}
	}
	if t.json == nil {
		t.bar.Set(0, t.total)
	}
}

// tell shows one event. A reader that is gone does not end the deploy.
func (t *reporter) tell(e rollout.Event) {
	switch {
	case e.Step == rollout.Done:
		do := t.todo[e.Instance]
		t.done[do]++
		if do == rollout.Recreate {
			t.anew = append(t.anew, strings.TrimPrefix(e.Instance, t.project+"/"))
		}
	case e.Step == rollout.Failed && t.failed == "":
		t.failed = e.Instance + " failed" + t.while(e.Instance) + ": " + e.Detail
		if e.Canary {
			t.failed = "the canary " + t.failed
		}
	}
	switch {
	case t.json != nil:
		_ = t.json.Encode(e)
	case !t.bar.Shown():
		lines(t.p.Out, e)
	case e.Step == rollout.Failed:
		t.bar.End()
		lines(t.p.Stderr, e)
	default:
		t.bar.Say(cli.Printable(strings.TrimSpace(string(e.Step) + " " + e.Instance)))
		t.bar.Set(t.count(), t.total)
	}
}

// end removes the bar, and says on a terminal what was done.
func (t *reporter) end() {
	t.bar.End()
	if t.bar.Shown() && t.json == nil {
		fmt.Fprintf(t.p.Stderr, "%s: %s in %s\n", t.project, t.did(), t.p.Now().Sub(t.begun).Round(time.Second))
	}
}

func (t *reporter) count() (count int) {
	for _, n := range t.done {
		count += n
	}
	return count
}

// pasts are the actions in the past tense.
var pasts = [...]struct {
	do   rollout.Action
	word string
}{{rollout.Create, "created"}, {rollout.Recreate, "recreated"}, {rollout.Start, "started"}, {rollout.Work, "run"},
	{rollout.Stop, "stopped"}, {rollout.Delete, "deleted"}}

// while says what was being done to an instance that failed, because some of it is done.
func (t *reporter) while(instance string) string {
	for _, past := range pasts {
		if past.do == t.todo[instance] && past.do != rollout.Work {
			return " while it was being " + past.word
		}
	}
	return ""
}

// did says what was done and what failed.
func (t *reporter) did() string {
	var parts []string
	for _, past := range pasts {
		if n := t.done[past.do]; n > 0 {
			part := fmt.Sprintf("%d %s", n, past.word)
			if past.do == rollout.Recreate {
				part += " (" + some(t.anew) + ")"
			}
			parts = append(parts, part)
		}
	}
	text := strings.Join(parts, ", ")
	switch done := t.count(); {
	case done == 0 && t.failed != "":
		text = fmt.Sprintf("none of %d finished", t.total)
	case done == 0:
		text = "nothing was done"
	case done < t.total:
		text += fmt.Sprintf(", of %d", t.total)
	}
	if t.failed != "" {
		text += "; " + t.failed
	}
	return text
}

// some names the first of many instances.
func some(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// cut shortens a text to what the record of a deploy holds.
func cut(text string) string {
	const dots = "..."
	if len(text) <= ipam.MaxDid {
		return text
	}
	return strings.ToValidUTF8(text[:ipam.MaxDid-len(dots)], "") + dots
}

// lines writes an event as text.
func lines(w io.Writer, e rollout.Event) {
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
