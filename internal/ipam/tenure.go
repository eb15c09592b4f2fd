package ipam

import (
	"net/netip"
	"time"
)

// WhoFilter chooses tenures: by exactly one of Address, MAC and Name.
type WhoFilter struct {
	Address netip.Addr
	MAC     MAC       // of an endpoint, or an owner
	Name    string    // of an endpoint, also as it was learnt later, or an owner
	Space   string    // empty: all
	At      time.Time // only who had it then; zero: whenever
}

// What a tenure is of.
const (
	LeaseTenure       = "lease"
	ReservationTenure = "reservation"
)

// Tenure is the time for which somebody had, or owned, an address: from From on and before Until.
type Tenure struct {
	Space   string       `json:"space"`
	Subnet  netip.Prefix `json:"subnet"` // as it was last
	Address netip.Addr   `json:"address"`
	What    string       `json:"what"` // lease or reservation
	Kind    string       `json:"kind,omitempty"`
	Lease   uint64       `json:"lease,omitempty"`
	Name    string       `json:"name,omitempty"` // the endpoint's, or the owner
	MAC     MAC          `json:"mac,omitzero"`
	Host    string       `json:"host,omitempty"`
	From    time.Time    `json:"from"`               // of an Early reservation that has ended: at the latest
	Until   time.Time    `json:"until,omitzero"`     // zero: to this day
	By      string       `json:"by,omitempty"`       // the actor who took or reserved it
	EndedBy string       `json:"ended_by,omitempty"` // the actor who ended it
	Early   bool         `json:"early,omitempty"`    // it began before the events that are kept
	Note    string       `json:"note,omitempty"`     // as it was last
}
