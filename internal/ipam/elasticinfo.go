package ipam

import (
	"encoding/json"
	"net/netip"
	"time"
)

// The kinds of elastic addresses.
const (
	KindElastic = "elastic" // from a range of the cluster
	KindHost    = "host"    // from a range of one host
	KindSystem  = "system"  // from a range of one host, and held by a container while it runs
)

// ElasticInfo is an elastic address as shown to users. The JSON omits account fields for a free address, and
// guest fields for an address without an association.
type ElasticInfo struct {
	ID        ID           `json:"id"`
	Address   netip.Addr   `json:"address"`
	Region    string       `json:"region"` // the host whose store has it, or cluster
	State     ElasticState `json:"state"`
	Kind      string       `json:"kind"`
	HostRange string       `json:"host_range"` // the host whose range it is in; empty: the cluster's

	Account   string    `json:"account"`
	Domain    string    `json:"domain"`
	Allocated time.Time `json:"allocated"`
	ReleaseOn string    `json:"release_on"` // never, destroy or stop

	Associated bool         `json:"associated"`
	Host       string       `json:"host"` // where the guest runs, or last ran
	Instance   string       `json:"instance"`
	Interface  int          `json:"interface"`
	Network    string       `json:"network"` // its name
	NetworkID  ID           `json:"network_id"`
	Guest      netip.Addr   `json:"guest"`
	EgressOnly bool         `json:"egress_only"`
	Applied    *AppliedInfo `json:"applied,omitempty"` // nil: no edge has reported on it
	Revision   uint64       `json:"-"`                 // its last change; 0 while it is free
}

// AppliedInfo is an edge's report on an association.
type AppliedInfo struct {
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
	Error string    `json:"error"` // empty: it is in force
}

// shownElastic is the JSON form of ElasticInfo.
type shownElastic struct {
	ID        ID           `json:"id"`
	Address   netip.Addr   `json:"address"`
	Region    string       `json:"region"`
	State     ElasticState `json:"state"`
	Kind      string       `json:"kind"`
	HostRange string       `json:"host_range"`
	*shownAllocated
	Associated bool `json:"associated"`
	*shownAssociation
}

type shownAllocated struct {
	Account   string    `json:"account"`
	Domain    string    `json:"domain"`
	Allocated time.Time `json:"allocated"`
	ReleaseOn string    `json:"release_on"`
}

type shownAssociation struct {
	Host       string       `json:"host"`
	Instance   string       `json:"instance"`
	Interface  int          `json:"interface"`
	Network    string       `json:"network"`
	NetworkID  ID           `json:"network_id"`
	Guest      netip.Addr   `json:"guest"`
	EgressOnly bool         `json:"egress_only"`
	Applied    *AppliedInfo `json:"applied,omitempty"`
}

// MarshalJSON omits the fields that a free or unassociated address does not have.
func (e ElasticInfo) MarshalJSON() ([]byte, error) {
	shown := shownElastic{ID: e.ID, Address: e.Address, Region: e.Region, State: e.State, Kind: e.Kind,
		HostRange: e.HostRange, Associated: e.Associated}
	if e.State != ElasticFree {
		shown.shownAllocated = &shownAllocated{e.Account, e.Domain, e.Allocated, e.ReleaseOn}
	}
	if e.Associated {
		shown.shownAssociation = &shownAssociation{e.Host, e.Instance, e.Interface, e.Network, e.NetworkID, e.Guest,
			e.EgressOnly,
			e.Applied}
	}
	return json.Marshal(shown)
}

// AccountInfo is an account as shown to users.
type AccountInfo struct {
	Account
	Addresses int `json:"addresses"` // not free
}

// ElasticRangeInfo is a range of elastic addresses as shown to users.
type ElasticRangeInfo struct {
	ElasticRange
	Allocated  int `json:"allocated"`  // addresses that are not free
	Associated int `json:"associated"` // allocated addresses with an association
}

// SystemGap is a container that runs on a network in mode auto without any elastic address.
type SystemGap struct {
	Space, Network string
	Subnet         netip.Prefix
	Guest          netip.Addr
	Lease          uint64   // the lease of the guest address
	Instance       string   // the container's name
	Published      []string // the published ports that prevent it; none: no address was free
}

// ElasticGuest is a guest address to which an elastic address is mapped.
type ElasticGuest struct {
	Space, Network string
	Guest, Elastic netip.Addr
}

// EdgeMapping is one elastic address that a host's edge must map.
type EdgeMapping struct {
	Elastic     netip.Addr   `json:"elastic"`
	Guest       netip.Addr   `json:"guest"`
	Subnet      netip.Prefix `json:"subnet"` // of the guest
	EgressOnly  bool         `json:"egress_only,omitempty"`
	Staged      bool         `json:"staged,omitempty"` // the guest runs on another host: map outgoing traffic only
	Association uint64       `json:"association"`
	Lease       uint64       `json:"lease,omitempty"` // of the guest's address: another one at each start; 0: staged
	Grant       uint64       `json:"grant,omitempty"` // the grant that allows this host to map it; 0: none is needed
}

// EdgeRange is a range of elastic addresses as sent to a host's edge.
type EdgeRange struct {
	Range    Range    `json:"range"`
	Announce string   `json:"announce,omitempty"`
	TTL      Duration `json:"ttl"`
	OnCut    OnCut    `json:"on_cut"`
}

// EdgeNews is one line of the stream to a host's edge. The first line has everything; later ones have the changes.
type EdgeNews struct {
	Host    string        `json:"host"`
	Whole   bool          `json:"whole,omitempty"`  // discard all that was sent before
	Ranges  []EdgeRange   `json:"ranges,omitempty"` // all ranges, if Whole or Ranged is set
	Ranged  bool          `json:"ranged,omitempty"`
	Set     []EdgeMapping `json:"set,omitempty"`
	Removed []netip.Addr  `json:"removed,omitempty"`

	// Session is the host's session in a shared store. It is empty if the store is the host's own, so that no other
	// host takes over.
	Session string `json:"session,omitempty"`
	// Sent is when the request that last renewed the host's session was sent, counted from the host's start. Ranges
	// that withdraw on a cut answer for their TTL from then on. A line may have only this field.
	Sent time.Duration `json:"sent,omitempty"`
}

// Bare reports whether a line has nothing but Sent.
func (n *EdgeNews) Bare() bool {
	return !n.Whole && !n.Ranged && len(n.Set) == 0 && len(n.Removed) == 0
}

// EdgeReport is what a host's edge has applied. Addresses that it does not list keep their earlier report.
type EdgeReport struct {
	Whole     bool            `json:"whole,omitempty"` // the edge has nothing else
	Only      []netip.Addr    `json:"only,omitempty"`  // with Whole: further addresses, which other reports cover
	Applied   []EdgeApplied   `json:"applied,omitempty"`
	Withdrawn []EdgeWithdrawn `json:"withdrawn,omitempty"`
	Session   string          `json:"session,omitempty"` // the session of the news that caused the report
}

// EdgeWithdrawn is a mapping that is no longer in force.
type EdgeWithdrawn struct {
	Address netip.Addr `json:"address"`
	Grant   uint64     `json:"grant,omitempty"` // the grant of that mapping; a later grant is another mapping
}

// EdgeApplied is one mapping that is in force, or that failed with Error.
type EdgeApplied struct {
	Address     netip.Addr `json:"address"`
	Association uint64     `json:"association"`
	Guest       netip.Addr `json:"guest"`
	Grant       uint64     `json:"grant,omitempty"`
	Staged      bool       `json:"staged,omitempty"`
	Error       string     `json:"error,omitempty"`
}

// EdgeStatus describes the edges of the daemon's host and of the hosts that share its store.
type EdgeStatus struct {
	Host      string `json:"host"`
	Connected int    `json:"connected"`
	Enabled   bool   `json:"enabled"` // by the daemon's --elastic
	// Hosts lists the hosts whose edges have a session in the shared store, sorted by name.
	Hosts []string `json:"hosts,omitempty"`
}

// UsageFilter is the period for which usage is requested. A zero Since means as far back as known; a zero Until means
// now.
type UsageFilter struct {
	Since time.Time `query:"since" doc:"The start. Default: the oldest known time."`
	Until time.Time `query:"until" doc:"The end. Default: now."`
}

// UsageReport is how long accounts had elastic addresses.
type UsageReport struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// KnownSince is the start of the events that record releases. Addresses released earlier are missing from the
	// sums. It is zero if the events cover the whole period.
	KnownSince time.Time      `json:"known_since,omitzero"`
	Accounts   []AccountUsage `json:"accounts"` // by name
}

// AccountUsage is how long an account had elastic addresses. System addresses do not count, because nobody requested
// them.
type AccountUsage struct {
	Account   string  `json:"account"`
	Domain    string  `json:"domain"`    // empty: it has none, or no longer exists
	Addresses int     `json:"addresses"` // how many it had in the period, each counted once
	Hours     float64 `json:"hours"`     // address-hours in total
}

// ElasticCheck lists the problems that the records show for a host's elastic addresses (`berth elastic check`). It also
// has what the caller needs to check the edge and the devices.
type ElasticCheck struct {
	Host     string
	Findings []Finding
	Ranges   []EdgeRange // the ranges from which the host may have addresses
	Wanted   int         // addresses to be mapped on the host
	Unmapped int         // of these, how many the edge has not mapped
}

// PlanElastic converts accounts, ranges and addresses to the form of a document. It leaves out the default account if
// that has no record, system addresses, and addresses that are being released.
func PlanElastic(accounts []AccountInfo, ranges []ElasticRangeInfo, addresses []ElasticInfo) *PlannedElastic {
	p := &PlannedElastic{}
	for _, a := range accounts {
		if a.Created.IsZero() {
			continue // the default account, without a record
		}
		p.Accounts = append(p.Accounts, PlannedAccount{CreateAccount: CreateAccount{Account: a.Name,
			Domain: a.Domain, Quota: a.Quota, Owners: a.Owners}})
	}
	for i := range ranges {
		r := &ranges[i]
		p.Ranges = append(p.Ranges, PlannedElasticRange{AddElasticRange: AddElasticRange{Range: r.Range,
			Host: r.Host, Announce: r.Announce, TTL: &r.TTL, OnCut: string(r.OnCut)}})
	}
	for i := range addresses {
		a := &addresses[i]
		if a.Kind == KindSystem || a.State != ElasticAllocated {
			continue
		}
		one := PlannedElasticAddress{Address: a.Address, Account: a.Account}
		if a.ReleaseOn != ReleaseNever.String() {
			one.ReleaseOn = a.ReleaseOn
		}
		if a.Associated {
			one.Instance, one.Network, one.Guest, one.EgressOnly = a.Instance, a.Network, a.Guest, a.EgressOnly
		}
		p.Addresses = append(p.Addresses, one)
	}
	return p
}
