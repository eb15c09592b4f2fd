package deploy

import (
	"time"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"
)

const statusHelp = `Shows which projects are being deployed, by whom and where, and when the lock of each expires
unless its deploy renews it. For a PROJECT it also shows the result of the last deploy.`

// state is a project's lock, if any, and the outcome of its last deploy, if asked for.
type state struct {
	ipam.DeployLock
	Last *ipam.DeployRun `json:"last,omitempty"`
}

func statusCommand(p *cli.Program) cli.Row {
	return cli.Listing[state]{
		Verb: cli.Verb{Use: "status [PROJECT]", Short: "Show which projects are being deployed", Long: statusHelp,
			Refs: []cli.Refs{projectRefs}},
		Keys:    cli.Fields{"host"},
		Columns: stateColumns(p.Now),
		Fetch: func(r *cli.Run) (rows []state, err error) {
			all, err := r.Deploys(r)
			if err != nil {
				return nil, err
			}
			for _, l := range all {
				if len(r.Args) == 0 || r.Args[0] == l.Project {
					rows = append(rows, state{DeployLock: l})
				}
			}
			if len(r.Args) == 0 {
				return rows, nil
			}
			last, err := lastOf(r, r.Args[0])
			if err != nil || last == nil {
				return rows, err
			}
			if len(rows) == 0 {
				rows = []state{{DeployLock: ipam.DeployLock{Project: r.Args[0]}}}
			}
			rows[0].Last = last
			return rows, nil
		},
	}
}

func stateColumns(now func() time.Time) cli.Fields {
	return cli.Fields{"Project", "Task,most=10", "Host",
		cli.Col("EXPIRES", func(s *state) string {
			if s.Expires.IsZero() {
				return ""
			}
			return "in " + max(0, s.Expires.Sub(now())).Round(time.Second).String()
		}),
		cli.Col("LAST", func(s *state) string {
			if s.Last == nil {
				return ""
			}
			return words(s.Last.Outcome)
		}).Marked().AtMost(outcomeShown).IfAny(),
		"BY=Holder,wide", "PROCESS=PID,wide", "Since,wide", "LAST BEGUN=Last.Begun,wide"}
}

const unlockHelp = `Removes the lock of a project from the deploy that holds it. That deploy stops at its next
step. A lock expires half a minute after its deploy last renewed it.`

func unlockCommand() cli.Row {
	return cli.Change{
		Verb: cli.Verb{Use: "unlock PROJECT", Short: "Remove the lock of a project",
			Long: unlockHelp, Refs: []cli.Refs{projectRefs}},
		Edit: func(args []string) (ipam.Edit, error) {
			return &ipam.UnlockDeploy{Project: args[0], Force: true}, nil
		},
	}
}

// projectRefs completes the names of projects that are being deployed.
var projectRefs = cli.NamesOf((*client.Client).Deploys, func(l *ipam.DeployLock) string { return l.Project })
