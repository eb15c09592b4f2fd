package deploy

import (
	"cmp"
	"fmt"
	"time"

	"berth/internal/cli"
	"berth/internal/ipam"
)

const historyHelp = `Shows the deploys of a project, the latest first: the verb, author, host, duration,
result and recreated containers. The history reaches back as far as the events (berth serve --event-age). A
killed deploy shows "ended without a word" once its lock expires.`

func historyCommand(p *cli.Program) cli.Row {
	last := 0
	return cli.Listing[ipam.DeployRun]{
		Verb: cli.Verb{Use: "history PROJECT", Short: "Show the deploys of a project",
			Long: historyHelp, Example: "  berth deploy history shop\n  berth deploy history shop --last 1 --format json",
			Any:   cli.ProjectRefs,
			Flags: cli.Flags{cli.Flag(&last, "last", "show only the last `N` deploys")},
			Check: func(*cli.Run) error {
				if last < 0 {
					return fmt.Errorf("--last is %d and must be the number of deploys to show, or 0 for all", last)
				}
				return nil
			}},
		Keys: cli.Fields{"host", "kind=Task", "state=Outcome"},
		Columns: cli.Fields{"Begun", "Task,most=10",
			cli.Col("TOOK", func(r *ipam.DeployRun) string { return took(r, p.Now()) }),
			cli.Col("OUTCOME", func(r *ipam.DeployRun) string { return words(r.Outcome) }).Marked().AtMost(outcomeShown),
			"Did,most=18", "By,wide", "Host,wide"},
		Fetch: func(r *cli.Run) ([]ipam.DeployRun, error) {
			return r.DeployRuns(r, r.Args[0], last)
		},
	}
}

// outcomeShown is how many characters of an outcome tables show.
const outcomeShown = 15

// took returns how long a deploy took or has taken so far. It is empty if the end is unknown.
func took(r *ipam.DeployRun, now time.Time) string {
	switch {
	case !r.Ended.IsZero():
		now = r.Ended
	case r.Outcome != ipam.DeployRuns:
		return ""
	}
	return max(0, now.Sub(r.Begun)).Round(time.Second).String()
}

// words returns an outcome as text.
func words(o ipam.DeployOutcome) string {
	return cmp.Or(map[ipam.DeployOutcome]string{ipam.DeployLost: "lock lost", ipam.DeployTaken: "lock taken away",
		ipam.DeploySilent: "ended without a word"}[o], string(o))
}

// lastOf returns the last finished deploy of a project, or nil.
func lastOf(r *cli.Run, project string) (*ipam.DeployRun, error) {
	const runningToo = 2
	all, err := r.DeployRuns(r, project, runningToo)
	for i := range all {
		if all[i].Outcome != ipam.DeployRuns {
			return &all[i], err
		}
	}
	return nil, err
}
