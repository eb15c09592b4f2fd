package client

import (
	"context"
	"net/http"
	"net/url"

	"berth/internal/admin/api"
)

// Tokens lists the tokens by name.
func (c *Client) Tokens(ctx context.Context) ([]api.TokenInfo, error) {
	var list api.TokenList
	err := c.call(ctx, http.MethodGet, "/v1/tokens", nil, nil, &list)
	return list.Tokens, err
}

// CreateToken makes a token. The answer is the only one that has its text.
func (c *Client) CreateToken(ctx context.Context, req api.TokenRequest) (made api.NewToken, err error) {
	return made, c.call(ctx, http.MethodPost, "/v1/tokens", nil, req, &made)
}

// RemoveToken ends a token.
func (c *Client) RemoveToken(ctx context.Context, name string) (removed api.TokenInfo, err error) {
	return removed, c.call(ctx, http.MethodDelete, "/v1/tokens/"+url.PathEscape(name), nil, nil, &removed)
}
