package ipam

import (
	"fmt"
	"net/netip"
	"slices"
)

// HostRoute is a route of a host, other than a default route.
type HostRoute struct {
	Prefix netip.Prefix `json:"prefix"`
	Link   string       `json:"link,omitempty"` // its interface; empty: it drops packets
}

func (r HostRoute) String() string {
	if r.Link == "" {
		return fmt.Sprintf("%s to nowhere", r.Prefix)
	}
	return fmt.Sprintf("%s over %s", r.Prefix, r.Link)
}

// maxBeneath is how many routes an attachment's record keeps. If it has that many, no other route counts as new.
const maxBeneath = 64

// RoutesOver returns the routes that overlap a subnet, at most maxBeneath, for the attachment's record.
func RoutesOver(cidr netip.Prefix, routes []HostRoute) (over []HostRoute) {
	for _, r := range routes {
		if r.Prefix.Overlaps(cidr) && len(over) < maxBeneath && !slices.Contains(over, r) {
			over = append(over, r)
		}
	}
	return over
}

// CameAfter reports whether a route is newer than the attachments whose recorded routes these are.
func (r HostRoute) CameAfter(beneath []HostRoute) bool {
	return len(beneath) < maxBeneath && !slices.Contains(beneath, r)
}
