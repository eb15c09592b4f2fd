package api

import "berth/internal/ipam"

// Names is the answer of GET /v1/names.
type Names struct {
	Zone      string              `json:"zone,omitempty"` // the daemon's --dns-zone; empty: it answers for none
	Ranges    []ipam.NamedRange   `json:"ranges"`
	Addresses []ipam.NamedAddress `json:"addresses"`
}
