package ipam

import (
	"encoding/json"
	"net/netip"
	"time"
)

// The kinds of elastic addresses.
const (
	KindElastic = "elastic" // of a range of the cluster
	KindHost    = "host"    // of a range of one host
	KindSystem  = "system"  // of a range of one host, and a container's as long as that runs
)

// ElasticInfo is an elastic address as it is shown (CS-6). In JSON, what it is of an account is there only while it is
// not free, and what it is of a guest only while it is associated.
type ElasticInfo struct {
	ID        ID           `json:"id"`
	Address   netip.Addr   `json:"address"`
	Region    string       `json:"region"` // the host whose store it is in, or cluster
	State     ElasticState `json:"state"`
	Kind      string       `json:"kind"`
	HostRange string       `json:"host_range"` // the host whose range it is of; empty: the cluster's

	Account   string    `json:"account"`
	Domain    string    `json:"domain"`
	Allocated time.Time `json:"allocated"`
	ReleaseOn string    `json:"release_on"` // never, destroy or stop

	Associated bool         `json:"associated"`
	Host       string       `json:"host"` // where the guest runs, or ran last
	Instance   string       `json:"instance"`
	Interface  int          `json:"interface"`
	Network    string       `json:"network"` // its name
	NetworkID  ID           `json:"network_id"`
	Guest      netip.Addr   `json:"guest"`
	EgressOnly bool         `json:"egress_only"`
	Applied    *AppliedInfo `json:"applied,omitempty"` // nil: no edge has said anything of it
	Revision   uint64       `json:"-"`                 // of its last change; 0 while it is free
}

// AppliedInfo is what an edge has said of an association.
type AppliedInfo struct {
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
	Error string    `json:"error"` // empty: it is in force
}

// shownElastic is an ElasticInfo in JSON.
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

// MarshalJSON leaves out what a free address, or one that is mapped to nobody, does not have.
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

// AccountInfo is an account as it is shown.
type AccountInfo struct {
	Account
	Addresses int `json:"addresses"` // that are not free
}

// ElasticRangeInfo is a range of elastic addresses as it is shown.
type ElasticRangeInfo struct {
	ElasticRange
	Allocated  int `json:"allocated"`  // addresses that are not free
	Associated int `json:"associated"` // of these
}

// SystemGap is a container that runs on a network with the mode auto and has no system address, nor another.
type SystemGap struct {
	Space, Network string
	Subnet         netip.Prefix
	Guest          netip.Addr
	Lease          uint64   // of the guest address
	Instance       string   // the container's name
	Published      []string // it publishes these ports, which is why; none: no address was free
}

// ElasticGuest is a guest address to which an elastic one leads.
type ElasticGuest struct {
	Space, Network string
	Guest, Elastic netip.Addr
}

// EdgeMapping is one elastic address that a host's edge is to map.
type EdgeMapping struct {
	Elastic     netip.Addr   `json:"elastic"`
	Guest       netip.Addr   `json:"guest"`
	Subnet      netip.Prefix `json:"subnet"` // of the guest
	EgressOnly  bool         `json:"egress_only,omitempty"`
	Staged      bool         `json:"staged,omitempty"` // the guest does not run here: only what goes out
	Association uint64       `json:"association"`
	Grant       uint64       `json:"grant,omitempty"` // by which this host may have it; 0: none is needed
}

// EdgeRange is a range of elastic addresses as a host's edge knows it.
type EdgeRange struct {
	Range    Range    `json:"range"`
	Announce string   `json:"announce,omitempty"`
	TTL      Duration `json:"ttl"`
	OnCut    OnCut    `json:"on_cut"`
}

// EdgeNews is one line of what a host's edge is told: the whole at first, then what has changed.
type EdgeNews struct {
	Host    string        `json:"host"`
	Whole   bool          `json:"whole,omitempty"`  // all that was said before is void
	Ranges  []EdgeRange   `json:"ranges,omitempty"` // all of them, where Whole or Ranged
	Ranged  bool          `json:"ranged,omitempty"`
	Set     []EdgeMapping `json:"set,omitempty"`
	Removed []netip.Addr  `json:"removed,omitempty"`

	// Session is the host's in a shared store; empty where the store is its own, and nobody takes over.
	Session string `json:"session,omitempty"`
	// Sent is when the host's session was kept last: the moment before that was sent, since the host's start. Each
	// range that is withdrawn on a cut answers for its TTL from then on. A line may tell nothing but this.
	Sent time.Duration `json:"sent,omitempty"`
}

// Bare tells whether a line tells nothing but Sent.
func (n *EdgeNews) Bare() bool {
	return !n.Whole && !n.Ranged && len(n.Set) == 0 && len(n.Removed) == 0
}

// EdgeReport is what a host's edge has applied. What it does not name stays as it was said before.
type EdgeReport struct {
	Whole     bool            `json:"whole,omitempty"` // it has nothing but what stands here
	Only      []netip.Addr    `json:"only,omitempty"`  // with Whole: and these, of which it tells in other reports
	Applied   []EdgeApplied   `json:"applied,omitempty"`
	Withdrawn []EdgeWithdrawn `json:"withdrawn,omitempty"`
	Session   string          `json:"session,omitempty"` // of the news that led to it
}

// EdgeWithdrawn is one mapping that is in force no more.
type EdgeWithdrawn struct {
	Address netip.Addr `json:"address"`
	Grant   uint64     `json:"grant,omitempty"` // by which it was there: a later one is another
}

// EdgeApplied is one mapping that is in force, or with Error one that is not.
type EdgeApplied struct {
	Address     netip.Addr `json:"address"`
	Association uint64     `json:"association"`
	Guest       netip.Addr `json:"guest"`
	Grant       uint64     `json:"grant,omitempty"`
	Staged      bool       `json:"staged,omitempty"`
	Error       string     `json:"error,omitempty"`
}

// EdgeStatus tells of the edges of a daemon's host, and of those that share its store.
type EdgeStatus struct {
	Host      string `json:"host"`
	Connected int    `json:"connected"`
	Enabled   bool   `json:"enabled"` // by the daemon's --elastic
	// Hosts are those whose edges have a session in the shared store, by name.
	Hosts []string `json:"hosts,omitempty"`
}

// UsageFilter says of which time the usage of elastic addresses is asked for. A zero Since is as far back as is known,
// a zero Until now.
type UsageFilter struct {
	Since time.Time `query:"since" doc:"The start. Default: the oldest known time."`
	Until time.Time `query:"until" doc:"The end. Default: now."`
}

// UsageReport is how long accounts had elastic addresses (CS-10).
type UsageReport struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// KnownSince is since when the events tell what was released: of what was released before, nothing is in the sums.
	// Zero where that is all of the time that is asked for.
	KnownSince time.Time      `json:"known_since,omitzero"`
	Accounts   []AccountUsage `json:"accounts"` // by name
}

// AccountUsage is how long an account had elastic addresses in some time. System addresses do not count: nobody asked
// for them.
type AccountUsage struct {
	Account   string  `json:"account"`
	Domain    string  `json:"domain"`    // empty: it has none, or is no more
	Addresses int     `json:"addresses"` // how many it had in that time, each counted once
	Hours     float64 `json:"hours"`     // of address and hour, summed
}

// ElasticCheck is what the records say is wrong with the elastic addresses of a host (`berth elastic check`), and what
// who knows its edge and its devices needs to find the rest.
type ElasticCheck struct {
	Host     string
	Findings []Finding
	Ranges   []EdgeRange // of which the host may have addresses
	Wanted   int         // how many addresses are to be mapped on the host
	Unmapped int         // how many of them its edge has not mapped
}

// The kinds of findings that are of elastic addresses, and of nothing that a repair could put right.
const (
	EdgeAway        FindingKind = "edge_away"        // addresses are to be mapped on a host without an edge
	UnmappedElastic FindingKind = "unmapped_elastic" // it is to be mapped, and is not
	GuestGone       FindingKind = "guest_gone"       // an address is associated with a container that is no more
	MissingDevice   FindingKind = "missing_device"   // a range is announced at a device that is not there
	FirewallInWay   FindingKind = "firewall_in_way"  // the engine's firewall drops what comes in
	// a container that publishes ports has an elastic address, or has no system address for that reason (CS-13)
	PublishedElastic FindingKind = "published_elastic"
	NoSystemAddress  FindingKind = "no_system_address" // a container is to have one, and none is free (CS-7)
)

// ElasticKinds are the kinds of findings of elastic addresses, in the order of a report.
func ElasticKinds() []FindingKind {
	return []FindingKind{EdgeAway, UnmappedElastic, GuestGone, MissingDevice, FirewallInWay, PublishedElastic,
		NoSystemAddress}
}

// PlanElastic is how a document plans what there is of elastic addresses.
func PlanElastic(accounts []AccountInfo, ranges []ElasticRangeInfo, addresses []ElasticInfo) *PlannedElastic {
	p := &PlannedElastic{}
	for _, a := range accounts {
		if a.Created.IsZero() {
			continue // the one that is always there
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
