package api

import (
	"net/netip"
	"time"

	"berth/internal/ipam"
)

// Paged is the last part of a list in pages.
type Paged struct {
	Next string `json:"next,omitempty"` // the cursor of the next page; empty on the last page
}

// NextPage returns the cursor of the next page.
func (p Paged) NextPage() string { return p.Next }

// Done is the answer of an operation without a result.
type Done struct {
	Status string `json:"status"` // always ok
}

// OK returns that answer.
func OK() Done { return Done{"ok"} }

// SpaceList is the answer of GET /v1/spaces.
type SpaceList struct {
	Spaces []ipam.SpaceInfo `json:"spaces"`
}

// SubnetList is the answer of GET /v1/subnets.
type SubnetList struct {
	Subnets []ipam.SubnetInfo `json:"subnets"`
	Paged
}

// LeaseList is the answer of GET /v1/leases.
type LeaseList = LeasesAs[ipam.LeaseInfo]

// LeasesAs is that answer with complete or brief leases.
type LeasesAs[T any] struct {
	Leases []T `json:"leases"`
	Paged
}

// BriefLease has the fields that identify a lease, the answer of GET /v1/leases?brief=true.
type BriefLease struct {
	Address netip.Addr `json:"address"`
	Space   string     `json:"space"`
	Network string     `json:"network"` // its name
}

// TenureList is the answer of GET /v1/who.
type TenureList struct {
	Tenures []ipam.Tenure `json:"tenures"` // the earliest first
}

// FoundList is the answer of GET /v1/find.
type FoundList struct {
	Found []ipam.Found `json:"found"`
	Paged
}

// EventList is the answer of GET /v1/events without follow.
type EventList struct {
	Events []ipam.Event `json:"events"` // the oldest first
	More   bool         `json:"more"`   // the filter may select further events that `last` omitted
	// all later events, and only these, come after the mark
	Mark ipam.EventMark `json:"mark"`
	// the time of the oldest stored event; zero: none
	KnownSince time.Time `json:"known_since,omitzero"`
}

// NetworkList is the answer of GET /v1/networks.
type NetworkList struct {
	Networks []ipam.NetworkInfo `json:"networks"`
	Paged
}

// ReservationList is the answer of GET /v1/reservations, and of the reservations of a network.
type ReservationList struct {
	Reservations []ipam.ReservationInfo `json:"reservations"`
	Paged
}

// AddressList is the answer of GET /v1/addresses, and of the addresses of a network.
type AddressList struct {
	Addresses []ipam.TakenAddress `json:"addresses"`
	Paged
}

// VariableList is the answer of GET /v1/networks/{network}/env/{owner}.
type VariableList struct {
	Variables []string `json:"variables"` // KEY=VALUE
}

// SubnetPlanList is the answer of GET /v1/networks/{network}/subnets.
type SubnetPlanList struct {
	Subnets []ipam.SubnetPlan `json:"subnets"`
	Paged
}

// PoolEntry is a pool with its subnet.
type PoolEntry struct {
	Subnet netip.Prefix `json:"subnet"`
	ipam.PoolPlan
}

// PoolList is the answer of GET /v1/networks/{network}/pools.
type PoolList struct {
	Pools []PoolEntry `json:"pools"`
	Paged
}

// ExclusionEntry is an exclusion with its subnet.
type ExclusionEntry struct {
	Subnet netip.Prefix `json:"subnet"`
	ipam.ExclusionPlan
}

// ExclusionList is the answer of GET /v1/networks/{network}/exclusions.
type ExclusionList struct {
	Exclusions []ExclusionEntry `json:"exclusions"`
	Paged
}

// AvailableList is the answer of GET /v1/subnets/{id}/available-ips.
type AvailableList struct {
	Addresses []netip.Addr `json:"addresses"`
}

// NextFreeList is the answer of GET /v1/networks/{network}/free/next.
type NextFreeList struct {
	Free []ipam.FreeRange `json:"free"`
}

// FreeList is the answer of GET /v1/networks/{network}/free.
type FreeList struct {
	Free []ipam.FreeRange `json:"free"` // by address
	Paged
}

// ImportLine is a line of the answer of POST /v1/import. It has the progress, and at the end the report or the problem.
type ImportLine struct {
	Done    int                `json:"done,omitempty"`
	Total   int                `json:"total,omitempty"`
	Report  *ipam.ImportReport `json:"report,omitempty"`
	Problem *Problem           `json:"problem,omitempty"`
}

// DeployList is the answer of GET /v1/deploys.
type DeployList struct {
	Deploys []ipam.DeployLock `json:"deploys"`
}

// DeployRunList is the answer of GET /v1/deploys/{project}.
type DeployRunList struct {
	Deploys []ipam.DeployRun `json:"deploys"`
}

// OrphanList is the answer of GET /v1/orphans.
type OrphanList struct {
	Orphans []ipam.Orphan `json:"orphans"`
}

// WorkerList is the answer of GET /v1/workers.
type WorkerList struct {
	Workers []ipam.WorkerRun `json:"workers"`
}

// HostList is the answer of GET /v1/hosts.
type HostList struct {
	Hosts []ipam.HostInfo `json:"hosts"`
}

// LANScan is the result of a scan: who answers on a network's LAN for its addresses.
type LANScan struct {
	Network   string         `json:"network"`
	NetworkID ipam.ID        `json:"network_id"`
	Parent    string         `json:"parent"` // the interface for the questions
	Asked     int            `json:"asked"`  // number of addresses
	Skipped   []netip.Prefix `json:"skipped"`
	Answered  []LANPresence  `json:"answered"` // by address
}

// MaxScan is the maximum number of addresses in one scan. Subnets beyond it are skipped.
const MaxScan = 4096

// LANPresence is a device that answers for an address on a LAN, with the address's record.
type LANPresence struct {
	ipam.LANNeighbour
	State  ipam.AddressState `json:"state"`
	Holder string            `json:"holder,omitempty"` // the holder, or else the owner
	Note   string            `json:"note,omitempty"`   // of an exclusion
}
