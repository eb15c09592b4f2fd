package document

import (
	"context"

	"berth/internal/admin/client"
	"berth/internal/ipam"
)

// exportElastic is what there is of elastic addresses, for a document.
func exportElastic(ctx context.Context, c *client.Client) (*ipam.PlannedElastic, error) {
	accounts, err := c.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	ranges, err := c.ElasticRanges(ctx)
	if err != nil {
		return nil, err
	}
	addresses, err := c.Elastics(ctx, "")
	if err != nil {
		return nil, err
	}
	return ipam.PlanElastic(accounts, ranges, addresses), nil
}
