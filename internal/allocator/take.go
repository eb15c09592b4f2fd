package allocator

import (
	"net/netip"
	"time"

	"berth/internal/ipam"
)

// Take writes the lease and its event. before is the address's record in this transaction.
func (t *Target) Take(req ipam.AddressRequest, addr netip.Addr, before *ipam.Lease, kind ipam.Kind) error {
	t.TakenSince(t.At.ID)
	e := &ipam.Event{Verb: ipam.LeaseTaken, Space: t.Sub.Space, Subnet: t.Sub.CIDR, Address: addr, Attachment: t.At.ID,
		MAC: req.MAC, Name: req.Name, Detail: kind.String()}
	if req.Guessed {
		e.Detail += " by a guess"
	}
	id, err := t.Event(e)
	if err != nil {
		return err
	}
	t.Made = &ipam.Lease{ID: id, Address: addr, Kind: kind, Attachment: t.At.ID, MAC: req.MAC, Name: req.Name,
		Container: t.Known().ContainerOf(req.Name),
		Guessed:   req.Guessed && req.Name != "", Host: t.Host(), Since: t.TimeOf(id),
		DHCP: t.DHCP, Reservation: before.Reserved()}
	if t.DHCP == nil && before != nil && before.Name == req.Name && before.MAC == req.MAC {
		t.Made.DHCP = before.DHCP // the witness found who had it all the time
	}
	return t.SetLease(t.Sub.ID, addr, before, t.Made)
}

// takeOver ends a lease that its endpoint has lost, and leases the address to the next one in the same transaction.
func (t *Target) takeOver(req ipam.AddressRequest, held *ipam.Lease) error {
	req.TakeHint()
	if _, err := t.Event(ipam.EndOf(t.Sub, held)); err != nil {
		return err
	}
	return t.Take(req, held.Address, held, held.Kind)
}

// auxiliaryTime is the maximum time between the requests for a pool and for its auxiliary addresses. The engine makes
// them at once.
const auxiliaryTime = time.Second

// KindOf is the kind of a new lease. It distinguishes a requested address from one that the network keeps for itself
// (`--aux-address`). An engine that sends neither MAC nor name uses the same words for both; requests right after the
// pool are the network's. The witness corrects errors (NameLeases). A swarm's manager sends neither for anything. at is
// nil if the store is unreachable, when no pool can be made.
func KindOf(req ipam.AddressRequest, at *ipam.Attachment, now time.Time) ipam.Kind {
	switch {
	case !req.Preferred.IsValid():
		return ipam.Automatic
	case req.MAC != (ipam.MAC{}) || req.Name != "" || at != nil && at.Swarm:
		return ipam.Static
	case req.Telling, at != nil && now.Sub(at.Created) <= auxiliaryTime:
		return ipam.Auxiliary
	}
	return ipam.Static
}

// surelyAuxiliary reports whether an endpoint would have sent a MAC or a name.
func surelyAuxiliary(req *ipam.AddressRequest, at *ipam.Attachment) bool {
	return req.MAC == (ipam.MAC{}) && req.Name == "" && !at.Swarm && req.Telling
}
