package ipam

import "net/netip"

// PoolPlan is a pool with its usage. Map has one character per address from Start to End: X for taken, . for free. It
// is empty for more than MaxMap addresses.
type PoolPlan struct {
	Name  string     `json:"name"`
	Start netip.Addr `json:"start"`
	End   netip.Addr `json:"end"`
	Map   string     `json:"map,omitempty"`
	Free  Count      `json:"free"`
}

// MaxMap is the maximum number of addresses in a map.
const MaxMap = 65536

// ExclusionPlan is an exclusion as shown with its subnet.
type ExclusionPlan struct {
	Start netip.Addr `json:"start"`
	End   netip.Addr `json:"end"`
	Note  string     `json:"note"`
}
