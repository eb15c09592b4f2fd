package deploy

import (
	"context"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/deploy/rollout"
)

// RemoveOrphan removes an orphaned volume from the engine at a URL, if confirm agrees.
func RemoveOrphan(ctx context.Context, p *cli.Program, c *client.Client, host, volume string,
	confirm func(string) error) error {
	r := orphanRemoval{Run: &cli.Run{Context: ctx, Program: p, Client: c}, host: host}
	return r.remove(volume, confirm)
}

// Did is the final summary of a deploy that has reported these events.
func Did(p *cli.Program, plan *rollout.Plan, told ...rollout.Event) string {
	t := newReporter(p, plan, false)
	for _, e := range told {
		t.tell(e)
	}
	return t.did()
}
