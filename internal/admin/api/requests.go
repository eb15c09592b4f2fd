package api

import (
	"math"
	"net/netip"
	"time"

	"berth/internal/ipam"
)

// maxPage is how many items a page of a list has at most.
const maxPage = 1000

// Page says which part of a list is wanted.
type Page struct {
	Most   int    `query:"limit" min:"1" max:"1000" default:"1000" doc:"At most so many in one answer."`
	Cursor string `query:"after" doc:"The cursor that an answer gave as next; what follows it is wanted."`
}

// WholeOrPage is a Page of a list that is whole where none is asked for.
type WholeOrPage struct {
	Most   int    `query:"limit" min:"1" max:"1000" doc:"At most so many in one answer; without it and a cursor, all."`
	Cursor string `query:"after" doc:"The cursor that an answer gave as next; what follows it is wanted."`
}

// Whole tells whether no page is asked for.
func (p *WholeOrPage) Whole() bool { return p.Most == 0 && p.Cursor == "" }

// Limit is how many items are wanted.
func (p *WholeOrPage) Limit() int {
	switch {
	case p.Whole():
		return math.MaxInt
	case p.Most == 0:
		return maxPage
	}
	return p.Most
}

// InSpace chooses what is in a space.
type InSpace struct {
	Space string `query:"space" doc:"Only those of this space; one that is not there is a problem."`
}

// NetworksRequest asks for networks.
type NetworksRequest struct {
	InSpace
	Page
}

// SubnetsRequest asks for subnets.
type SubnetsRequest struct {
	InSpace
	WholeOrPage
}

// OfNetwork names a network.
type OfNetwork struct {
	Network string `path:"network" doc:"Its name or id."`
}

// PartsRequest asks for what is in a network.
type PartsRequest struct {
	OfNetwork
	Page
}

// OwnedRequest asks for what owners have, in a network or in all.
type OwnedRequest struct {
	OfNetwork
	Owner string `query:"owner" doc:"Only those of this owner."`
	Page
}

// EnvironmentRequest asks for an owner's variables.
type EnvironmentRequest struct {
	OfNetwork
	Owner string `path:"owner" example:"shop%2Fweb%2F1" doc:"The owner, with slashes as %2F."`
}

// NextFreeRequest asks what would be given next.
type NextFreeRequest struct {
	OfNetwork
	ipam.FreeFilter
}

// FreeRequest asks for what is free.
type FreeRequest struct {
	NextFreeRequest
	Page
}

// ScanRequest asks who is on a LAN.
type ScanRequest struct {
	OfNetwork
	Parent string `query:"parent" example:"eth0" doc:"The host's interface to the LAN; else that of its probes."`
}

// OfSubnet names a subnet.
type OfSubnet struct {
	ID ipam.ID `path:"id"`
}

// AvailableRequest asks for addresses of a subnet.
type AvailableRequest struct {
	OfSubnet
	Limit int `query:"limit" min:"1" max:"1000" default:"50" doc:"At most so many."`
}

// Trial says whether a change is only tried.
type Trial struct {
	DryRun bool `query:"dry_run" doc:"Tell what would change, and change nothing."`
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

// Takings are one or several.
type Takings []Taking

// Taking is what is wanted of a subnet: the next address, or the next few.
type Taking struct {
	Owner string `json:"owner"`
	Count *int   `json:"count,omitempty"` // how many; 1 where it is left out
	Pool  string `json:"pool,omitempty"`  // out of the pools of this name
}

// EditsRequest changes the plan.
type EditsRequest struct {
	Change
	Body Edits `body:""`
}

// Edits are changes of the plan, all or none of which are made.
type Edits struct {
	Edits   []Edit `json:"edits"`                 // at most 256 where they are to be made
	DryRun  bool   `json:"dry_run,omitempty"`     // tell what would change, and change nothing
	Refused bool   `json:"all_refused,omitempty"` // with dry_run: go on after a refusal, and tell in refused of all
}

// LeasesRequest asks for leases.
type LeasesRequest struct {
	ipam.LeaseFilter
	Brief bool `query:"brief" doc:"Only what each is called by, which is told sooner."`
	WholeOrPage
}

// FindRequest asks at what a word is found.
type FindRequest struct {
	ipam.FindFilter
	Page
}

// EventsRequest asks for events.
type EventsRequest struct {
	Since    time.Time       `query:"since" doc:"Only those since this time."`
	Until    time.Time       `query:"until" doc:"Only those before this time."`
	After    *ipam.EventMark `query:"after" doc:"Those behind the mark of an earlier answer of this host."`
	Last     int             `query:"last" min:"0" max:"10000" default:"100" doc:"At most so many."`
	Follow   bool            `query:"follow" doc:"Go on with each event as it is committed, a line of JSON for each."`
	Networks []string        `query:"network" example:"net1,net2" doc:"Of the networks of these names."`
	Verbs    []string        `query:"verb" example:"lease.take,pool.*" doc:"Of these verbs, or nouns."`
}

// ExportRequest asks for the plan.
type ExportRequest struct {
	Network string `query:"network" doc:"Only this one, by name or id, planned or not."`
}

// ImportRequest adds what a plan has.
type ImportRequest struct {
	Trial
	Body ipam.Plan `body:""`
}

// HostRequest names a host.
type HostRequest struct {
	Name string `path:"name" doc:"The host's name."`
}

// NewsRequest tells of an engine.
type NewsRequest struct {
	Host string          `query:"host" required:"true" doc:"Whose engine it is, as leases call the host."`
	Body ipam.EngineNews `body:""`
}

// DeployRunsRequest asks for the deploys of a project.
type DeployRunsRequest struct {
	Project string `path:"project"`
	Last    int    `query:"last" min:"1" max:"1000" default:"1000" doc:"At most so many."`
}

// ElasticsRequest asks for elastic addresses.
type ElasticsRequest struct {
	Account string `query:"account" doc:"Those of this account only."`
	Page
}

// ElasticRequest asks for one of them.
type ElasticRequest struct {
	Address netip.Addr `path:"address"`
}

// EdgeNewsRequest asks what is to be mapped.
type EdgeNewsRequest struct {
	Looks bool `query:"looks" doc:"Only the whole, to be looked at; no session begins."`
}

// BackupRequest asks for a state.
type BackupRequest struct {
	Store string `query:"store" enum:"own,shared" default:"own" doc:"Of the host's own, or of the shared one."`
}

// NamedToken names a token.
type NamedToken struct {
	Token string `path:"token" doc:"Its name."`
}
