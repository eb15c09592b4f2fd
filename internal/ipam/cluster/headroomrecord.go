package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// headroomFacts is what the host's own store has about an attachment's headroom, except its addresses.
type headroomFacts struct {
	Space      string        `json:"space"`
	Network    string        `json:"network"` // its name
	CIDR       netip.Prefix  `json:"cidr"`
	Wanted     int           `json:"wanted"`
	Forget     bool          `json:"forget,omitempty"` // as in Policy
	Quarantine time.Duration `json:"quarantine,omitempty"`
}

// headroom is an attachment's headroom as the host knows it.
type headroom struct {
	headroomFacts
	addrs     map[netip.Addr]headroomAddr
	exhausted time.Time // when the last claim found nothing free, or zero
}

// headroomAddr is an address that is claimed as headroom in the shared store. The host leases it while that store is
// unreachable.
type headroomAddr struct {
	Lease    uint64                    `json:"lease"`
	Holder   *allocator.HeadroomHolder `json:"holder,omitempty"`  // the holder or the last one, or nil
	Released time.Time                 `json:"released,omitzero"` // the end of the use; zero while it lasts
	// it was reported to the shared store, and may have arrived
	Told bool `json:"told,omitempty"`

	LeftBehind bool `json:"left_behind,omitempty"` // the IPv6 address of the same start was refused
}

// held reports whether the address is held now.
func (a *headroomAddr) held() bool { return a.Holder != nil && a.Released.IsZero() }

// free reports whether the address may be leased. After its use it may not while the shared store may have it as the
// lease of its last holder.
func (a *headroomAddr) free() bool { return !a.held() && !a.Told }

// lease returns the record that the address would have in the shared store if that knew its holder. It never fails.
func (hr *headroom) lease(addr netip.Addr) (l *ipam.Lease, err error) {
	one := hr.addrs[addr]
	if h := one.Holder; h != nil {
		l = &ipam.Lease{ID: one.Lease, Address: addr, Kind: h.Kind, MAC: h.MAC, Name: h.Name, Container: h.Container,
			Since: h.Since, Released: one.Released}
		if !l.Held() {
			l.QuarantineUntil = one.Released.Add(hr.Quarantine)
		}
	}
	return l, nil
}

// index returns an index of the holders and last holders of the addresses.
func (hr *headroom) index() *ledger.SubnetIndex {
	leases := make([]*ipam.Lease, 0, len(hr.addrs))
	for addr := range hr.addrs {
		if l, _ := hr.lease(addr); l != nil && hr.CIDR.Contains(addr) {
			leases = append(leases, l)
		}
	}
	return ledger.IndexOf(hr.CIDR, leases)
}

// toTell returns the addresses to report to the shared store, in order.
func (hr *headroom) toTell() (all []netip.Addr) {
	for addr, one := range hr.addrs {
		if !one.free() {
			all = append(all, addr)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

// lost returns the lease that the endpoint of req has lost, by allocator.Repeated, or nil. A lease from before the
// daemon's start is in doubt, because no witness sees its holder while the store is unreachable.
func (hr *headroom) lost(req *ipam.AddressRequest, started time.Time) (*ipam.Lease, error) {
	return allocator.Repeated(hr.index(), req, "", hr.lease, func(l *ipam.Lease) bool {
		one := hr.addrs[l.Address]
		return one.heldBy(req) && one.mayBeLost(started)
	})
}

// mayBeLost reports whether it is in doubt that the holder still has the address.
func (a *headroomAddr) mayBeLost(started time.Time) bool {
	return a.LeftBehind || a.Holder.Since.Before(started)
}

// heldBy reports whether the requesting endpoint holds the address. The MAC must match, and so must the name if one is
// sent.
func (a *headroomAddr) heldBy(req *ipam.AddressRequest) bool {
	if !a.held() || req.Gateway || req.MAC == (ipam.MAC{}) {
		return false
	}
	return allocator.SameEndpoint(req, a.Holder.MAC, a.Holder.Name)
}

// readHeadroom reads the headroom that the host knows, by attachment.
func readHeadroom(tx store.Tx) (map[ipam.ID]*headroom, error) {
	all := map[ipam.ID]*headroom{}
	for rec, err := range tx.Scan(ledger.KindRange(headroomKeys)) {
		if err != nil {
			return nil, err
		}
		if err := takeIn(all, rec); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// takeIn adds one record. The record of an attachment comes before those of its addresses.
func takeIn(all map[ipam.ID]*headroom, rec store.Record) error {
	if len(rec.Key) < 17 {
		return fmt.Errorf("%w: the key %x is not the key of a headroom", ipam.ErrDamaged, rec.Key)
	}
	pool := ipam.ID(rec.Key[1:17])
	if len(rec.Key) == 17 {
		hr := &headroom{addrs: map[netip.Addr]headroomAddr{}}
		all[pool] = hr
		return ipam.DecodeJSON("the headroom of pool "+pool.String(), rec.Value, &hr.headroomFacts)
	}
	addr, ok := netip.AddrFromSlice(rec.Key[17:])
	hr := all[pool]
	if !ok || hr == nil {
		return fmt.Errorf("%w: the key %x is not the key of a headroom address", ipam.ErrDamaged, rec.Key)
	}
	var one headroomAddr
	if err := ipam.DecodeJSON("the headroom "+addr.String(), rec.Value, &one); err != nil {
		return err
	}
	if one.Lease == 0 || one.Holder == nil && (one.Told || !one.Released.IsZero()) {
		return fmt.Errorf("%w: the headroom %s of pool %s contradicts itself", ipam.ErrDamaged, addr, pool)
	}
	hr.addrs[addr] = one
	return nil
}
