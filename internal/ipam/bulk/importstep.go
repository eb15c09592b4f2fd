package bulk

import (
	"bytes"
	"slices"

	"berth/internal/ipam"
)

// stepOp says what a step of an import does.
type stepOp uint8

// The operations.
const (
	stepNetwork    stepOp = iota + 1 // make a network, which nobody sees yet
	stepReveal                       // let it be seen
	stepSubnet                       // make a subnet
	stepPools                        // add pools to a subnet
	stepExclusions                   // add exclusions to a subnet
	stepReserve                      // reserve an address
	stepTake                         // take an address for what is no container
	stepOwner                        // make an owner known in a dynamic network
	stepElastic                      // add an account, a range, an elastic address or an association
)

// step is the smallest part of an import, of a few writes. All steps together are what it adds.
type step struct {
	op      stepOp
	network ipam.ID
	subnet  ipam.ID

	// What is made: one of them.
	newNetwork *ipam.Network
	newSubnet  *ipam.Subnet
	pools      []ipam.Pool
	exclusions []ipam.Exclusion
	elastic    *elasticStep
	wanted     *wanted // an address, or an owner
}

// stepRanges is how many pools or exclusions one step adds, so that its writes are bounded.
const stepRanges = 100

// writes is about how many records a step writes; the store bounds those of a transaction.
func (st *step) writes() int {
	switch st.op {
	case stepReserve, stepTake, stepOwner:
		return 3
	case stepPools, stepExclusions:
		return 4 * stepRanges
	default:
		return 10
	}
}

// steps lists what is to be written, network by network: a new one from its making to its revealing.
func (ck *importCheck) steps() (all []step) {
	ck.numberSubnets()
	for _, d := range ck.networks {
		if d.counts().Sum() > 0 {
			all = d.steps(all)
		}
	}
	for i := range ck.elastics {
		all = append(all, step{op: stepElastic, elastic: &ck.elastics[i]})
	}
	return all
}

// numberSubnets gives the new subnets ids that ascend, so that their leases lie one behind the other in the store: a
// transaction that writes those of many subnets touches few of its pages then.
func (ck *importCheck) numberSubnets() {
	var fresh []*draftSubnet
	for _, d := range ck.networks {
		for _, sub := range d.subnets {
			if !sub.old {
				fresh = append(fresh, sub)
			}
		}
	}
	ids := make([]ipam.ID, len(fresh))
	for i := range ids {
		ids[i] = ck.Member().Marked(ipam.NewID())
	}
	slices.SortFunc(ids, func(a, b ipam.ID) int { return bytes.Compare(a[:], b[:]) })
	for i, sub := range fresh {
		sub.sub.ID = ids[i]
	}
}

func (d *draftNetwork) steps(all []step) []step {
	if !d.old {
		all = append(all, step{op: stepNetwork, network: d.n.ID, newNetwork: d.n})
	}
	for _, sub := range d.subnets {
		all = sub.steps(all, d.n.ID)
	}
	owned := func(op stepOp, some []*wanted) {
		for _, w := range some {
			if w.skip {
				continue
			}
			st := step{op: op, network: d.n.ID, wanted: w}
			if w.sub != nil {
				st.subnet = w.sub.sub.ID
			}
			all = append(all, st)
		}
	}
	owned(stepTake, d.taken.wanted) // before the reservations: one by force is of an address that somebody has
	owned(stepReserve, d.reserved.wanted)
	owned(stepOwner, d.known)
	if !d.old {
		all = append(all, step{op: stepReveal, network: d.n.ID})
	}
	return all
}

// steps makes the subnet with its pools, where it is new, and adds what is to be added.
func (draft *draftSubnet) steps(all []step, network ipam.ID) []step {
	var pools []ipam.Pool
	for _, r := range draft.pools {
		pools = append(pools, ipam.Pool{Name: r.text, Range: r.Range})
	}
	var exclusions []ipam.Exclusion
	for _, r := range draft.exclusions {
		exclusions = append(exclusions, ipam.Exclusion{Range: r.Range, Note: r.text})
	}
	id := draft.sub.ID
	if !draft.old {
		made := *draft.sub
		n := min(len(pools), stepRanges)
		made.Pools, pools = append(slices.Clip(made.Pools), pools[:n]...), pools[n:]
		all = append(all, step{op: stepSubnet, network: network, subnet: id, newSubnet: &made})
	}
	for part := range slices.Chunk(pools, stepRanges) {
		all = append(all, step{op: stepPools, network: network, subnet: id, pools: part})
	}
	for part := range slices.Chunk(exclusions, stepRanges) {
		all = append(all, step{op: stepExclusions, network: network, subnet: id, exclusions: part})
	}
	return all
}
