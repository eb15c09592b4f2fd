package deploy

import (
	"context"
	"fmt"
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
)

func statusCommand(p *cli.Program) *cobra.Command {
	return cli.Listing[ipam.DeployLock]{
		Verb: cli.Verb{Use: "status [PROJECT]", Short: "Show which projects are being deployed",
			Refs: []cli.Refs{projectRefs}},
		Columns: func(cli.Output) []cli.Column[ipam.DeployLock] { return lockColumns(p.Now) },
		Fetch: func(ctx context.Context, c *client.Client, args []string) (rows []ipam.DeployLock, err error) {
			all, err := c.Deploys(ctx)
			for _, l := range all {
				if len(args) == 0 || args[0] == l.Project {
					rows = append(rows, l)
				}
			}
			return rows, err
		},
	}.Command(p)
}

func lockColumns(now func() time.Time) []cli.Column[ipam.DeployLock] {
	return []cli.Column[ipam.DeployLock]{
		cli.Col("PROJECT", func(l *ipam.DeployLock) string { return l.Project }).Names(),
		cli.Col("BY", func(l *ipam.DeployLock) string { return l.Holder }),
		cli.Col("HOST", func(l *ipam.DeployLock) string { return l.Host }),
		cli.Col("PROCESS", func(l *ipam.DeployLock) string { return fmt.Sprint(l.PID) }),
		cli.Col("SINCE", func(l *ipam.DeployLock) string { return cli.LocalTime(l.Since) }),
		cli.Col("EXPIRES", func(l *ipam.DeployLock) string {
			return "in " + max(0, l.Expires.Sub(now())).Round(time.Second).String()
		}),
	}
}

const unlockHelp = `Takes the lock of a project away from the deploy that holds it. That deploy does nothing further once it
notices, at its next step. A lock ends by itself half a minute after the last sign of life of its deploy.`

func unlockCommand(p *cli.Program) *cobra.Command {
	return cli.Change{
		Verb: cli.Verb{Use: "unlock PROJECT", Short: "Take the lock of a project away from its deploy",
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
