package ipam

import (
	"fmt"
	"net/netip"
	"slices"
)

// HostRoute is a route of a host that is no default one.
type HostRoute struct {
	Prefix netip.Prefix `json:"prefix"`
	Link   string       `json:"link,omitempty"` // where it leads to; empty: it drops
}

func (r HostRoute) String() string {
	if r.Link == "" {
		return fmt.Sprintf("%s to nowhere", r.Prefix)
	}
	return fmt.Sprintf("%s over %s", r.Prefix, r.Link)
}

// maxBeneath is how many routes an attachment remembers: they are in its one record. Of one with so many, no other
// counts as new.
const maxBeneath = 64

// RoutesOver are those of the routes that overlap a subnet, as an attachment to it remembers them.
func RoutesOver(cidr netip.Prefix, routes []HostRoute) (over []HostRoute) {
	for _, r := range routes {
		if r.Prefix.Overlaps(cidr) && len(over) < maxBeneath && !slices.Contains(over, r) {
			over = append(over, r)
		}
	}
	return over
}

// CameAfter tells whether a route was not there yet when one of the attachments was made that remember these.
func (r HostRoute) CameAfter(beneath []HostRoute) bool {
	return len(beneath) < maxBeneath && !slices.Contains(beneath, r)
}
