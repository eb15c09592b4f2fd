package ledger

import (
	"net/netip"

	"berth/internal/ipam"
)

// claims are the headroom addresses of a subnet, by attachment.
type claims map[ipam.ID]map[netip.Addr]struct{}

func (c *claims) add(l *ipam.Lease) {
	if l.Kind != ipam.Headroom {
		return
	}
	if *c == nil {
		*c = claims{}
	}
	if (*c)[l.Attachment] == nil {
		(*c)[l.Attachment] = map[netip.Addr]struct{}{}
	}
	(*c)[l.Attachment][l.Address] = struct{}{}
}

func (c claims) remove(l *ipam.Lease) {
	if l.Kind != ipam.Headroom {
		return
	}
	if delete(c[l.Attachment], l.Address); len(c[l.Attachment]) == 0 {
		delete(c, l.Attachment)
	}
}
