package ipam

import (
	"encoding/json"
	"math"
	"math/big"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// Count is a number of addresses, exact up to 2^128. In JSON it is a number below 2^53, and a decimal string from there
// on.
type Count struct{ *big.Int }

// NewCount returns a count of n.
func NewCount(n int64) Count { return Count{big.NewInt(n)} }

// Text returns the count for people: exact below 2^32, and a power of two from there on.
func (n Count) Text() string {
	switch {
	case n.Int == nil:
		return "0"
	case n.BitLen() <= 32:
		return n.String()
	}
	f, _ := new(big.Float).SetInt(n.Int).Float64()
	return "2^" + strconv.FormatFloat(math.Round(10*math.Log2(f))/10, 'f', -1, 64)
}

// TextOf returns a count of free addresses out of size, for people. If a large subnet lacks at most 1 in 1,000, it
// returns "practically all".
func (n Count) TextOf(size Count) string {
	if n.Int == nil || size.Int == nil || n.BitLen() <= 32 {
		return n.Text()
	}
	gone := new(big.Int).Sub(size.Int, n.Int)
	if gone.Mul(gone, big.NewInt(1000)).Cmp(size.Int) > 0 {
		return n.Text()
	}
	return "practically all"
}

// MarshalJSON writes a JSON number if that is exact, otherwise a string.
func (n Count) MarshalJSON() ([]byte, error) {
	if n.Int == nil {
		return []byte("0"), nil
	}
	if n.BitLen() <= 53 {
		return []byte(n.String()), nil
	}
	return json.Marshal(n.String())
}

// plus returns the sum of two counts without changing either.
func (n Count) plus(other Count) Count {
	sum := new(big.Int)
	for _, one := range []Count{n, other} {
		if one.Int != nil {
			sum.Add(sum, one.Int)
		}
	}
	return Count{Int: sum}
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (n *Count) UnmarshalJSON(b []byte) error {
	if len(b) > 1 && b[0] == '"' {
		b = b[1 : len(b)-1]
	}
	n.Int = new(big.Int)
	return n.Int.UnmarshalText(b)
}

// SpaceInfo is a space as shown to users.
type SpaceInfo struct {
	Space
	Subnets int    `json:"subnets"`
	Leases  uint64 `json:"leases"`          // addresses held in its subnets
	Store   string `json:"store,omitempty"` // on a host of a cluster: HostStore or ClusterStore
}

// SubnetInfo is a subnet as shown to users, with the settings of its network. In its JSON, network is the network's
// name; it hides the record's field of that name, which is an id.
type SubnetInfo struct {
	Subnet
	Network    string            `json:"network"` // its name
	NetworkID  ID                `json:"network_id"`
	Tags       map[string]string `json:"tags,omitempty"`
	Sticky     bool              `json:"sticky"`
	Quarantine Duration          `json:"quarantine,omitempty"`
	Remembered int               `json:"remembered"`
	Use        Use               `json:"use"`              // of its addresses
	Hosts      []string          `json:"hosts,omitempty"`  // cluster hosts with a Docker network on it, by name
	Chosen     []ID              `json:"chosen,omitempty"` // the Attachments for which Docker named no subnet
}

// LeaseInfo is a lease or a memory as shown to users.
type LeaseInfo struct {
	ID        uint64       `json:"id"`
	Address   netip.Addr   `json:"address"`
	Subnet    netip.Prefix `json:"subnet"`
	Space     string       `json:"space"`
	Network   string       `json:"network"` // its name
	NetworkID ID           `json:"network_id"`
	Kind      Kind         `json:"kind"`
	State     string       `json:"state"` // held or remembered
	Name      string       `json:"name,omitempty"`
	// the name is a guess that the engine has not confirmed yet
	Guessed         bool      `json:"guessed,omitempty"`
	Container       string    `json:"container_id,omitempty"` // its short id
	MAC             MAC       `json:"mac,omitzero"`
	Host            string    `json:"host"`
	Pool            ID        `json:"pool,omitzero"`
	Owner           string    `json:"owner,omitempty"` // the owner by reservation
	Since           time.Time `json:"since"`
	Released        time.Time `json:"released,omitzero"`
	QuarantineUntil time.Time `json:"quarantine_until,omitzero"`
	// the DHCP lease of the address, if a server of its LAN gave it
	DHCP   *DHCPInfo `json:"dhcp,omitempty"`
	SeenBy *SeenBy   `json:"seen_by,omitempty"` // the container that has it, if a witness knows
}

// LeaseFilter selects leases. The zero filter selects all held ones.
type LeaseFilter struct {
	Space      string       `query:"space" doc:"Only this space. An unknown space is an error."`
	Subnet     netip.Prefix `query:"subnet" doc:"Only the subnet with this prefix." example:"10.1.0.0/24"`
	Address    netip.Addr   `query:"address" doc:"Only this address." example:"10.1.0.7"`
	Remembered bool         `query:"remembered" doc:"Also released leases that Berth remembers."`
	AfterSpace string
	After      netip.Addr // only addresses after this one in AfterSpace; zero: all
}

// EventFilter selects events. The zero filter selects all.
type EventFilter struct {
	Since    time.Time  // not earlier than this
	Before   time.Time  // earlier than this
	Networks []string   // in one of these networks, by the name at that time or by id
	Verbs    []Verb     // with one of these verbs
	After    uint64     // with a greater id
	First    int        // at most this many, the earliest; 0: all
	Last     int        // at most this many, the latest; 0: all
	Until    *EventMark // up to this mark; nil: all
}

// Has reports whether an event matches the times, networks and verbs of the filter. It ignores the other fields.
func (f *EventFilter) Has(e *Event) bool {
	return !e.Time.Before(f.Since) && (f.Before.IsZero() || e.Time.Before(f.Before)) &&
		(len(f.Networks) == 0 || slices.Contains(f.Networks, e.Network) ||
			slices.Contains(f.Networks, e.NetworkID.String())) &&
		(len(f.Verbs) == 0 || slices.Contains(f.Verbs, e.Verb))
}

// Totals counts the objects in a store.
type Totals struct {
	Spaces   int    `json:"spaces"`
	Networks int    `json:"networks"`
	Subnets  int    `json:"subnets"`
	Leases   uint64 `json:"leases"`   // addresses held, including gateways
	Reserved uint64 `json:"reserved"` // reserved addresses that nobody holds
	// all reserved addresses, held or not
	Reservations uint64 `json:"reservations"`
	Docker       int    `json:"docker"` // Docker networks
}

// NetworkFilter selects networks. The zero filter selects all.
type NetworkFilter struct {
	Space string
	After string // only records with a greater name
	Limit int    // at most this many
	Brief bool   // without subnets and static bands
}

// AddressFilter selects reservations and external addresses. The zero filter selects all. The order is space, subnet,
// address.
type AddressFilter struct {
	Network    string // name or id
	Owner      string
	AfterSpace string // with After: only addresses after that one in this space
	After      netip.Addr
	Limit      int // at most this many

	AfterNetwork, AfterOwner string // only owners in dynamic networks, after this owner of this network; empty: all
}

// NamedRange is a range whose addresses have names: a subnet, or a range of elastic addresses. The latter has no
// network.
type NamedRange struct {
	ID        ID     `json:"id"`
	Space     string `json:"space,omitempty"`
	Network   string `json:"network,omitempty"` // its name for people
	NetworkID ID     `json:"network_id,omitzero"`
	Range     Range  `json:"range"`
	Elastic   bool   `json:"elastic,omitempty"`
}

// NamedAddress is an address of a NamedRange that has an owner, held or not.
type NamedAddress struct {
	In      ID         `json:"in"` // the NamedRange
	Address netip.Addr `json:"address"`
	Owner   string     `json:"owner"`          // the owner by reservation, otherwise the holder
	Name    string     `json:"name,omitempty"` // the holding container's name, if it differs
	Held    bool       `json:"held,omitempty"` // somebody holds it now
}

// NameNews is one part of the stream of named addresses. A store's first part has everything; later ones have the
// changes.
type NameNews struct {
	Store   string         `json:"store,omitempty"` // the store of these addresses; empty: there is only one
	Whole   bool           `json:"whole,omitempty"` // discard all that was sent before for this store
	Ranges  []NamedRange   `json:"ranges"`          // discard what was sent before for addresses in these ranges
	Gone    []ID           `json:"gone,omitempty"`  // ranges that no longer exist
	Set     []NamedAddress `json:"addresses"`
	Removed []NamedAddress `json:"removed,omitempty"` // only In and Address are set
}

// Empty reports whether the news has nothing.
func (n *NameNews) Empty() bool {
	return !n.Whole && len(n.Ranges) == 0 && len(n.Gone) == 0 && len(n.Set) == 0 && len(n.Removed) == 0
}
