package ipam

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// WhoFilter selects tenures by exactly one of Address, MAC and Name.
type WhoFilter struct {
	Address netip.Addr `query:"address" doc:"The history of this address." example:"192.0.2.11"`
	MAC     MAC        `query:"mac" doc:"The history of this MAC, also as an owner."`
	Name    string     `query:"name" doc:"The history of this endpoint or owner." example:"shop/web/1"`
	Space   string     `query:"space" doc:"Only this space. An unknown space is an error."`
	At      time.Time  `query:"at" doc:"Only the holders and owners at this time."`
}

// What a tenure is about.
const (
	LeaseTenure       = "lease"
	ReservationTenure = "reservation"
	ElasticTenure     = "elastic" // an association
)

// Tenure is the time during which somebody held or owned an address. It includes From and ends before Until.
type Tenure struct {
	Space string `json:"space"`
	// its name; empty for an elastic address, or if the network no longer exists
	Network   string       `json:"network,omitempty"`
	NetworkID ID           `json:"network_id,omitzero"`
	Subnet    netip.Prefix `json:"subnet,omitzero"` // as it was last; zero for an elastic address
	Address   netip.Addr   `json:"address"`
	What      string       `json:"what"` // lease, reservation or elastic
	Kind      string       `json:"kind,omitempty"`
	Lease     uint64       `json:"lease,omitempty"`
	Name      string       `json:"name,omitempty"` // the endpoint or the owner
	MAC       MAC          `json:"mac,omitzero"`
	Host      string       `json:"host,omitempty"`
	From      time.Time    `json:"from"`               // for an ended reservation with Early: an upper bound
	Until     time.Time    `json:"until,omitzero"`     // zero: until now
	By        string       `json:"by,omitempty"`       // the actor who took or reserved it
	EndedBy   string       `json:"ended_by,omitempty"` // the actor who ended it
	Early     bool         `json:"early,omitempty"`    // it began before the oldest stored event
	Note      string       `json:"note,omitempty"`     // as it was last
	Guest     netip.Addr   `json:"guest,omitzero"`     // the guest of an elastic address
}

// The kinds of found objects, in addition to those of tenures.
const (
	FoundSpace     = "space"
	FoundNetwork   = "network"
	FoundSubnet    = "subnet"
	FoundPool      = "pool"
	FoundExclusion = "exclusion"
	FoundAddress   = "address" // external: held by a non-container
	FoundFree      = "free"    // an address of a subnet without a record
	FoundAccount   = "account"
	FoundRange     = "range" // of elastic addresses
	FoundHost      = "host"
)

// FoundKinds returns all kinds of found objects in the order of an answer. The kinds that are about one address are
// sorted together.
func FoundKinds() []string {
	return []string{FoundSpace, FoundNetwork, FoundSubnet, FoundPool, FoundExclusion, LeaseTenure, FoundAddress,
		ReservationTenure, FoundFree, ElasticTenure, FoundAccount, FoundRange, FoundHost}
}

// FindFilter is a search. Word is an address, a prefix, a MAC, an id, or part of a name, a note or a tag.
type FindFilter struct {
	Word  string    `query:"q" required:"true" doc:"The word, at most 256 characters." example:"shop_web_1"`
	Exact bool      `query:"exact" doc:"Only exact matches. Tags and notes are not searched."`
	Kinds []string  `query:"kind" doc:"Only these kinds, separated by commas." example:"lease,reservation"`
	Space string    `query:"space" doc:"Only this space. An unknown space is an error."`
	After FoundMark // only objects after this mark; zero: from the first
}

// Found is one object that matches a search.
type Found struct {
	Kind      string       `json:"kind"`
	What      string       `json:"what"` // its name, address, prefix or range
	ID        ID           `json:"id,omitzero"`
	Space     string       `json:"space,omitempty"`
	Network   string       `json:"network,omitempty"` // its name
	NetworkID ID           `json:"network_id,omitzero"`
	Subnet    netip.Prefix `json:"subnet,omitzero"`
	Address   netip.Addr   `json:"address,omitzero"`
	Name      string       `json:"name,omitempty"` // the endpoint or the owner
	MAC       MAC          `json:"mac,omitzero"`
	Host      string       `json:"host,omitempty"`
	// of a lease: held or remembered; of an elastic address: its ElasticState
	State string  `json:"state,omitempty"`
	Why   []Match `json:"why"` // at least one
}

// Match is a text of an object that contains the word.
type Match struct {
	Field string `json:"field"` // such as name, owner, note or tag
	Text  string `json:"text"`  // the whole text
}

// FoundMark is the position of an object in the order of an answer.
type FoundMark struct {
	Group int
	Space string
	Addr  netip.Addr
	What  string
	Kind  int
}

// Compare returns -1, 0 or 1 for the order of two positions.
func (m FoundMark) Compare(o FoundMark) int {
	return cmp.Or(cmp.Compare(m.Group, o.Group), cmp.Compare(m.Space, o.Space), m.Addr.Compare(o.Addr),
		cmp.Compare(m.What, o.What), cmp.Compare(m.Kind, o.Kind))
}

// FoundGroup returns the sort group of a kind. All kinds about one address share a group. Groups start at 1, so the
// zero mark comes first.
func FoundGroup(kind string) int {
	if kind == FoundAddress || kind == ReservationTenure {
		kind = LeaseTenure
	}
	return slices.Index(FoundKinds(), kind) + 1
}

// Mark returns the position of a found object.
func (f *Found) Mark() FoundMark {
	m := FoundMark{Group: FoundGroup(f.Kind), Space: f.Space, Addr: f.Address,
		What: f.What + " " + f.Network + " " + f.Subnet.String(), Kind: slices.Index(FoundKinds(), f.Kind)}
	if f.Kind == ReservationTenure && !f.Address.IsValid() { // an owner in a dynamic network, after all addresses
		m.Group++
	}
	return m
}
