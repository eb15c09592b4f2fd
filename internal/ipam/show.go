package ipam

import (
	"net/netip"
	"time"
)

// NetworkInfo is a network as it is shown, with all that is planned in it (GA-23, GA-26).
type NetworkInfo struct {
	ID        ID                `json:"id"`
	Name      string            `json:"name"`
	Recorded  string            `json:"-"` // the name of its record, by which lists are ordered and which no two have
	Space     string            `json:"space"`
	Tags      map[string]string `json:"tags"`
	MACPrefix string            `json:"mac_prefix"`

	// The first subnet of each family, and the map of its first pool: what there was before a network could have
	// several.
	CIDR     netip.Prefix `json:"cidr"`
	Gateway  netip.Addr   `json:"gateway"`
	CIDR6    netip.Prefix `json:"cidr6"`
	Gateway6 netip.Addr   `json:"gateway6"`
	Map      string       `json:"map,omitempty"`

	CIDRs      []netip.Prefix `json:"-"` // of all its subnets, in brief, too
	Subnets    []SubnetPlan   `json:"subnets"`
	Type       string         `json:"type"` // manual, dynamic or vip
	Static     []Range        `json:"static"`
	OwnerRules []OwnerRule    `json:"owner_rules"`
	Links      []Link         `json:"links"`
	Sticky     bool           `json:"sticky"`
	Quarantine string         `json:"quarantine,omitempty"`
	// addresses that each host keeps claimed for each Docker network
	Headroom int    `json:"headroom,omitempty"`
	Elastic  string `json:"elastic"`         // off, on or auto
	Probe    string `json:"probe,omitempty"` // the hosts' interface to the LAN that is probed
	// which containers are put back; left out where each host's daemon says it
	PutBack  PutBackMode `json:"put_back,omitempty"`
	Planned  bool        `json:"planned"` // it stays when Docker leaves it
	Revision uint64      `json:"revision"`
	Created  time.Time   `json:"created"`
	Docker   int         `json:"docker"` // Docker networks on it
	Use      Use         `json:"use"`    // of its addresses
}

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
