package ipam

import (
	"net/netip"
	"time"
)

// LeaseRef names one lease or memory of an address, and no later one.
type LeaseRef struct {
	Space   string     `json:"space"`
	Address netip.Addr `json:"address"`
	ID      uint64     `json:"id"`
}

// LeaseName is what a witness has learnt of a lease.
type LeaseName struct {
	LeaseRef
	Name string // the endpoint's
}

// AttachmentInfo is a Docker network's hold on a subnet as the witness sees it.
type AttachmentInfo struct {
	ID      ID           `json:"id"`
	Space   string       `json:"space"`
	CIDR    netip.Prefix `json:"cidr"`
	Network string       `json:"network"` // its name
	Planned bool         `json:"planned"`
	Host    string       `json:"host"`
	Swarm   bool         `json:"swarm"`
	Chosen  bool         `json:"chosen,omitempty"` // Docker named no subnet
	Range   Range        `json:"range,omitzero"`
	Named   string       `json:"named,omitempty"`
	Created time.Time    `json:"created"`
	Live    int          `json:"live"`             // leases held through it, headroom not counted
	Gateway netip.Addr   `json:"gateway,omitzero"` // the subnet's
}
