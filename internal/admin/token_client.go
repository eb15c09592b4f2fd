package admin

import (
	"context"
	"net/http"
	"net/url"
)

// Tokens lists the tokens by name.
func (c *Client) Tokens(ctx context.Context) ([]TokenInfo, error) {
	var list TokenList
	err := c.call(ctx, http.MethodGet, "/v1/tokens", nil, nil, &list)
	return list.Tokens, err
}

// CreateToken makes a token. The answer is the only one that has its text.
func (c *Client) CreateToken(ctx context.Context, req TokenRequest) (made NewToken, err error) {
	return made, c.call(ctx, http.MethodPost, "/v1/tokens", nil, req, &made)
}

// RemoveToken ends a token.
func (c *Client) RemoveToken(ctx context.Context, name string) (removed TokenInfo, err error) {
	return removed, c.call(ctx, http.MethodDelete, "/v1/tokens/"+url.PathEscape(name), nil, nil, &removed)
}
