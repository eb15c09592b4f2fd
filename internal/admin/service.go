package admin

import (
	"context"
	"iter"
	"net/netip"

	"berth/internal/ipam"
)

// Service reads and changes who has which address. It is a service.Service or, if the host shares a store, a
// cluster.Service.
type Service interface {
	// Current state.
	Totals(context.Context) (ipam.Totals, error)
	Spaces(context.Context) ([]ipam.SpaceInfo, error)
	Networks(context.Context, ipam.NetworkFilter) ([]ipam.NetworkInfo, error)
	Network(ctx context.Context, ref string) (ipam.NetworkInfo, error)
	Revision(ctx context.Context, network string) (uint64, error)
	Subnets(ctx context.Context, space string) ([]ipam.SubnetInfo, error)
	Subnet(ctx context.Context, id ipam.ID) (info ipam.SubnetInfo, revision uint64, err error)
	Layout(context.Context, ipam.ID, ipam.LayoutFilter) (ipam.Layout, error)
	NetworkOf(subnet ipam.ID) (ipam.ID, error)
	Available(ctx context.Context, subnet ipam.ID, limit int) ([]netip.Addr, error)
	Free(ctx context.Context, network string, f ipam.FreeFilter) ([]ipam.FreeRange, error)
	NextFree(ctx context.Context, network string, f ipam.FreeFilter) ([]ipam.FreeRange, error)
	Leases(context.Context, ipam.LeaseFilter) iter.Seq2[ipam.LeaseInfo, error]
	Reservations(context.Context, ipam.AddressFilter) iter.Seq2[ipam.ReservationInfo, error]
	Taken(context.Context, ipam.AddressFilter) iter.Seq2[ipam.TakenAddress, error]
	Environment(ctx context.Context, network, owner string) ([]string, error)
	Find(context.Context, ipam.FindFilter) iter.Seq2[ipam.Found, error]
	Hosts(context.Context) ([]ipam.HostInfo, error)
	Use(context.Context) ([]ipam.PoolUse, error)
	Names(context.Context) (ipam.NameNews, error)
	Partial() error

	// History.
	Who(context.Context, ipam.WhoFilter) ([]ipam.Tenure, error)
	Events(context.Context, ipam.EventFilter) ([]ipam.Event, error)
	LastEvent(context.Context) (ipam.EventMark, error)
	EventsBehind(ctx context.Context, after ipam.EventMark, n int, wanted func(*ipam.Event) bool) (ipam.EventPage,
		error)
	TailPages(context.Context, ipam.EventMark) iter.Seq2[ipam.EventPage, error]

	// Changes.
	Edit(context.Context, ipam.EditOptions, ...ipam.Edit) (ipam.Outcome, error)
	Note(context.Context, ipam.Event) error

	// Elastic addresses, and the edge of this host.
	Elastics(ctx context.Context, account string, after netip.Addr, limit int) ([]ipam.ElasticInfo, error)
	Elastic(context.Context, netip.Addr) (ipam.ElasticInfo, error)
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
}
