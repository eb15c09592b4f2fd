package client

import (
	"context"
	"iter"
	"net/netip"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// Accounts lists the accounts by name.
func (c *Client) Accounts(ctx context.Context) ([]ipam.AccountInfo, error) {
	list, err := ask(ctx, c, api.GetAccounts)
	return list.Accounts, err
}

// ElasticRanges lists the ranges of elastic addresses.
func (c *Client) ElasticRanges(ctx context.Context) ([]ipam.ElasticRangeInfo, error) {
	list, err := ask(ctx, c, api.GetRanges)
	return list.Ranges, err
}

// Elastics lists the elastic addresses of an account that are not free. An empty account means all.
func (c *Client) Elastics(ctx context.Context, account string) ([]ipam.ElasticInfo, error) {
	return all(ctx, c, api.GetElastics, api.ElasticsRequest{Account: account},
		func(l api.ElasticList) []ipam.ElasticInfo { return l.Addresses })
}

// Elastic shows one elastic address, even a free one.
func (c *Client) Elastic(ctx context.Context, addr netip.Addr) (ipam.ElasticInfo, error) {
	return call(ctx, c, api.GetElastic, api.ElasticRequest{Address: addr})
}

// CheckElastic returns the findings about elastic addresses.
func (c *Client) CheckElastic(ctx context.Context) (ipam.CheckReport, error) {
	return ask(ctx, c, api.GetElasticCheck)
}

// Usage returns how long accounts had elastic addresses.
func (c *Client) Usage(ctx context.Context, f ipam.UsageFilter) (ipam.UsageReport, error) {
	return call(ctx, c, api.GetUsage, f)
}

// EdgeStatus returns the state of the edges that are connected to the daemon.
func (c *Client) EdgeStatus(ctx context.Context) (ipam.EdgeStatus, error) {
	return ask(ctx, c, api.GetEdgeStatus)
}

// EdgeNews yields what the edge of the daemon's host must map: first everything, then each change. It ends with ctx or
// after it has yielded an error. A daemon that ends is an error. looks requests only the current state, without a
// session.
func (c *Client) EdgeNews(ctx context.Context, looks bool) iter.Seq2[ipam.EdgeNews, error] {
	return followed[ipam.EdgeNews](ctx, c, requestOf(api.GetEdge, api.EdgeNewsRequest{Looks: looks}),
		"stopped sending mappings")
}

// LANAsks yields what the edge of the daemon's host must do on a LAN. It ends with ctx or after it has yielded an
// error. A daemon that ends is an error.
func (c *Client) LANAsks(ctx context.Context) iter.Seq2[ipam.LANAsk, error] {
	return followed[ipam.LANAsk](ctx, c, requestOf(api.GetLAN, api.None{}), "stopped asking about LANs")
}

// AnswerLAN sends the answer to a question.
func (c *Client) AnswerLAN(ctx context.Context, a ipam.LANAnswer) error {
	_, err := call(ctx, c, api.PostLAN, api.Body[ipam.LANAnswer]{Body: a})
	return err
}

// reportPage is the maximum number of mappings in one request, which keeps its body well below the limit.
const reportPage = 2000

// ReportEdge reports what the edge of the daemon's host has applied.
func (c *Client) ReportEdge(ctx context.Context, r ipam.EdgeReport) error {
	for first := true; first || len(r.Applied)+len(r.Withdrawn) > 0; first = false {
		part := ipam.EdgeReport{Whole: r.Whole, Applied: r.Applied[:min(len(r.Applied), reportPage)],
			Withdrawn: r.Withdrawn[:min(len(r.Withdrawn), reportPage)], Session: r.Session}
		for _, later := range r.Applied[len(part.Applied):] {
			if r.Whole {
				part.Only = append(part.Only, later.Address)
			}
		}
		r.Applied, r.Withdrawn = r.Applied[len(part.Applied):], r.Withdrawn[len(part.Withdrawn):]
		if _, err := call(ctx, c, api.PostEdge, api.Body[ipam.EdgeReport]{Body: part}); err != nil {
			return err
		}
		r.Whole = false
	}
	return nil
}
