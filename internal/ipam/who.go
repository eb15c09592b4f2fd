package ipam

import (
	"context"
	"net/netip"
	"time"
)

// WhoFilter chooses tenures: by exactly one of Address, MAC and Name.
type WhoFilter struct {
	Address netip.Addr
	MAC     MAC
	Name    string    // of an endpoint, or an owner
	Space   string    // empty: all
	At      time.Time // only who had it then; zero: whenever
}

// Tenure is the time for which somebody had, or owned, an address.
type Tenure struct {
	Space   string       `json:"space"`
	Subnet  netip.Prefix `json:"subnet"`
	Address netip.Addr   `json:"address"`
	What    string       `json:"what"` // lease or reservation
	Kind    string       `json:"kind,omitempty"`
	Lease   uint64       `json:"lease,omitempty"`
	Name    string       `json:"name,omitempty"` // the endpoint's, or the owner
	MAC     MAC          `json:"mac,omitzero"`
	Host    string       `json:"host,omitempty"`
	From    time.Time    `json:"from"`
	Until   time.Time    `json:"until,omitzero"`     // zero: to this day
	By      string       `json:"by,omitempty"`       // the actor who took or reserved it
	EndedBy string       `json:"ended_by,omitempty"` // the actor who ended it
	Early   bool         `json:"early,omitempty"`    // it began before the events that are kept
}

// Who tells who has an address, who had it, and what a MAC or a name had, out of the events and the records, the earliest
// first. What events no longer tell is known of leases that last.
func (s *Service) Who(ctx context.Context, f WhoFilter) ([]Tenure, error) { panic("pending") }
