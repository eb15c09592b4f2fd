package deploy

import (
	"context"
	"strconv"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

const statusHelp = `Shows which projects are being deployed, by whom, where and until when they are locked at
least. For a PROJECT it also shows the result of the last deploy.`

// state is a project's: its lock, where it has one, and what came of the last deploy, where that was asked for.
type state struct {
	ipam.DeployLock
	Last *ipam.DeployRun `json:"last,omitempty"`
}

func statusCommand(p *cli.Program) *cobra.Command {
	return cli.Listing[state]{
		Verb: cli.Verb{Use: "status [PROJECT]", Short: "Show which projects are being deployed", Long: statusHelp,
			Refs: []cli.Refs{projectRefs}},
		Keys:    []cli.Key[state]{cli.By(cli.KeyHost, func(s *state) string { return s.Host })},
		Columns: func(cli.Output) []cli.Column[state] { return stateColumns(p.Now) },
		Fetch: func(ctx context.Context, c *client.Client, args []string) (rows []state, err error) {
			all, err := c.Deploys(ctx)
			if err != nil {
				return nil, err
			}
			for _, l := range all {
				if len(args) == 0 || args[0] == l.Project {
					rows = append(rows, state{DeployLock: l})
				}
			}
			if len(args) == 0 {
				return rows, nil
			}
			last, err := lastOf(ctx, c, args[0])
			if err != nil || last == nil {
				return rows, err
			}
			if len(rows) == 0 {
				rows = []state{{DeployLock: ipam.DeployLock{Project: args[0]}}}
			}
			rows[0].Last = last
			return rows, nil
		},
	}.Command(p)
}

func stateColumns(now func() time.Time) []cli.Column[state] {
	locked := func(title string, value func(*state) string) cli.Column[state] {
		return cli.Col(title, func(s *state) string {
			if s.Expires.IsZero() {
				return ""
			}
			return value(s)
		})
	}
	return []cli.Column[state]{
		cli.Col("PROJECT", func(s *state) string { return s.Project }).Names(),
		locked("TASK", func(s *state) string { return s.Task }).AtMost(taskShown),
		locked("HOST", func(s *state) string { return s.Host }),
		locked("EXPIRES", func(s *state) string {
			return "in " + max(0, s.Expires.Sub(now())).Round(time.Second).String()
		}),
		cli.StateCol("LAST", func(s *state) string {
			if s.Last == nil {
				return ""
			}
			return words(s.Last.Outcome)
		}).AtMost(outcomeShown).IfAny(),
		cli.WideCol("BY", func(s *state) string { return s.Holder }),
		cli.WideCol("PROCESS", func(s *state) string { return strconv.Itoa(s.PID) }),
		cli.WideCol("SINCE", func(s *state) string { return cli.ShortTime(s.Since) }),
		cli.WideCol("LAST BEGUN", func(s *state) string {
			if s.Last == nil {
				return ""
			}
			return cli.ShortTime(s.Last.Begun)
		}),
	}
}

const unlockHelp = `Removes the lock of a project from the deploy that holds it. That deploy stops at its next
step. A lock expires half a minute after the last sign of its deploy.`

func unlockCommand(p *cli.Program) *cobra.Command {
	return cli.Change{
		Verb: cli.Verb{Use: "unlock PROJECT", Short: "Remove the lock of a project",
			Long: unlockHelp, Refs: []cli.Refs{projectRefs}},
		Edits: func(_ *cobra.Command, args []string) ([]ipam.Edit, error) {
			return cli.One(&ipam.UnlockDeploy{Project: args[0], Force: true}, nil)
		},
	}.Command(p)
}

// projectRefs completes projects that are being deployed.
func projectRefs(ctx context.Context, c *client.Client, _ string) (names []string, err error) {
	all, err := c.Deploys(ctx)
	for _, l := range all {
		names = append(names, l.Project)
	}
	return names, err
}
