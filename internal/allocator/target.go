package allocator

import (
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Target is where a request takes its address: the attachment and its subnet, as read in the transaction.
type Target struct {
	*ledger.Change
	At  *ipam.Attachment
	Sub *ipam.Subnet
	Sx  *ledger.SubnetIndex
	// the pool that the attachment names, or else the pool that the network's rule gives its owner; empty: any
	Pool string
	Kept ipam.Wants      // of the subnet
	Made *ipam.Lease     // by this request
	DHCP *ipam.DHCPLease // the terms of the LAN's DHCP server for the address; nil: none
}

// OpenTarget opens the attachment of the engine's pool id, with its subnet. It returns ErrNotFound if there is none.
func OpenTarget(c *ledger.Change, pool ipam.ID) (*Target, error) {
	at, err := c.Attachment(pool)
	if err != nil {
		return nil, err
	}
	if at.Ended {
		return nil, ipam.Refuse(ipam.ErrNotFound, "pool %s of subnet %s was released", at.ID, at.CIDR)
	}
	sub, err := c.SubnetOf(at)
	if err != nil {
		return nil, err
	}
	return NewTarget(c, at, sub, at.Named), nil
}

// NewTarget returns a subnet as a target. at is empty for a request without a Docker network.
func NewTarget(c *ledger.Change, at *ipam.Attachment, sub *ipam.Subnet, pool string) *Target {
	return &Target{Change: c, At: at, Sub: sub, Sx: c.Index().Subnet(sub.ID), Pool: pool, Kept: KeptOf(c, sub)}
}

// KeptOf returns the addresses of a subnet that automatic choice must leave alone, because containers ask for them by
// their own configuration.
func KeptOf(c *ledger.Change, sub *ipam.Subnet) ipam.Wants {
	if wanted := c.Known().Wanted; wanted != nil {
		return wanted(sub.Space, sub.CIDR)
	}
	return nil
}

// ByRule makes an attachment without a pool name use the pool that a rule of the network gives the owner. A rule binds
// only the families of its pool, because the other family may have pools without names.
func (t *Target) ByRule(who ipam.Meaning) {
	if t.Pool != "" || !t.At.Pool.IsZero() {
		return
	}
	pool := who.Pool()
	if pool == "" {
		return
	}
	for _, id := range t.Index().NetworkIndex(who.N.ID).Subnets() {
		sub := t.Index().Subnet(id).Record()
		if sub.CIDR.Addr().Is6() == t.Sub.CIDR.Addr().Is6() && sub.HasPool(pool) {
			t.Pool = pool
		}
	}
}

// Pools returns the sources of automatic addresses, in order. These are all pools of the subnet, or those of the wanted
// name, which never spills over to others. Both are limited to the attachment's range.
func (t *Target) Pools() []ledger.OpenPool {
	all := t.Sx.OpenPools(t.Sub)
	if t.Pool == "" && t.At.Pool.IsZero() {
		return all
	}
	var chosen []ledger.OpenPool
	for _, p := range all {
		if t.Pool != "" && p.Name != t.Pool {
			continue
		}
		if t.At.Pool.IsZero() || t.At.Pool == p.Range {
			chosen = append(chosen, p)
		} else if t.At.Pool.Overlaps(p.Range.IPRange) {
			chosen = append(chosen, p.Within(t.At.Pool.IPRange))
		}
	}
	return chosen
}

// InPools reports whether an address lies in one of the pools for automatic addresses.
func (t *Target) InPools(addr netip.Addr) bool {
	return slices.ContainsFunc(t.Pools(), func(p ledger.OpenPool) bool { return p.Contains(addr) })
}

// Record reads the record of an address in the subnet. It returns nil if there is none.
func (t *Target) Record(addr netip.Addr) (*ipam.Lease, error) { return t.Lease(t.Sub.ID, addr) }

// CheckHost refuses an address that no host can have in the subnet.
func (t *Target) CheckHost(addr netip.Addr) error {
	if why := NotHost(t.Sub.CIDR, addr); why != "" {
		return ipam.RefuseAs(ipam.OutsideSubnet, ipam.ErrInvalid, "%s is %s; ask for another address", addr, why)
	}
	return nil
}

// NotHost returns why no host can have an address in a subnet, such as its broadcast address. It returns "" if one can.
func NotHost(cidr netip.Prefix, addr netip.Addr) string {
	switch {
	case !cidr.Contains(addr):
		return fmt.Sprintf("outside the subnet %s", cidr)
	case alloc.Usable(cidr).Contains(addr):
		return ""
	case addr == cidr.Addr() && addr.Is6():
		return fmt.Sprintf("the subnet-router anycast address of %s (RFC 4291)", cidr)
	case addr == cidr.Addr():
		return fmt.Sprintf("the network address of %s", cidr)
	default:
		return fmt.Sprintf("the broadcast address of %s", cidr)
	}
}

// CheckWanted refuses an address that nobody may request, free or not: no host address, or excluded.
func (t *Target) CheckWanted(addr netip.Addr) error {
	if err := t.CheckHost(addr); err != nil {
		return err
	}
	if x := t.Sub.Exclusion(addr); x != nil {
		return ipam.RefuseAs(ipam.IPReserved, ipam.ErrInUse, "%s is excluded by %s; ask for another address", addr, x).
			OrAdvise(ipam.DoEndExclusion)
	}
	return nil
}

// runsElsewhere returns a container other than the named one that runs with an address of the subnet, whatever the
// records say. ok is false if there is none.
func (t *Target) runsElsewhere(addr netip.Addr, name string) (by ipam.Container, ok bool) {
	return t.Known().RunsElsewhere(t.Sub.Space, t.Sub.CIDR, addr, name)
}
