package admin

import (
	"context"
	"net/http"

	"berth/internal/ipam"
)

// afterwards are the headers of a request with a large body, which is sent when it is not refused.
func afterwards() map[string]string { return map[string]string{"Expect": "100-continue"} }

// Check has the server compare its records with what runs. The zero request changes nothing; any other is for admins. It takes
// as long as the engine does.
func (c *Client) Check(ctx context.Context, req ipam.CheckRequest) (report ipam.CheckReport, err error) {
	if req == (ipam.CheckRequest{}) {
		return report, c.call(ctx, http.MethodGet, checkPath, nil, nil, &report)
	}
	return report, c.fetch(ctx, request{method: http.MethodPost, path: checkPath, body: req, header: afterwards()}, &report)
}

// ShowEngine tells the server's witness what an engine runs.
func (c *Client) ShowEngine(ctx context.Context, view ipam.EngineView) error {
	var done struct{}
	return c.fetch(ctx, request{method: http.MethodPut, path: witnessPath, body: view, header: afterwards()}, &done)
}
