package ipam

import (
	"encoding/json"
	"math/big"
	"net/netip"
	"time"
)

// Count is a number of addresses, exact up to 2^128. In JSON it is a number up to 2^53 and a decimal string above.
type Count struct{ *big.Int }

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

// SubnetInfo is a subnet as it is shown, with what its network says.
type SubnetInfo struct {
	Subnet
	NetworkName string            `json:"network_name"`
	Tags        map[string]string `json:"tags,omitempty"`
	Sticky      bool              `json:"sticky"`
	Quarantine  string            `json:"quarantine,omitempty"`
	Held        uint64            `json:"held"`
	Remembered  int               `json:"remembered"`
	Free        Count             `json:"free"`             // of the addresses in its pools
	Hosts       []string          `json:"hosts,omitempty"`  // of the cluster, with a Docker network on it, by name
	Chosen      []ID              `json:"chosen,omitempty"` // those of Attachments of which Docker named no subnet
}

// LeaseInfo is a lease or a memory as it is shown.
type LeaseInfo struct {
	ID      uint64       `json:"id"`
	Address netip.Addr   `json:"address"`
	Subnet  netip.Prefix `json:"subnet"`
	Space   string       `json:"space"`
	Network string       `json:"network"`
	Kind    Kind         `json:"kind"`
	State   string       `json:"state"` // held or remembered
	Name    string       `json:"name,omitempty"`
	// the name is a guess that the engine has not shown to be right yet
	Guessed  bool      `json:"guessed,omitempty"`
	MAC      MAC       `json:"mac,omitzero"`
	Host     string    `json:"host"`
	Pool     ID        `json:"pool,omitzero"`
	Owner    string    `json:"owner,omitempty"` // whose the address is by a reservation
	Since    time.Time `json:"since"`
	Released time.Time `json:"released,omitzero"`
	Until    time.Time `json:"quarantine_until,omitzero"`
	SeenBy   *SeenBy   `json:"seen_by,omitempty"` // the container that has it, where a witness knows
}

// LeaseFilter chooses leases. Zero fields choose all that are held.
type LeaseFilter struct {
	Space      string
	Subnet     netip.Prefix
	Remembered bool // memories too
	AfterSpace string
	After      netip.Addr // only those behind this address of that space; zero: all
}

// EventFilter chooses events.
type EventFilter struct {
	Since time.Time  // zero: from the first
	After uint64     // only those with a greater id
	First int        // only so many, the earliest; 0: all
	Last  int        // only so many, the latest; 0: all
	Until *EventMark // only those that it is behind; nil: all
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
	After string // only those with a greater name
	Limit int    // only so many
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
