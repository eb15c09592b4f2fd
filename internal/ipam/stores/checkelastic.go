package stores

import (
	"fmt"
	"net/netip"

	"berth/internal/ipam"
)

// elastics checks that each elastic address lies in one range, belongs to an existing account and is associated on an
// existing network; that no two are associated with the same guest under one name; and that the edges' reports are
// about such addresses.
func (ck *checker) elastics() {
	guests := map[string]netip.Addr{}
	for addr, one := range ck.ix.Elastics() {
		ck.elastic(addr, one)
		a := one.Association
		if a == nil {
			continue
		}
		guest := fmt.Sprintf("%s %s %s", a.Network, a.Instance, a.Guest)
		if other, double := guests[guest]; double {
			low, high := other, addr
			if high.Less(low) {
				low, high = high, low
			}
			ck.problem("elastic addresses %s and %s: both are associated with the guest %s of %s", low, high, a.Guest,
				a.Instance)
		}
		guests[guest] = addr
	}
	ck.elasticRanges()
	for at, said := range ck.ix.AllApplied() {
		if said.Host != at.Host || said.Address != at.Address {
			ck.problem("the edge report of host %s on the elastic address %s is in fact about %s on host %s", at.Host,
				at.Address, said.Address, said.Host)
		}
	}
}

func (ck *checker) elastic(addr netip.Addr, one *ipam.Elastic) {
	if one.Address != addr {
		ck.problem("elastic address %s: its record is for %s", addr, one.Address)
	}
	in := 0
	for _, r := range ck.ix.AllElasticRanges() {
		if r.Range.Contains(addr) {
			in++
		}
	}
	if in != 1 {
		ck.problem("elastic address %s is in %d ranges instead of one", addr, in)
	}
	if one.State != ipam.ElasticAllocated && one.State != ipam.ElasticReleasing {
		ck.problem("elastic address %s has the invalid state %q", addr, one.State)
	}
	if one.Account != ipam.DefaultAccount && one.State == ipam.ElasticAllocated && ck.ix.Account(one.Account) == nil {
		ck.problem("elastic address %s: its account %s is missing", addr, one.Account)
	}
	a := one.Association
	if a == nil {
		return
	}
	if one.State != ipam.ElasticAllocated {
		ck.problem("elastic address %s was released, but is still associated with %s", addr, a.Instance)
	}
	if ck.ix.Network(a.Network) == nil && ck.copied[elasticPart] == nil {
		ck.problem("elastic address %s: the network %s of the association with %s is missing", addr, a.Network,
			a.Instance)
	}
}

// elasticRanges checks that ranges of elastic addresses do not overlap.
func (ck *checker) elasticRanges() {
	for id, r := range ck.ix.AllElasticRanges() {
		if r.ID != id {
			ck.problem("elastic range %s: its record has the id %s, but its key has the id %s", r.Range, r.ID, id)
		}
		if r.Moving && ck.copied[elasticPart] == nil {
			ck.problem("elastic range %s is marked as being copied, but no copy of elastic addresses is open", r.Range)
		}
		for other, o := range ck.ix.AllElasticRanges() {
			if id.String() < other.String() && r.Range.Overlaps(o.Range.IPRange) {
				ck.problem("the elastic ranges %s and %s overlap", r.Range, o.Range)
			}
		}
	}
}
