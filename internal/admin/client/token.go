package client

import (
	"context"

	"berth/internal/admin/api"
)

// Tokens lists the tokens by name.
func (c *Client) Tokens(ctx context.Context) ([]api.TokenInfo, error) {
	list, err := ask(ctx, c, api.GetTokens)
	return list.Tokens, err
}

// CreateToken makes a token. Only its answer has the text.
func (c *Client) CreateToken(ctx context.Context, req api.TokenRequest) (api.NewToken, error) {
	return call(ctx, c, api.PostTokens, api.Body[api.TokenRequest]{Body: req})
}

// RemoveToken removes a token.
func (c *Client) RemoveToken(ctx context.Context, name string) (api.TokenInfo, error) {
	return call(ctx, c, api.DeleteToken, api.NamedToken{Token: name})
}
