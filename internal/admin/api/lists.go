package api

import (
	"net/netip"

	"berth/internal/ipam"
)

// SpaceList is the answer of GET /v1/spaces.
type SpaceList struct {
	Spaces []ipam.SpaceInfo `json:"spaces"`
}

// SubnetList is the answer of GET /v1/subnets.
type SubnetList struct {
	Subnets []ipam.SubnetInfo `json:"subnets"`
	Next    string            `json:"next,omitempty"` // the cursor of the next page; none behind the last
}

// LeaseList is the answer of GET /v1/leases.
type LeaseList struct {
	Leases []ipam.LeaseInfo `json:"leases"`
	Next   string           `json:"next,omitempty"`
}

// TenureList is the answer of GET /v1/who.
type TenureList struct {
	Tenures []ipam.Tenure `json:"tenures"` // the earliest first
}

// EventList is the answer of GET /v1/events without follow.
type EventList struct {
	Events []ipam.Event `json:"events"` // the oldest first
	More   bool         `json:"more"`   // there may be others that the filter chooses and `last` left out
	// behind all that were looked at: what comes later, and nothing else, is behind it
	Mark ipam.EventMark `json:"mark"`
}

// NetworkList is the answer of GET /v1/networks.
type NetworkList struct {
	Networks []ipam.NetworkInfo `json:"networks"`
	Next     string             `json:"next,omitempty"`
}

// ReservationList is the answer of GET /v1/reservations, and of the reservations of a network.
type ReservationList struct {
	Reservations []ipam.ReservationInfo `json:"reservations"`
	Next         string                 `json:"next,omitempty"`
}

// AddressList is the answer of GET /v1/addresses, and of the addresses of a network.
type AddressList struct {
	Addresses []ipam.TakenAddress `json:"addresses"`
	Next      string              `json:"next,omitempty"`
}

// VariableList is the answer of GET /v1/networks/{network}/env/{owner}.
type VariableList struct {
	Variables []string `json:"variables"` // KEY=VALUE
}

// SubnetPlanList is the answer of GET /v1/networks/{network}/subnets.
type SubnetPlanList struct {
	Subnets []ipam.SubnetPlan `json:"subnets"`
	Next    string            `json:"next,omitempty"`
}

// PoolEntry is a pool with the subnet that it is in.
type PoolEntry struct {
	Subnet netip.Prefix `json:"subnet"`
	ipam.PoolPlan
}

// PoolList is the answer of GET /v1/networks/{network}/pools.
type PoolList struct {
	Pools []PoolEntry `json:"pools"`
	Next  string      `json:"next,omitempty"`
}

// ExclusionEntry is an exclusion with the subnet that it is in.
type ExclusionEntry struct {
	Subnet netip.Prefix `json:"subnet"`
	ipam.ExclusionPlan
}

// ExclusionList is the answer of GET /v1/networks/{network}/exclusions.
type ExclusionList struct {
	Exclusions []ExclusionEntry `json:"exclusions"`
	Next       string           `json:"next,omitempty"`
}

// AvailableList is the answer of GET /v1/subnets/{id}/available-ips.
type AvailableList struct {
	Addresses []netip.Addr `json:"addresses"`
}

// ImportLine is a line of the answer of POST /v1/import, and of its resume and undo: how far it is, and at the end what
// it came to, or why it stopped.
type ImportLine struct {
	Done    int                `json:"done,omitempty"`
	Total   int                `json:"total,omitempty"`
	Report  *ipam.ImportReport `json:"report,omitempty"`
	Problem *Problem           `json:"problem,omitempty"`
}

// HostList is the answer of GET /v1/hosts.
type HostList struct {
	Hosts []ipam.HostInfo `json:"hosts"`
}
