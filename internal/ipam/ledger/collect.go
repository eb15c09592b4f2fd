package ledger

import (
	"net/netip"

	"berth/internal/ipam"
)

// CollectEvents has the change keep the events that it writes from now on.
func (c *Change) CollectEvents() { c.collects = true }

// Collected are the events that were written since CollectEvents.
func (c *Change) Collected() []ipam.Event { return c.events }

// AddOrphan notes a subnet that is gone with this change, and whose leases are to be swept once it is committed.
func (c *Change) AddOrphan(gone *ipam.Subnet) { c.orphans = append(c.orphans, gone) }

// AddStrays notes memories that lie outside of their subnet from this change on, and are swept once it is committed.
func (c *Change) AddStrays(subnet ipam.ID, at []netip.Addr) {
	for _, addr := range at {
		c.strays = append(c.strays, Stray{Subnet: subnet, Addr: addr})
	}
}
