package docker

import (
	"fmt"
	"net/netip"
	"time"

	"berth/internal/ipam"
)

// longGone is the age from which the memory of a removed container is stale.
const longGone = 30 * 24 * time.Hour

// comparison compares a view with the records. It asks nobody, so the same input gives the same findings.
type comparison struct {
	view *ipam.EngineView
	rec  *records
	seen *sights
	now  time.Time

	held    map[place]*ipam.LeaseInfo
	foreign map[netip.Prefix]*ipam.EngineNetwork // networks that may belong to this Berth under another driver name
	busy    map[ipam.ID]bool                     // attachments with a lease whose address an endpoint has
	doubled map[place]bool
	matches []match
	found   []finding

	reserved *reserved
}

// match is a lease and the endpoint that has its address.
type match struct {
	lease *ipam.LeaseInfo
	sight *sight
}

// compare returns the differences. It judges only leases and attachments of the view's host that are older than the
// view.
func compare(view *ipam.EngineView, rec *records, now time.Time) *comparison {
	view = rec.visible(view)
	c := &comparison{view: view, rec: rec, seen: newSights(view, rec), now: now,
		held: make(map[place]*ipam.LeaseInfo, len(rec.leases)), foreign: map[netip.Prefix]*ipam.EngineNetwork{},
		busy: map[ipam.ID]bool{}, doubled: map[place]bool{}, reserved: newReserved(rec.reservations)}
	for i := range rec.leases {
		if l := &rec.leases[i]; l.State == "held" {
			c.held[place{l.Space, l.Address}] = l
		}
	}
	for i := range view.Foreign {
		for _, sub := range view.Foreign[i].Subnets {
			c.foreign[sub.CIDR] = &view.Foreign[i]
		}
	}
	c.judgeSights()
	for i := range rec.leases {
		c.judgeLease(&rec.leases[i])
	}
	c.judgeSegments()
	c.judgeNetworks()
	c.judgeConflicts()
	c.judgeEmpty()
	c.judgeReservations()
	c.judgeStrays()
	c.judgeFirewall()
	c.judgeElastic()
	return c
}

// add adds a finding with a sentence for a person.
func (c *comparison) add(f finding, format string, args ...any) {
	f.Host, f.Detail = c.view.Host, fmt.Sprintf(format, args...)
	if c.rec.other && f.sure && f.Kind != ipam.UncoveredAddress {
		f.sure = false
		f.Detail += "; but Berth's records are of another engine, so Berth ends no record only because this engine " +
			"lacks it"
	}
	if n := c.foreign[f.Subnet]; f.slow && n != nil {
		f.sure = false
		f.Detail += fmt.Sprintf("; but the Docker network %s has the subnet %s from the IPAM driver %s; if this "+
			"driver is the same Berth, name it with --ipam-driver", n.Name, f.Subnet, n.Driver)
	}
	c.found = append(c.found, f)
}
