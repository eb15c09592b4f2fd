package client

import (
	"context"
	"net/http"

	"berth/internal/admin/api"
)

// Names tells whose which address is, of which names in DNS are made.
func (c *Client) Names(ctx context.Context) (all api.Names, err error) {
	return all, c.call(ctx, http.MethodGet, api.NamesPath, nil, nil, &all)
}
