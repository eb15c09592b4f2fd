package deploy

import (
	"context"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/deploy/rollout"
)

// RemoveOrphan removes an orphaned volume of the engine at a URL, where confirm has nothing against it.
func RemoveOrphan(ctx context.Context, p *cli.Program, c *client.Client, host, volume string,
	confirm func(string) error) error {
	r := orphanRemoval{Run: &cli.Run{Context: ctx, Program: p, Client: c}, host: host}
	return r.remove(volume, confirm)
}

// Did is what a deploy says of itself at last that has told of some events.
func Did(p *cli.Program, plan *rollout.Plan, told ...rollout.Event) string {
	t := newReporter(p, plan, false)
	for _, e := range told {
		t.tell(e)
	}
	return t.did()
}
