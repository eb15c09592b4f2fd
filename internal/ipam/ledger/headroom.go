package ledger

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/store"
)

// StockFacts is what the host's own store says of one attachment's headroom, beside the addresses.
type StockFacts struct {
	Space      string        `json:"space"`
	Network    string        `json:"network"` // its name
	CIDR       netip.Prefix  `json:"cidr"`
	Wanted     int           `json:"wanted"`
	Forget     bool          `json:"forget,omitempty"` // as in Policy
	Quarantine time.Duration `json:"quarantine,omitempty"`
}

// Stock is the headroom of one attachment, as the host knows it.
type Stock struct {
	StockFacts
	Spares    map[netip.Addr]Spare
	Exhausted time.Time // when nothing was free to be claimed; zero: there was
}

// Spare is an address that is claimed in the shared store as headroom, and which the host gives out while that store is
// out of reach.
type Spare struct {
	Lease    uint64    `json:"lease"`
	Use      *Use      `json:"use,omitempty"`     // who has it or had it last; nil: nobody had it
	Released time.Time `json:"released,omitzero"` // the end of the use; zero: it lasts
	Told     bool      `json:"told,omitempty"`    // the shared store was told of the use, and may have taken it in

	LeftBehind bool `json:"left_behind,omitempty"` // the IPv6 address of the same start was refused
}

// Used tells whether somebody has the address now.
func (sp *Spare) Used() bool { return sp.Use != nil && sp.Released.IsZero() }

// Free tells whether it may be given out. One whose use has ended may not as long as the shared store may have it as
// the lease of who had it.
func (sp *Spare) Free() bool { return !sp.Used() && !sp.Told }

// IsOf tells whether the address was last in the hands of who asks: of the same name, or MAC.
func (sp *Spare) IsOf(req *ipam.AddressRequest) bool {
	if sp.Use == nil {
		return false
	}
	name := ipam.RememberedName(req.Name)
	return name != "" && ipam.RememberedName(sp.Use.Name) == name || req.MAC != (ipam.MAC{}) && sp.Use.MAC == req.MAC
}

// Uses are the addresses of which the shared store is to be told, in order.
func (st *Stock) Uses() (all []netip.Addr) {
	for addr, sp := range st.Spares {
		if !sp.Free() {
			all = append(all, addr)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

// Lost is the address that the endpoint of req has lost, by the same rule as everywhere (choose.Target.Repeats), the
// latest of several; the zero one where there is none. What was given before the daemon's start is in doubt: nobody
// sees who has it while the store is away.
func (st *Stock) Lost(req *ipam.AddressRequest, started time.Time) (lost netip.Addr) {
	var since time.Time
	for addr, sp := range st.Spares {
		if req.Preferred.IsValid() && req.Preferred != addr || !sp.UsedBy(req) || !sp.MayBeLost(started) {
			continue
		}
		if at := sp.Use.Since; !lost.IsValid() || at.After(since) || at.Equal(since) && addr.Less(lost) {
			lost, since = addr, at
		}
	}
	return lost
}

// MayBeLost tells whether it is in doubt that the one has the address who was given it.
func (sp *Spare) MayBeLost(started time.Time) bool {
	return sp.LeftBehind || sp.Use.Since.Before(started)
}

// UsedBy tells whether an endpoint with the MAC of who asks has the address, and with its name where one is sent.
func (sp *Spare) UsedBy(req *ipam.AddressRequest) bool {
	if !sp.Used() || req.Gateway || req.MAC == (ipam.MAC{}) || sp.Use.MAC != req.MAC {
		return false
	}
	return req.Name == "" || sp.Use.Name == req.Name
}

// ReadStocks reads the headroom that the host knows of, by attachment.
func ReadStocks(tx store.Tx) (map[ipam.ID]*Stock, error) {
	all := map[ipam.ID]*Stock{}
	for rec, err := range tx.Scan(KindRange(HeadroomKeys)) {
		if err != nil {
			return nil, err
		}
		if err := TakeStock(all, rec); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// TakeStock takes in one record of the headroom, that of an attachment before those of its addresses.
func TakeStock(all map[ipam.ID]*Stock, rec store.Record) error {
	if len(rec.Key) < 17 {
		return fmt.Errorf("%w: the key %x names no headroom", ipam.ErrDamaged, rec.Key)
	}
	pool := ipam.ID(rec.Key[1:17])
	if len(rec.Key) == 17 {
		st := &Stock{Spares: map[netip.Addr]Spare{}}
		all[pool] = st
		return ipam.DecodeJSON("the headroom of pool "+pool.String(), rec.Value, &st.StockFacts)
	}
	addr, ok := netip.AddrFromSlice(rec.Key[17:])
	st := all[pool]
	if !ok || st == nil {
		return fmt.Errorf("%w: the key %x names no address of a headroom", ipam.ErrDamaged, rec.Key)
	}
	var sp Spare
	if err := ipam.DecodeJSON("the headroom "+addr.String(), rec.Value, &sp); err != nil {
		return err
	}
	if sp.Lease == 0 || sp.Use == nil && (sp.Told || !sp.Released.IsZero()) {
		return fmt.Errorf("%w: the headroom %s of pool %s contradicts itself", ipam.ErrDamaged, addr, pool)
	}
	st.Spares[addr] = sp
	return nil
}

// claims are the addresses of a subnet that are headroom, by the attachment.
type claims map[ipam.ID]map[netip.Addr]struct{}

func (c *claims) add(l *ipam.Lease) {
	if l.Kind != ipam.Headroom {
		return
	}
	if *c == nil {
		*c = claims{}
	}
	if (*c)[l.Attachment] == nil {
		(*c)[l.Attachment] = map[netip.Addr]struct{}{}
	}
	(*c)[l.Attachment][l.Address] = struct{}{}
}

func (c claims) remove(l *ipam.Lease) {
	if l.Kind != ipam.Headroom {
		return
	}
	if delete(c[l.Attachment], l.Address); len(c[l.Attachment]) == 0 {
		delete(c, l.Attachment)
	}
}

// Use is whom a host has given an address of its headroom.
type Use struct {
	Kind  ipam.Kind `json:"kind"` // Automatic, Static or Auxiliary
	MAC   ipam.MAC  `json:"mac,omitzero"`
	Name  string    `json:"name,omitempty"`
	Since time.Time `json:"since"`
}
