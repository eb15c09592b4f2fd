package deploy

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const historyHelp = `Shows the deploys of a project, the latest first: the verb, author, host, duration,
result and recreated containers. The history reaches back as far as the events (berth serve --event-age). A
killed deploy shows "ended without a word" once its lock expires.`

func historyCommand(p *cli.Program) *cobra.Command {
	last := 0
	cmd := cli.Listing[ipam.DeployRun]{
		Verb: cli.Verb{Use: "history PROJECT", Short: "Show the deploys of a project",
			Long: historyHelp, Example: "  berth deploy history shop\n  berth deploy history shop --last 1 --format json"},
		Check: func([]string) error {
			if last < 0 {
				return fmt.Errorf("--last is %d; it is how many are shown, and 0 all", last)
			}
			return nil
		},
		Keys: []cli.Key[ipam.DeployRun]{
			cli.By(cli.KeyHost, func(r *ipam.DeployRun) string { return r.Host }),
			cli.By(cli.KeyKind, func(r *ipam.DeployRun) string { return r.Task }),
			cli.By(cli.KeyState, func(r *ipam.DeployRun) string { return string(r.Outcome) }),
		},
		Columns: func(cli.Output) []cli.Column[ipam.DeployRun] { return runColumns(p.Now) },
		Fetch: func(ctx context.Context, c *client.Client, args []string) ([]ipam.DeployRun, error) {
			return c.DeployRuns(ctx, args[0], last)
		},
	}.Command(p)
	cmd.ValidArgsFunction = p.CompleteProjects
	cmd.Flags().IntVar(&last, "last", 0, "only the last `N` of them")
	return cmd
}

func runColumns(now func() time.Time) []cli.Column[ipam.DeployRun] {
	const shown = 18 // of what it did
	return []cli.Column[ipam.DeployRun]{
		cli.Col("BEGUN", func(r *ipam.DeployRun) string { return cli.ShortTime(r.Begun) }).Names(),
		cli.Col("TASK", func(r *ipam.DeployRun) string { return r.Task }).AtMost(taskShown),
		cli.Col("TOOK", func(r *ipam.DeployRun) string { return took(r, now()) }),
		cli.StateCol("OUTCOME", func(r *ipam.DeployRun) string { return words(r.Outcome) }).AtMost(outcomeShown),
		cli.Col("DID", func(r *ipam.DeployRun) string { return r.Did }).AtMost(shown),
		cli.WideCol("BY", func(r *ipam.DeployRun) string { return r.By }),
		cli.WideCol("HOST", func(r *ipam.DeployRun) string { return r.Host }),
	}
}

// So many characters of a task, and of an outcome, are shown in tables.
const (
	taskShown    = 10
	outcomeShown = 15
)

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
