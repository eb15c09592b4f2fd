package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// Import imports a plan, or with dryRun reports what it would do. If the plan is refused, the *api.Problem lists all
// Problems of the plan. progress may be nil.
func (c *Client) Import(ctx context.Context, p ipam.Plan, dryRun bool,
	progress func(done, total int)) (ipam.ImportReport, error) {
	if p.Networks == nil {
		p.Networks = []ipam.PlannedNetwork{}
	}
	res, err := c.do(ctx, requestOf(api.PostImport, api.ImportRequest{Trial: api.Trial{DryRun: dryRun}, Body: p}))
	if err != nil && ctx.Err() != nil {
		return ipam.ImportReport{}, &interrupted{ctx.Err()}
	}
	if err != nil {
		return ipam.ImportReport{}, err
	}
	defer res.Body.Close()
	d := json.NewDecoder(bufio.NewReader(res.Body))
	for {
		var line api.ImportLine
		switch err := d.Decode(&line); {
		case err != nil && ctx.Err() != nil:
			return ipam.ImportReport{}, &interrupted{ctx.Err()}
		case err != nil:
			return ipam.ImportReport{}, fmt.Errorf("the daemon on %s stopped the import: %w; when it runs again, "+
				"import again to add the rest", c.socket, sentence(err))
		case line.Problem != nil:
			return ipam.ImportReport{}, line.Problem
		case line.Report != nil:
			return *line.Report, nil
		case progress != nil:
			progress(line.Done, line.Total)
		}
	}
}

// interrupted is the error of an import that its client stopped.
type interrupted struct{ why error }

func (e *interrupted) Error() string { return "interrupted; import again to add the rest" }
func (e *interrupted) Unwrap() error { return e.why }
