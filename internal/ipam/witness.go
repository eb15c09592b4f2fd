package ipam

import (
	"context"
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
	Range   Range        `json:"range,omitzero"`
	Named   string       `json:"named,omitempty"`
	Created time.Time    `json:"created"`
	Live    int          `json:"live"`             // leases held through it
	Gateway netip.Addr   `json:"gateway,omitzero"` // the subnet's
}

// Attachments lists all attachments that have not ended, by space, subnet and age.
func (s *Service) Attachments(ctx context.Context) ([]AttachmentInfo, error) { panic("pending") }

// NameLeases writes the names of endpoints into leases that have none: of engines that send no names. What is no longer that
// lease is passed over.
func (s *Service) NameLeases(ctx context.Context, names []LeaseName) error { panic("pending") }

// ReleaseLease ends one lease of this host, which was taken through an attachment, and tells whether it was still there.
func (s *Service) ReleaseLease(ctx context.Context, ref LeaseRef) (bool, error) { panic("pending") }

// ForgetMemory ends one memory, and tells whether it was still there.
func (s *Service) ForgetMemory(ctx context.Context, ref LeaseRef) (bool, error) { panic("pending") }

// Rebuild makes this host's attachments and leases out of what an engine says that runs, in a store that forgets (BO-4). parse
// reads a Docker network's wish for a subnet. A second use of an address is refused with AlreadyInUse.
func (s *Service) Rebuild(ctx context.Context, view EngineView, parse func(EngineNetwork, EngineSubnet) (PoolRequest, error)) error {
	panic("pending")
}
