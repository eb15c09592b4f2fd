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

// Count is a number of addresses, exact up to 2^128. In JSON it is a number up to 2^53 and a decimal string above.
type Count struct{ *big.Int }

// NewCount is a count of n.
func NewCount(n int64) Count { return Count{big.NewInt(n)} }

// Text is the count as people read it: exact below 2^32, and from there as a power of two.
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

// TextOf is a count of what is free, of so many, as people read it. Of very many a part that nobody would count may be
// missing (1 in 1,000).
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

// MarshalJSON keeps what a JSON number can hold exactly, and writes the rest as a string.
func (n Count) MarshalJSON() ([]byte, error) {
	if n.Int == nil {
		return []byte("0"), nil
	}
	if n.BitLen() <= 53 {
		return []byte(n.String()), nil
	}
	return json.Marshal(n.String())
}

// plus is the sum of two numbers, of which none is changed.
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

// SpaceInfo is a space as it is shown.
type SpaceInfo struct {
	Space
	Subnets int    `json:"subnets"`
	Leases  uint64 `json:"leases"`          // addresses held in all of them
	Store   string `json:"store,omitempty"` // on a host of a cluster: HostStore or ClusterStore
}

// SubnetInfo is a subnet as it is shown, with what its network says. In its JSON the network is the name, as
// everywhere; that of the record, which has the id, is behind it.
type SubnetInfo struct {
	Subnet
	Network    string            `json:"network"` // its name
	NetworkID  ID                `json:"network_id"`
	Tags       map[string]string `json:"tags,omitempty"`
	Sticky     bool              `json:"sticky"`
	Quarantine string            `json:"quarantine,omitempty"`
	Remembered int               `json:"remembered"`
	Use        Use               `json:"use"`              // of its addresses
	Hosts      []string          `json:"hosts,omitempty"`  // of the cluster, with a Docker network on it, by name
	Chosen     []ID              `json:"chosen,omitempty"` // those of Attachments of which Docker named no subnet
}

// LeaseInfo is a lease or a memory as it is shown.
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
	// the name is a guess that the engine has not shown to be right yet
	Guessed         bool      `json:"guessed,omitempty"`
	Container       string    `json:"container_id,omitempty"` // its short id
	MAC             MAC       `json:"mac,omitzero"`
	Host            string    `json:"host"`
	Pool            ID        `json:"pool,omitzero"`
	Owner           string    `json:"owner,omitempty"` // whose the address is by a reservation
	Since           time.Time `json:"since"`
	Released        time.Time `json:"released,omitzero"`
	QuarantineUntil time.Time `json:"quarantine_until,omitzero"`
	DHCP            *DHCPInfo `json:"dhcp,omitempty"`    // what a DHCP server of its LAN gave
	SeenBy          *SeenBy   `json:"seen_by,omitempty"` // the container that has it, where a witness knows
}

// LeaseFilter chooses leases. Zero fields choose all that are held.
type LeaseFilter struct {
	Space      string       `query:"space" doc:"Only this space. An unknown space is an error."`
	Subnet     netip.Prefix `query:"subnet" doc:"Only the subnet with this prefix." example:"10.1.0.0/24"`
	Address    netip.Addr   `query:"address" doc:"Only this address." example:"10.1.0.7"`
	Remembered bool         `query:"remembered" doc:"Also released leases that Berth remembers."`
	AfterSpace string
	After      netip.Addr // only those behind this address of that space; zero: all
}

// EventFilter chooses events. Zero fields choose all.
type EventFilter struct {
	Since    time.Time  // not those before
	Before   time.Time  // only those before
	Networks []string   // only those of one of these, by the name that it had then, or by its id
	Verbs    []Verb     // only those of one of these
	After    uint64     // only those with a greater id
	First    int        // only so many, the earliest; 0: all
	Last     int        // only so many, the latest; 0: all
	Until    *EventMark // only those that it is behind; nil: all
}

// Has tells whether an event is of the time, the networks and the verbs that are asked for.
func (f *EventFilter) Has(e *Event) bool {
	return !e.Time.Before(f.Since) && (f.Before.IsZero() || e.Time.Before(f.Before)) &&
		(len(f.Networks) == 0 || slices.Contains(f.Networks, e.Network) ||
			slices.Contains(f.Networks, e.NetworkID.String())) &&
		(len(f.Verbs) == 0 || slices.Contains(f.Verbs, e.Verb))
}

// Totals counts what there is.
type Totals struct {
	Spaces   int    `json:"spaces"`
	Networks int    `json:"networks"`
	Subnets  int    `json:"subnets"`
	Leases   uint64 `json:"leases"`   // addresses held, gateways among them
	Reserved uint64 `json:"reserved"` // addresses that are reserved
	Docker   int    `json:"docker"`   // Docker networks
}

// NetworkFilter chooses networks. Zero fields choose all.
type NetworkFilter struct {
	Space string
	After string // only those whose records have a greater name
	Limit int    // only so many
	Brief bool   // without what is in them: no subnets, no static bands
}

// AddressFilter chooses reservations and taken addresses. Zero fields choose all. They come by space, subnet and
// address.
type AddressFilter struct {
	Network    string // name or id
	Owner      string
	AfterSpace string // with After: only those behind that address of that space
	After      netip.Addr
	Limit      int // only so many

	AfterNetwork, AfterOwner string // only owners of dynamic networks, behind that one of that network; empty: all
}

// NamedRange is addresses that are known by names: a subnet, or a range of elastic addresses, which has no network.
type NamedRange struct {
	ID        ID     `json:"id"`
	Space     string `json:"space,omitempty"`
	Network   string `json:"network,omitempty"` // what it is called to people
	NetworkID ID     `json:"network_id,omitzero"`
	Range     Range  `json:"range"`
	Elastic   bool   `json:"elastic,omitempty"`
}

// NamedAddress is an address of a NamedRange that is somebody's, in use or not.
type NamedAddress struct {
	In      ID         `json:"in"` // the NamedRange
	Address netip.Addr `json:"address"`
	Owner   string     `json:"owner"`          // whose it is: for whom it is reserved, else who has it
	Name    string     `json:"name,omitempty"` // of the container that has it, where that is another text
	Held    bool       `json:"held,omitempty"` // somebody has it now
}

// NameNews is one part of what is told of named addresses: the whole of a store at first, then what has changed there.
type NameNews struct {
	Store   string         `json:"store,omitempty"` // in which these are; empty: there is but one
	Whole   bool           `json:"whole,omitempty"` // all that was said before of that store is void
	Ranges  []NamedRange   `json:"ranges"`          // what was said before of their addresses is void
	Gone    []ID           `json:"gone,omitempty"`  // ranges that are there no more
	Set     []NamedAddress `json:"addresses"`
	Removed []NamedAddress `json:"removed,omitempty"` // In and Address alone
}

// Empty tells whether nothing is told.
func (n *NameNews) Empty() bool {
	return !n.Whole && len(n.Ranges) == 0 && len(n.Gone) == 0 && len(n.Set) == 0 && len(n.Removed) == 0
}
