package bulk

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/ipam"
)

// stepOp says what a step of an import does.
type stepOp uint8

// The operations. Their numbers are stored, in journals, which no upgrade reads.
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
	body    []byte // JSON of what is made: a Network, a Subnet, []Pool or []Exclusion
	addr    netip.Addr
	owner   string
	slot    ipam.Slot
	terms   // of a reservation
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
func (ck *importCheck) steps() ([]step, error) {
	ck.numberSubnets()
	var all []step
	for _, d := range ck.networks {
		if d.counts().Sum() == 0 {
			continue
		}
		var err error
		if all, err = d.steps(all); err != nil {
			return nil, err
		}
	}
	return ck.elasticSteps(all)
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

func (d *draftNetwork) steps(all []step) ([]step, error) {
	add := func(st step, body any) (err error) {
		st.network = d.n.ID
		if body != nil {
			st.body, err = json.Marshal(body)
		}
		all = append(all, st)
		return err
	}
	if !d.old {
		if err := add(step{op: stepNetwork}, d.n); err != nil {
			return nil, err
		}
	}
	for _, sub := range d.subnets {
		if err := sub.steps(add); err != nil {
			return nil, err
		}
	}
	for _, w := range d.taken.wanted { // before the reservations: one by force is of an address that somebody has
		if !w.skip {
			all = append(all, step{op: stepTake, network: d.n.ID, subnet: w.sub.sub.ID, addr: w.addr, owner: w.owner,
				slot: w.slot, terms: w.terms})
		}
	}
	for _, w := range d.reserved.wanted {
		if !w.skip {
			all = append(all, step{op: stepReserve, network: d.n.ID, subnet: w.sub.sub.ID, addr: w.addr, owner: w.owner,
				slot: w.slot, terms: w.terms})
		}
	}
	for _, w := range d.known {
		if !w.skip {
			all = append(all, step{op: stepOwner, network: d.n.ID, owner: w.owner, terms: w.terms})
		}
	}
	if !d.old {
		all = append(all, step{op: stepReveal, network: d.n.ID})
	}
	return all, nil
}

// steps makes the subnet with its pools, where it is new, and adds what is to be added.
func (draft *draftSubnet) steps(add func(step, any) error) error {
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
		made.Pools, pools = append(made.Pools, pools[:n]...), pools[n:]
		if err := add(step{op: stepSubnet, subnet: id}, &made); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(pools, stepRanges) {
		if err := add(step{op: stepPools, subnet: id}, part); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(exclusions, stepRanges) {
		if err := add(step{op: stepExclusions, subnet: id}, part); err != nil {
			return err
		}
	}
	return nil
}

// encode makes v the body of a step.
func (st *step) encode(v any) (err error) {
	st.body, err = json.Marshal(v)
	return err
}

// decode reads the body of a step into v.
func (st *step) decode(v any) error {
	if err := json.Unmarshal(st.body, v); err != nil {
		return fmt.Errorf("%w: the journal of an import: %w", ipam.ErrDamaged, err)
	}
	return nil
}

// append writes st in the form of the journal.
func (st *step) append(b []byte) []byte {
	flags := byte(0)
	for i, set := range []bool{st.automatic, st.force} {
		if set {
			flags |= 1 << i
		}
	}
	b = append(b, byte(st.op), flags, st.slot.Interface, st.slot.Number)
	b = st.Terms.Append(b)
	b = append(b, st.network[:]...)
	b = append(b, st.subnet[:]...)
	b = ipam.AppendSized(b, st.addr)
	b = ipam.AppendString(b, st.owner)
	b = binary.AppendUvarint(b, uint64(len(st.body)))
	return append(b, st.body...)
}

// decodeSteps reads what append wrote, one behind the other.
func decodeSteps(b []byte) ([]step, error) {
	var all []step
	d := ipam.Decoder{B: b}
	for len(d.B) > 0 && !d.Failed {
		st := step{op: stepOp(d.Byte())}
		flags := d.Byte()
		st.automatic, st.force = flags&1 != 0, flags&2 != 0
		st.slot = ipam.Slot{Interface: d.Byte(), Number: d.Byte()}
		st.Terms = d.Terms()
		d.Copy(st.network[:])
		d.Copy(st.subnet[:])
		st.addr, st.owner = d.Addr(), d.String()
		st.body = []byte(d.String())
		all = append(all, st)
	}
	if d.Failed {
		return nil, fmt.Errorf("%w: the journal of an import does not decode", ipam.ErrDamaged)
	}
	return all, nil
}
