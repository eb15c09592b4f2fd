package cluster

import (
	"context"
	"iter"
	"net/netip"

	"berth/internal/ipam"
)

// What there is of elastic addresses is the cluster's, and in its store.

// elasticStore names it for a refusal.
const elasticStore = "what there is of elastic addresses"

// Elastics is Service.Elastics of the cluster's store.
func (e *Estate) Elastics(ctx context.Context, account string, after netip.Addr, limit int) ([]ipam.ElasticInfo,
	error) {
	s, err := e.cluster(elasticStore)
	if err != nil {
		return nil, err
	}
	return s.Elastics(ctx, account, after, limit)
}

// ElasticUse is Service.ElasticUse of the cluster's store.
func (e *Estate) ElasticUse(ctx context.Context) (ipam.ElasticUse, error) {
	s, err := e.cluster(elasticStore)
	if err != nil {
		return ipam.ElasticUse{}, err
	}
	return s.ElasticUse(ctx)
}

// SystemGaps is Service.SystemGaps of the cluster's store; none while that cannot be asked.
func (e *Estate) SystemGaps(ctx context.Context) ([]ipam.SystemGap, error) {
	s, err := e.cluster(elasticStore)
	if err != nil {
		return nil, nil //nolint:nilerr // whoever compares knows that the cluster's records are missing (Partial)
	}
	return s.SystemGaps(ctx)
}

// ElasticGuests is Service.ElasticGuests of the cluster's store; none while that cannot be asked.
func (e *Estate) ElasticGuests(ctx context.Context, guests []netip.Addr) ([]ipam.ElasticGuest, error) {
	s, err := e.cluster(elasticStore)
	if err != nil {
		return nil, nil //nolint:nilerr // as SystemGaps
	}
	return s.ElasticGuests(ctx, guests)
}

// Elastic is Service.Elastic of the cluster's store.
func (e *Estate) Elastic(ctx context.Context, addr netip.Addr) (ipam.ElasticInfo, error) {
	s, err := e.cluster(elasticStore)
	if err != nil {
		return ipam.ElasticInfo{}, err
	}
	return s.Elastic(ctx, addr)
}

// Accounts is Service.Accounts of the cluster's store.
func (e *Estate) Accounts(ctx context.Context) ([]ipam.AccountInfo, error) {
	s, err := e.cluster(elasticStore)
	if err != nil {
		return nil, err
	}
	return s.Accounts(ctx)
}

// ElasticRanges is Service.ElasticRanges of the cluster's store.
func (e *Estate) ElasticRanges(ctx context.Context) ([]ipam.ElasticRangeInfo, error) {
	s, err := e.cluster(elasticStore)
	if err != nil {
		return nil, err
	}
	return s.ElasticRanges(ctx)
}

// CheckElastic is Service.CheckElastic of the cluster's store.
func (e *Estate) CheckElastic(ctx context.Context) (ipam.ElasticCheck, error) {
	s, err := e.cluster(elasticStore)
	if err != nil {
		return ipam.ElasticCheck{}, err
	}
	return s.CheckElastic(ctx)
}

// Usage is Service.Usage of the cluster's store.
func (e *Estate) Usage(ctx context.Context, f ipam.UsageFilter) (ipam.UsageReport, error) {
	s, err := e.cluster(elasticStore)
	if err != nil {
		return ipam.UsageReport{}, err
	}
	return s.Usage(ctx, f)
}

// EdgeNews is Service.EdgeNews of the cluster's store.
func (e *Estate) EdgeNews(ctx context.Context, looks bool) iter.Seq2[ipam.EdgeNews, error] {
	s, err := e.cluster(elasticStore)
	if err != nil {
		return func(yield func(ipam.EdgeNews, error) bool) { yield(ipam.EdgeNews{}, err) }
	}
	return s.EdgeNews(ctx, looks)
}

// EdgeHosts is Service.EdgeHosts of the cluster's store; while that is away none is known.
func (e *Estate) EdgeHosts() []string {
	s, err := e.cluster(elasticStore)
	if err != nil {
		return nil
	}
	return s.EdgeHosts()
}

// ReportEdge is Service.ReportEdge in the cluster's store.
func (e *Estate) ReportEdge(ctx context.Context, r ipam.EdgeReport) error {
	s, err := e.cluster(elasticStore)
	if err != nil {
		return err
	}
	return s.ReportEdge(ctx, r)
}
