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
	sub, sx, err := c.SubnetOf(at)
	if err != nil {
		return nil, err
	}
	return &Target{Change: c, At: at, Sub: sub, Sx: sx, Pool: at.Named, Kept: KeptOf(c, sub)}, nil
}

// KeptOf returns the addresses of a subnet that automatic choice must leave alone, because containers ask for them by
// their own configuration.
func KeptOf(c *ledger.Change, sub *ipam.Subnet) ipam.Wants {
	if c.Known().Wanted == nil {
		return nil
	}
	return c.Known().Wanted(sub.Space, sub.CIDR)
}

// ByRule makes an attachment without a pool name use the pool that a rule of the network gives the owner. A rule binds
// only the families of its pool, because the other family may have pools without names.
func (t *Target) ByRule(who ipam.Meaning) {
	if t.Pool != "" || !t.At.Pool.IsZero() {
		return
	}
	if pool := who.Pool(); pool != "" && familyHasPool(t.Index(), who.N.ID, t.Sub.CIDR.Addr().Is6(), pool) {
		t.Pool = pool
	}
}

// familyHasPool reports whether a subnet of the family has a pool with the name.
func familyHasPool(ix *ledger.Index, network ipam.ID, is6 bool, name string) bool {
	nx := ix.NetworkIndex(network)
	return nx != nil && slices.ContainsFunc(nx.Subnets(), func(id ipam.ID) bool {
		sub := ix.Subnet(id).Record()
		return sub.CIDR.Addr().Is6() == is6 && sub.HasPool(name)
	})
}

// Pools returns the sources of automatic addresses, in order. These are all pools of the subnet, or those of the wanted
// name, which never spills over to others (GA-16). Both are limited to the attachment's range.
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
	for _, p := range t.Pools() {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// read reads the record of an address in the subnet.
func (t *Target) read(addr netip.Addr) (*ipam.Lease, error) { return t.Lease(t.Sub.ID, addr) }

// CheckHost refuses an address that no host can have in the subnet.
func (t *Target) CheckHost(addr netip.Addr) error {
	if why := NotHost(t.Sub.CIDR, addr); why != "" {
		return ipam.RefuseAs(ipam.OutsideSubnet, ipam.ErrInvalid, "%s is %s; ask for another", addr, why)
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

// CheckWanted refuses an address that nobody may request, free or not: no host address, or excluded (GA-9).
func (t *Target) CheckWanted(addr netip.Addr) error {
	if err := t.CheckHost(addr); err != nil {
		return err
	}
	if x := t.Sub.Exclusion(addr); x != nil {
		return excludedError(t.Change, addr, x)
	}
	return nil
}
