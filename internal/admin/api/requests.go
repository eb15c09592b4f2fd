package api

import (
	"math"
	"net/netip"
	"time"

	"berth/internal/ipam"
)

// MaxPage is how many items a page of a list has at most.
const MaxPage = 1000

// Page says which part of a list is wanted.
type Page struct {
	// At most so many in one answer.
	Most int `query:"limit" min:"1" max:"1000" default:"1000"`
	// The cursor that an answer gave as next; what follows it is wanted.
	Cursor string `query:"after"`
}

// WholeOrPage is a Page of a list that is whole where none is asked for.
type WholeOrPage struct {
	// At most so many in one answer; without it and a cursor, all.
	Most int `query:"limit" min:"1" max:"1000"`
	// The cursor that an answer gave as next; what follows it is wanted.
	Cursor string `query:"after"`
}

// Whole tells whether no page is asked for.
func (p *WholeOrPage) Whole() bool { return p.Most == 0 && p.Cursor == "" }

// Limit is how many items are wanted.
func (p *WholeOrPage) Limit() int {
	switch {
	case p.Whole():
		return math.MaxInt
	case p.Most == 0:
		return MaxPage
	}
	return p.Most
}

// InSpace chooses what is in a space.
type InSpace struct {
	// Only those of this space; one that is not there is a problem.
	Space string `query:"space"`
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
	// Its name or id.
	Network string `path:"network"`
}

// PartsRequest asks for what is in a network.
type PartsRequest struct {
	OfNetwork
	Page
}

// OwnedRequest asks for what owners have, in a network or in all.
type OwnedRequest struct {
	OfNetwork
	// Only those of this owner.
	Owner string `query:"owner"`
	Page
}

// EnvironmentRequest asks for an owner's variables.
type EnvironmentRequest struct {
	OfNetwork
	// The owner, with slashes as %2F.
	Owner string `path:"owner" example:"shop%2Fweb%2F1"`
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
	// The host's interface to the LAN; by default that which the network is probed by.
	Parent string `query:"parent" example:"eth0"`
}

// OfSubnet names a subnet.
type OfSubnet struct {
	ID ipam.ID `path:"id"`
}

// AvailableRequest asks for addresses of a subnet.
type AvailableRequest struct {
	OfSubnet
	// At most so many.
	Limit int `query:"limit" min:"1" max:"1000" default:"50"`
}

// Trial says whether a change is only tried.
type Trial struct {
	// Tell what would change, and change nothing.
	DryRun bool `query:"dry_run"`
}

// Change has the headers of a change of the plan.
type Change struct {
	// The ETag of an answer about the network: the change is refused (412, changed) if the plan of the network has
	// changed since. Of several changes it counts for the network of the first. "*" is any.
	IfMatch string `header:"If-Match"`
	// Makes a change happen once: given again within 24 hours, with the same request by the same caller, it gets the
	// first answer, and the header Idempotency-Replayed. With another request it is refused (422, key_reused). A
	// refused change keeps no key, a dry run looks at none.
	Key string `header:"Idempotency-Key"`
	// The id of the deploy for which the changes are made. While a project is locked for one, what is reserved for its
	// owners is changed by that deploy alone.
	Deploy ipam.ID `header:"Berth-Deploy"`
}

// TakeRequest takes the next addresses of a subnet.
type TakeRequest struct {
	OfSubnet
	Trial
	Change
	Body Taking `body:""`
}

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
	// Of each lease only what it is called by, which is told sooner where there are many.
	Brief bool `query:"brief"`
	WholeOrPage
}

// FindRequest asks at what a word is found.
type FindRequest struct {
	ipam.FindFilter
	Page
}

// EventsRequest asks for events.
type EventsRequest struct {
	// Only those since this time.
	Since time.Time `query:"since"`
	// Only those before this time.
	Until time.Time `query:"until"`
	// Those behind a mark: the mark of an earlier answer of this host, or of a line of a stream. Whoever goes on from
	// mark to mark is told each event once and misses none, in whichever order hosts write them.
	After *ipam.EventMark `query:"after"`
	// At most so many, the latest; with after, the earliest behind it, and no bound where follow goes on from there.
	Last int `query:"last" min:"0" max:"10000" default:"100"`
	// Go on with each event as it is committed, a line of JSON for each, until the client goes away or the daemon ends.
	Follow bool `query:"follow"`
	// Only those of the networks of these names, with commas between them; as they were called then.
	Networks []string `query:"network" example:"net1,net2"`
	// Only those of these verbs, with commas between them; a noun, as in lease or lease.*, stands for all of its verbs.
	Verbs []string `query:"verb" example:"lease.take,pool.*"`
}

// ExportRequest asks for the plan.
type ExportRequest struct {
	// Only this one, by name or id, planned or not.
	Network string `query:"network"`
}

// ImportRequest adds what a plan has.
type ImportRequest struct {
	Trial
	Body ipam.Plan `body:""`
}

// HostRequest names a host.
type HostRequest struct {
	// The host's name.
	Name string `path:"name"`
}

// NewsRequest tells of an engine.
type NewsRequest struct {
	// Whose engine it is, as leases call the host.
	Host string          `query:"host" required:"true"`
	Body ipam.EngineNews `body:""`
}

// DeployRunsRequest asks for the deploys of a project.
type DeployRunsRequest struct {
	Project string `path:"project"`
	// At most so many.
	Last int `query:"last" min:"1" max:"1000" default:"1000"`
}

// ElasticsRequest asks for elastic addresses.
type ElasticsRequest struct {
	// Those of this account only.
	Account string `query:"account"`
	Page
}

// ElasticRequest asks for one of them.
type ElasticRequest struct {
	Address netip.Addr `path:"address"`
}

// EdgeNewsRequest asks what is to be mapped.
type EdgeNewsRequest struct {
	// Only the whole, to be looked at; no session begins.
	Looks bool `query:"looks"`
}

// BackupRequest asks for a state.
type BackupRequest struct {
	// The host's own store, or the one that it shares with others; where it shares none that is refused with
	// no_cluster.
	Store string `query:"store" enum:"own,shared" default:"own"`
}

// NamedToken names a token.
type NamedToken struct {
	// Its name.
	Token string `path:"token"`
}
