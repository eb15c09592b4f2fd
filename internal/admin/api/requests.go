package api

import (
	"math"
	"net/netip"
	"time"

	"berth/internal/ipam"
)

// maxPage is the maximum number of items on a page of a list.
const maxPage = 1000

// Page selects a part of a list.
type Page struct {
	Most   int    `query:"limit" min:"1" max:"1000" default:"1000" doc:"Maximum number in one answer."`
	Cursor string `query:"after" doc:"The value of the field next of an earlier answer. The list continues there."`
}

// WholeOrPage is a Page of a list that is complete unless a page is requested.
type WholeOrPage struct {
	Most   int    `query:"limit" min:"1" max:"1000" doc:"Maximum number in one answer. Without limit and after, all."`
	Cursor string `query:"after" doc:"The value of the field next of an earlier answer. The list continues there."`
}

// Whole reports whether no page is requested.
func (p *WholeOrPage) Whole() bool { return p.Most == 0 && p.Cursor == "" }

// Limit returns the maximum number of items.
func (p *WholeOrPage) Limit() int {
	switch {
	case p.Whole():
		return math.MaxInt
	case p.Most == 0:
		return maxPage
	}
	return p.Most
}

// InSpace selects a space.
type InSpace struct {
	Space string `query:"space" doc:"Only this space. An unknown space is an error."`
}

// NetworksRequest requests networks.
type NetworksRequest struct {
	InSpace
	Page
}

// SubnetsRequest requests subnets.
type SubnetsRequest struct {
	InSpace
	WholeOrPage
}

// OfNetwork names a network.
type OfNetwork struct {
	Network string `path:"network" doc:"The network's name or id."`
}

// PartsRequest requests the contents of a network.
type PartsRequest struct {
	OfNetwork
	Page
}

// OwnedRequest requests what owners have, in one network or in all.
type OwnedRequest struct {
	OfNetwork
	Owner string `query:"owner" doc:"Only this owner."`
	Page
}

// EnvironmentRequest requests an owner's variables.
type EnvironmentRequest struct {
	OfNetwork
	Owner string `path:"owner" example:"shop%2Fweb%2F1" doc:"The owner, with slashes as %2F."`
}

// NextFreeRequest requests the addresses that would be given next.
type NextFreeRequest struct {
	OfNetwork
	ipam.FreeFilter
}

// FreeRequest requests free addresses.
type FreeRequest struct {
	NextFreeRequest
	Page
}

// ScanRequest requests a scan of a LAN.
type ScanRequest struct {
	OfNetwork
	Parent string `query:"parent" example:"eth0" doc:"The host's interface to the LAN. Default: the setting probe."`
}

// OfSubnet names a subnet.
type OfSubnet struct {
	ID ipam.ID `path:"id"`
}

// AvailableRequest requests addresses of a subnet.
type AvailableRequest struct {
	OfSubnet
	Limit int `query:"limit" min:"1" max:"1000" default:"50" doc:"Maximum number."`
}

// Trial selects a dry run.
type Trial struct {
	DryRun bool `query:"dry_run" doc:"Report what would change, and change nothing."`
}

// Change has the headers of a change of the plan, which openapi.yaml describes.
type Change struct {
	IfMatch string  `header:"If-Match"`
	Key     string  `header:"Idempotency-Key"`
	Deploy  ipam.ID `header:"Berth-Deploy"`
}

// TakeRequest takes the next addresses of a subnet.
type TakeRequest struct {
	OfSubnet
	Trial
	Change
	Body Takings `body:""`
}

// Takings are one or more requests for addresses.
type Takings []Taking

// Taking requests the next address of a subnet, or the next few.
type Taking struct {
	Owner string `json:"owner"`
	Count *int   `json:"count,omitempty"` // 1 if omitted
	Pool  string `json:"pool,omitempty"`  // only from pools of this name
}

// EditsRequest changes the plan.
type EditsRequest struct {
	Change
	Body Edits `body:""`
}

// Edits are changes of the plan. All of them are made, or none.
type Edits struct {
	Edits  []Edit `json:"edits"`             // at most 256, or more in a dry run
	DryRun bool   `json:"dry_run,omitempty"` // report what would change, and change nothing
	// with dry_run: continue after a refusal, and list all refusals in refused
	Refused bool `json:"all_refused,omitempty"`
}

// LeasesRequest requests leases.
type LeasesRequest struct {
	ipam.LeaseFilter
	Brief bool `query:"brief" doc:"Only the fields that identify a lease. This is faster."`
	WholeOrPage
}

// FindRequest requests the matches of a word.
type FindRequest struct {
	ipam.FindFilter
	Page
}

// EventsRequest requests events.
type EventsRequest struct {
	Since    time.Time       `query:"since" doc:"Only events since this time."`
	Until    time.Time       `query:"until" doc:"Only events before this time."`
	After    *ipam.EventMark `query:"after" doc:"Only events after this mark from an earlier answer of this host."`
	Last     int             `query:"last" min:"0" max:"10000" default:"100" doc:"Maximum number."`
	Follow   bool            `query:"follow" doc:"Stream new events, one JSON line each."`
	Networks []string        `query:"network" example:"net1,net2" doc:"Only these networks, by name."`
	Verbs    []string        `query:"verb" example:"lease.take,pool.*" doc:"Only these verbs or nouns."`
}

// ExportRequest requests the plan.
type ExportRequest struct {
	Network string `query:"network" doc:"Only this network, by name or id, planned or not."`
}

// ImportRequest adds the contents of a plan.
type ImportRequest struct {
	Trial
	Body ipam.Plan `body:""`
}

// HostRequest names a host.
type HostRequest struct {
	Name string `path:"name" doc:"The host's name."`
}

// NewsRequest sends news of an engine.
type NewsRequest struct {
	Host string          `query:"host" required:"true" doc:"The engine's host, named as in leases."`
	Body ipam.EngineNews `body:""`
}

// DeployRunsRequest requests the deploys of a project.
type DeployRunsRequest struct {
	Project string `path:"project"`
	Last    int    `query:"last" min:"1" max:"1000" default:"1000" doc:"Maximum number."`
}

// ElasticsRequest requests elastic addresses.
type ElasticsRequest struct {
	Account string `query:"account" doc:"Only this account."`
	Page
}

// ElasticRequest requests one elastic address.
type ElasticRequest struct {
	Address netip.Addr `path:"address"`
}

// EdgeNewsRequest requests what must be mapped.
type EdgeNewsRequest struct {
	Looks bool `query:"looks" doc:"Only the current mappings, without a session."`
}

// BackupRequest requests a backup of a state.
type BackupRequest struct {
	Store string `query:"store" enum:"own,shared" default:"own" doc:"The host's own store, or the shared one."`
}

// NamedToken names a token.
type NamedToken struct {
	Token string `path:"token" doc:"The token's name."`
}
