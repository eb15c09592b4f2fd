package deploy

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"berth/internal/admin/client"
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
			Flags: cli.Flags{cli.Flag(&last, "last", "only the last `N` of them")},
			Check: func([]string) error {
				if last < 0 {
					return fmt.Errorf("--last is %d; it is how many are shown, and 0 all", last)
				}
				return nil
			}},
		Keys: cli.Fields{"host", "kind=Task", "state=Outcome"},
		Columns: cli.Fields{"Begun", "Task,most=10",
			cli.Col("TOOK", func(r *ipam.DeployRun) string { return took(r, p.Now()) }),
			cli.Col("OUTCOME", func(r *ipam.DeployRun) string { return words(r.Outcome) }).Marked().AtMost(outcomeShown),
			"Did,most=18", "By,wide", "Host,wide"},
		Fetch: func(ctx context.Context, c *client.Client, args []string) ([]ipam.DeployRun, error) {
			return c.DeployRuns(ctx, args[0], last)
		},
	}
}

// outcomeShown is how many characters of an outcome tables show.
const outcomeShown = 15

// took is how long a deploy took, or takes; empty: it is not known when it ended.
func took(r *ipam.DeployRun, now time.Time) string {
	switch {
	case !r.Ended.IsZero():
		now = r.Ended
	case r.Outcome != ipam.DeployRuns:
		return ""
	}
	return max(0, now.Sub(r.Begun)).Round(time.Second).String()
}

// words are an outcome as a person reads it.
func words(o ipam.DeployOutcome) string {
	return cmp.Or(map[ipam.DeployOutcome]string{ipam.DeployLost: "lock lost", ipam.DeployTaken: "lock taken away",
		ipam.DeploySilent: "ended without a word"}[o], string(o))
}

// lastOf is the last deploy of a project that has ended; nil where there is none.
func lastOf(ctx context.Context, c *client.Client, project string) (*ipam.DeployRun, error) {
	const runningToo = 2
	all, err := c.DeployRuns(ctx, project, runningToo)
	for i := range all {
		if all[i].Outcome != ipam.DeployRuns {
			return &all[i], err
		}
	}
	return nil, err
}
