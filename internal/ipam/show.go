package ipam

import "net/netip"

// PoolPlan is a pool with what is taken of it. Map has a character for each address from Start to End, X taken and .
// free; it is empty for more than MaxMap addresses.
type PoolPlan struct {
	Name  string     `json:"name"`
	Start netip.Addr `json:"start"`
	End   netip.Addr `json:"end"`
	Map   string     `json:"map,omitempty"`
	Free  Count      `json:"free"`
}

// MaxMap is the most addresses that a map is drawn of.
const MaxMap = 65536

// ExclusionPlan is an exclusion as its subnet shows it.
type ExclusionPlan struct {
	Start netip.Addr `json:"start"`
	End   netip.Addr `json:"end"`
	Note  string     `json:"note"`
}
