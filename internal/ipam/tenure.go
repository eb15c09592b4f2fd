package ipam

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// WhoFilter chooses tenures: by exactly one of Address, MAC and Name.
type WhoFilter struct {
	Address netip.Addr `query:"address" doc:"The history of this address." example:"192.0.2.11"`
	MAC     MAC        `query:"mac" doc:"The history of this MAC, also as an owner."`
	Name    string     `query:"name" doc:"The history of this endpoint or owner." example:"shop/web/1"`
	Space   string     `query:"space" doc:"Only this space. An unknown space is an error."`
	At      time.Time  `query:"at" doc:"Only the holders and owners at this time."`
}

// What a tenure is of.
const (
	LeaseTenure       = "lease"
	ReservationTenure = "reservation"
	ElasticTenure     = "elastic" // of an association
)

// Tenure is the time for which somebody had, or owned, an address: from From on and before Until.
type Tenure struct {
	Space     string       `json:"space"`
	Network   string       `json:"network,omitempty"` // its name; none of an elastic address, or where it is no more
	NetworkID ID           `json:"network_id,omitzero"`
	Subnet    netip.Prefix `json:"subnet,omitzero"` // as it was last; none of an elastic address
	Address   netip.Addr   `json:"address"`
	What      string       `json:"what"` // lease, reservation or elastic
	Kind      string       `json:"kind,omitempty"`
	Lease     uint64       `json:"lease,omitempty"`
	Name      string       `json:"name,omitempty"` // the endpoint's, or the owner
	MAC       MAC          `json:"mac,omitzero"`
	Host      string       `json:"host,omitempty"`
	From      time.Time    `json:"from"`               // of an Early reservation that has ended: at the latest
	Until     time.Time    `json:"until,omitzero"`     // zero: to this day
	By        string       `json:"by,omitempty"`       // the actor who took or reserved it
	EndedBy   string       `json:"ended_by,omitempty"` // the actor who ended it
	Early     bool         `json:"early,omitempty"`    // it began before the events that are kept
	Note      string       `json:"note,omitempty"`     // as it was last
	Guest     netip.Addr   `json:"guest,omitzero"`     // to which an elastic address led
}

// The kinds of what is found, beside those of tenures.
const (
	FoundSpace     = "space"
	FoundNetwork   = "network"
	FoundSubnet    = "subnet"
	FoundPool      = "pool"
	FoundExclusion = "exclusion"
	FoundAddress   = "address" // taken for what is no container
	FoundFree      = "free"    // an address of a subnet that has no record
	FoundAccount   = "account"
	FoundRange     = "range" // of elastic addresses
	FoundHost      = "host"
)

// FoundKinds are all kinds of what is found, in the order of an answer but for those of an address, which stand
// together.
func FoundKinds() []string {
	return []string{FoundSpace, FoundNetwork, FoundSubnet, FoundPool, FoundExclusion, LeaseTenure, FoundAddress,
		ReservationTenure, FoundFree, ElasticTenure, FoundAccount, FoundRange, FoundHost}
}

// FindFilter says what is looked for. Word is an address, a prefix, a MAC, an id, or a part of a name, a note or a tag.
type FindFilter struct {
	Word  string    `query:"q" required:"true" doc:"The word, at most 256 characters." example:"shop_web_1"`
	Exact bool      `query:"exact" doc:"Only exact matches. Tags and notes are not searched."`
	Kinds []string  `query:"kind" doc:"Only these kinds, separated by commas." example:"lease,reservation"`
	Space string    `query:"space" doc:"Only this space. An unknown space is an error."`
	After FoundMark // only what stands behind it; zero: from the first
}

// Found is one thing that a word was found at.
type Found struct {
	Kind      string       `json:"kind"`
	What      string       `json:"what"` // its name, address, prefix or range
	ID        ID           `json:"id,omitzero"`
	Space     string       `json:"space,omitempty"`
	Network   string       `json:"network,omitempty"` // its name
	NetworkID ID           `json:"network_id,omitzero"`
	Subnet    netip.Prefix `json:"subnet,omitzero"`
	Address   netip.Addr   `json:"address,omitzero"`
	Name      string       `json:"name,omitempty"` // the endpoint's or the owner: whose it is
	MAC       MAC          `json:"mac,omitzero"`
	Host      string       `json:"host,omitempty"`
	State     string       `json:"state,omitempty"` // of a lease: held or remembered; of an elastic address: its own
	Why       []Match      `json:"why"`             // at least one
}

// Match is a text of a thing in which a word was found.
type Match struct {
	Field string `json:"field"` // such as name, owner, note or tag
	Text  string `json:"text"`  // all of it
}

// FoundMark is the place of what is found among all that is: the order of an answer.
type FoundMark struct {
	Group int
	Space string
	Addr  netip.Addr
	What  string
	Kind  int
}

// Compare orders two places.
func (m FoundMark) Compare(o FoundMark) int {
	return cmp.Or(cmp.Compare(m.Group, o.Group), cmp.Compare(m.Space, o.Space), m.Addr.Compare(o.Addr),
		cmp.Compare(m.What, o.What), cmp.Compare(m.Kind, o.Kind))
}

// FoundGroup is the group in which a kind stands: those of one address are one. Groups begin at 1, so that the zero
// mark is before all.
func FoundGroup(kind string) int {
	if kind == FoundAddress || kind == ReservationTenure {
		kind = LeaseTenure
	}
	return slices.Index(FoundKinds(), kind) + 1
}

// Mark is the place of what was found.
func (f *Found) Mark() FoundMark {
	m := FoundMark{Group: FoundGroup(f.Kind), Space: f.Space, Addr: f.Address,
		What: f.What + " " + f.Network + " " + f.Subnet.String(), Kind: slices.Index(FoundKinds(), f.Kind)}
	if f.Kind == ReservationTenure && !f.Address.IsValid() { // an owner in a dynamic network, behind all addresses
		m.Group++
	}
	return m
}
