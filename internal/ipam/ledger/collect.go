package ledger

import (
	"net/netip"

	"berth/internal/ipam"
)

// CollectEvents makes the change keep the events that it writes from now on.
func (c *Change) CollectEvents() { c.collects = true }

// Collected returns the events written since CollectEvents.
func (c *Change) Collected() []ipam.Event { return c.events }

// AddOrphan notes a subnet that this change removes. Its leases are swept after the commit.
func (c *Change) AddOrphan(gone *ipam.Subnet) { c.orphans = append(c.orphans, gone) }

// AddStrays notes memories that this change leaves outside of their subnet. They are swept after the commit.
func (c *Change) AddStrays(subnet ipam.ID, at []netip.Addr) {
	for _, addr := range at {
		c.strays = append(c.strays, Stray{Subnet: subnet, Addr: addr})
	}
}
