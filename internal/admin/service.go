package admin

import (
	"context"
	"iter"
	"net/netip"

	pages "berth/internal/admin/page"
	"berth/internal/ipam"
)

// Service reads and changes who has which address. It is a service.Service or, if the host shares a store, a
// cluster.Service.
type Service interface {
	pages.Records // what the page reads

	// Current state.
	Spaces(context.Context) ([]ipam.SpaceInfo, error)
	Revision(ctx context.Context, network string) (uint64, error)
	Subnet(ctx context.Context, id ipam.ID) (info ipam.SubnetInfo, revision uint64, err error)
	NetworkOf(subnet ipam.ID) (ipam.ID, error)
	Available(ctx context.Context, subnet ipam.ID, limit int) ([]netip.Addr, error)
	Free(ctx context.Context, network string, f ipam.FreeFilter) ([]ipam.FreeRange, error)
	Taken(context.Context, ipam.AddressFilter) iter.Seq2[ipam.TakenAddress, error]
	Environment(ctx context.Context, network, owner string) ([]string, error)
	Names(context.Context) (ipam.NameNews, error)

	// Events.
	TailPages(context.Context, ipam.EventMark) iter.Seq2[ipam.EventPage, error]
	Note(context.Context, ipam.Event) error

	// Elastic addresses, and the edge of this host.
	ElasticRanges(context.Context) ([]ipam.ElasticRangeInfo, error)
	Accounts(context.Context) ([]ipam.AccountInfo, error)
	CheckElastic(context.Context) (ipam.ElasticCheck, error)
	Usage(context.Context, ipam.UsageFilter) (ipam.UsageReport, error)
	EdgeHosts() []string
	EdgeNews(ctx context.Context, looks bool) iter.Seq2[ipam.EdgeNews, error]
	ReportEdge(context.Context, ipam.EdgeReport) error

	// Deploys of projects.
	Deploys(context.Context) ([]ipam.DeployLock, error)
	Orphans(context.Context) ([]ipam.Orphan, error)
	DeployRuns(ctx context.Context, project string, limit int) ([]ipam.DeployRun, error)
	Workers(context.Context) ([]ipam.WorkerRun, error)

	// Whole plans.
	Export(ctx context.Context, network string) iter.Seq2[ipam.PlannedNetwork, error]
	Import(context.Context, ipam.Plan, ipam.ImportOptions) (ipam.ImportReport, error)

	// The store.
	Check(context.Context) ([]string, error)
	Waiting() int // releases, and uses of headroom, that a store could not write yet
}
