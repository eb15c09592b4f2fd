package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// Import imports a plan, or with dryRun tells what it would come to. What is wrong with the plan is in the Problems of
// the *api.Problem that it is refused with. progress may be nil.
func (c *Client) Import(ctx context.Context, p ipam.Plan, dryRun bool,
	progress func(done, total int)) (ipam.ImportReport, error) {
	q := params{}
	if dryRun {
		q["dry_run"] = "true"
	}
	if p.Networks == nil {
		p.Networks = []ipam.PlannedNetwork{}
	}
	return c.importing(ctx, request{method: http.MethodPost, path: api.ImportPath, query: q, body: p,
		header: map[string]string{"Expect": "100-continue"}}, progress)
}

func (c *Client) importing(ctx context.Context, r request, progress func(done, total int)) (ipam.ImportReport, error) {
	res, err := c.do(ctx, r)
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
			return ipam.ImportReport{}, fmt.Errorf("the daemon on %s broke the import off: %w; once it runs again, "+
				"import again, and the rest is added", c.socket, sentence(err))
		case line.Problem != nil:
			return ipam.ImportReport{}, line.Problem
		case line.Report != nil:
			return *line.Report, nil
		case progress != nil:
			progress(line.Done, line.Total)
		}
	}
}

// interrupted is an import that its client has ended.
type interrupted struct{ why error }

func (e *interrupted) Error() string { return "interrupted; import again, and the rest is added" }
func (e *interrupted) Unwrap() error { return e.why }
