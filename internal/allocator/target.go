package allocator

import (
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Target is where a request takes its address: the attachment and what it holds, as read in the transaction.
type Target struct {
	*ledger.Change
	At  *ipam.Attachment
	Sub *ipam.Subnet
	Sx  *ledger.SubnetIndex
	// the pool that the attachment names, or else the one that the network's rule gives its owner; empty: any
	Pool string
	Kept ipam.Wants      // of the subnet
	Made *ipam.Lease     // by this request
	DHCP *ipam.DHCPLease // what a LAN's server said of what is taken; nil: nothing
}

// OpenTarget opens the attachment that the engine knows as a pool, with its subnet; ErrNotFound where it is not there.
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

// KeptOf is what is kept of a subnet.
func KeptOf(c *ledger.Change, sub *ipam.Subnet) ipam.Wants {
	if c.Known().Wanted == nil {
		return nil
	}
	return c.Known().Wanted(sub.Space, sub.CIDR)
}

// ByRule has an attachment that names no pool take from that which a rule of the network gives the owner. A rule binds
// the families in which its pool is: a network's other family may have pools without names.
func (t *Target) ByRule(who ipam.Meaning) {
	if t.Pool != "" || !t.At.Pool.IsZero() {
		return
	}
	if pool := who.Pool(); pool != "" && familyHasPool(t.Index(), who.N.ID, t.Sub.CIDR.Addr().Is6(), pool) {
		t.Pool = pool
	}
}

// familyHasPool tells whether a subnet of the family has a pool of the name.
func familyHasPool(ix *ledger.Index, network ipam.ID, is6 bool, name string) bool {
	nx := ix.NetworkIndex(network)
	return nx != nil && slices.ContainsFunc(nx.Subnets(), func(id ipam.ID) bool {
		sub := ix.Subnet(id).Record()
		return sub.CIDR.Addr().Is6() == is6 && sub.HasPool(name)
	})
}

// Pools are where automatic addresses come from, in order: all pools of the subnet, or those of the name that is wanted
// (which never spills over to others; GA-16), or what lies of them in the attachment's range.
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

// InPools tells whether an address lies in one of the pools that addresses are chosen from.
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

// CheckHost refuses what can be nobody's address in the subnet.
func (t *Target) CheckHost(addr netip.Addr) error {
	if why := NotHost(t.Sub.CIDR, addr); why != "" {
		return ipam.RefuseAs(ipam.OutsideSubnet, ipam.ErrInvalid, "%s is %s; ask for another", addr, why)
	}
	return nil
}

// NotHost says what an address is that can be nobody's in a subnet; empty where it can be somebody's.
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

// CheckWanted refuses what nobody may ask for by address, whether it is free or not: no host address, or one that is
// excluded (GA-9).
func (t *Target) CheckWanted(addr netip.Addr) error {
	if err := t.CheckHost(addr); err != nil {
		return err
	}
	if x := t.Sub.Exclusion(addr); x != nil {
		return excludedError(t.Change, addr, x)
	}
	return nil
}
