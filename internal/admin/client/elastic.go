package client

import (
	"context"
	"iter"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// Accounts lists the accounts by name.
func (c *Client) Accounts(ctx context.Context) ([]ipam.AccountInfo, error) {
	var list api.AccountList
	err := c.call(ctx, http.MethodGet, api.AccountsPath, nil, nil, &list)
	return list.Accounts, err
}

// ElasticRanges lists the ranges of elastic addresses.
func (c *Client) ElasticRanges(ctx context.Context) ([]ipam.ElasticRangeInfo, error) {
	var list api.ElasticRangeList
	err := c.call(ctx, http.MethodGet, api.RangesPath, nil, nil, &list)
	return list.Ranges, err
}

// Elastics lists the elastic addresses that are not free, of an account or where it is empty of all.
func (c *Client) Elastics(ctx context.Context, account string) ([]ipam.ElasticInfo, error) {
	return pages(ctx, c, api.ElasticPath, params{"account": account},
		func(l *api.ElasticList) ([]ipam.ElasticInfo, string) { return l.Addresses, l.Next })
}

// Elastic shows one elastic address, also a free one.
func (c *Client) Elastic(ctx context.Context, addr netip.Addr) (info ipam.ElasticInfo, err error) {
	path := api.ElasticPath + "/" + url.PathEscape(addr.String())
	return info, c.call(ctx, http.MethodGet, path, nil, nil, &info)
}

// CheckElastic tells what is wrong with elastic addresses.
func (c *Client) CheckElastic(ctx context.Context) (report ipam.CheckReport, err error) {
	return report, c.call(ctx, http.MethodGet, api.ElasticCheck, nil, nil, &report)
}

// Usage tells how long accounts had elastic addresses.
func (c *Client) Usage(ctx context.Context, f ipam.UsageFilter) (report ipam.UsageReport, err error) {
	p := params{}
	for name, t := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !t.IsZero() {
			p[name] = t.Format(time.RFC3339Nano)
		}
	}
	return report, c.call(ctx, http.MethodGet, api.UsagePath, p, nil, &report)
}

// EdgeStatus tells of the edges that the daemon tells what to map.
func (c *Client) EdgeStatus(ctx context.Context) (status ipam.EdgeStatus, err error) {
	return status, c.call(ctx, http.MethodGet, api.EdgeState, nil, nil, &status)
}

// EdgeNews yields what the edge of the daemon's host is to map: the whole first, then each change, until ctx ends or
// an error is yielded, which is the last. A daemon that ends is an error. looks: the whole alone is asked for, and
// nothing begins.
func (c *Client) EdgeNews(ctx context.Context, looks bool) iter.Seq2[ipam.EdgeNews, error] {
	path := api.EdgePath
	if looks {
		path += "?looks=true"
	}
	return followed[ipam.EdgeNews](ctx, c, request{method: http.MethodGet, path: path}, "tells what to map no more")
}

// LANAsks yields what the edge of the daemon's host is to do on a LAN, until ctx ends or an error is yielded, which is
// the last. A daemon that ends is an error.
func (c *Client) LANAsks(ctx context.Context) iter.Seq2[ipam.LANAsk, error] {
	return followed[ipam.LANAsk](ctx, c, request{method: http.MethodGet, path: api.EdgeLAN}, "asks of LANs no more")
}

// AnswerLAN tells the daemon what came of a question.
func (c *Client) AnswerLAN(ctx context.Context, a ipam.LANAnswer) error {
	var done map[string]string
	return c.call(ctx, http.MethodPost, api.EdgeLAN, nil, a, &done)
}

// reportPage is how many mappings one request tells of, so that its body stays well below what is read.
const reportPage = 2000

// ReportEdge tells the daemon what the edge of its host has applied.
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
		var done map[string]string
		if err := c.call(ctx, http.MethodPost, api.EdgePath, nil, part, &done); err != nil {
			return err
		}
		r.Whole = false
	}
	return nil
}
