package deploy

import (
	"context"

	"berth/internal/admin/client"
	"berth/internal/cli"
)

// RemoveOrphan removes an orphaned volume of the engine at a URL, where confirm has nothing against it.
func RemoveOrphan(ctx context.Context, p *cli.Program, c *client.Client, host, volume string,
	confirm func(string) error) error {
	r := orphanRemoval{program: p, client: c, host: host}
	return r.remove(ctx, volume, confirm)
}
