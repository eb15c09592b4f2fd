package view

import (
	"net/netip"

	"go4.org/netipx"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// rowing reads the rows of a layout.
type rowing struct {
	s        *ledger.Ledger
	sub      *ipam.SubnetInfo
	coverage coverage
	f        ipam.LayoutFilter
	rows     []ipam.LayoutRow
}

// full reports whether there are more rows than the limit. The last row is where the next page begins.
func (r *rowing) full() bool { return r.f.Limit > 0 && len(r.rows) > r.f.Limit }

// read reads the rows of a part of the subnet, and where the next page begins.
func (r *rowing) read(tx store.Tx, within netip.Prefix) ([]ipam.LayoutRow, netip.Addr, error) {
	next, last := within.Addr(), ipam.LastAddr(within)
	if within.Contains(r.f.From) {
		next = r.f.From
	}
	scan := ledger.LeasesOf(r.sub.ID)
	scan.From = ledger.LeaseKey(nil, r.sub.ID, next)
	for rec, err := range tx.Scan(scan) {
		if err != nil {
			return nil, next, err
		}
		_, addr, _ := ledger.LeaseKeyParts(rec.Key)
		if last.Less(addr) || r.full() {
			break
		}
		l, err := ipam.DecodeLease(addr, rec.Value)
		if err != nil {
			return nil, next, err
		}
		if row, ok := r.of(l); ok {
			if next.Less(addr) {
				r.open(netipx.IPRangeFrom(next, addr.Prev()))
			}
			r.rows = append(r.rows, row)
			if addr == last {
				next = netip.Addr{}
				break
			}
			next = addr.Next()
		}
	}
	if next.IsValid() && !r.full() {
		r.open(netipx.IPRangeFrom(next, last))
	}
	if r.full() {
		return r.rows[:r.f.Limit], r.rows[r.f.Limit].Range.From(), nil
	}
	return r.rows, netip.Addr{}, nil
}

// open appends the ranges of the coverage in a gap between rows.
func (r *rowing) open(gap netipx.IPRange) {
	for _, s := range r.coverage[r.coverage.at(gap.From()):] {
		both, ok := ledger.Intersect(s.IPRange, gap)
		if !ok || r.full() {
			return
		}
		r.rows = append(r.rows, ipam.LayoutRow{Range: ipam.Range{IPRange: both}, State: s.state, Pool: s.pool,
			Note: s.note})
	}
}

// of returns the row of a record. own is false if nobody has a claim to the address.
func (r *rowing) of(l *ipam.Lease) (row ipam.LayoutRow, own bool) {
	row.Range = ipam.Range{IPRange: netipx.IPRangeFrom(l.Address, l.Address)}
	if row.State = l.Claim().State("", r.s.Now()); row.State == "" {
		return row, false
	}
	if l.Kind != 0 {
		info := showLease(r.sub, l)
		row.Lease = &info
		row.Note = l.Note
		if l.Kind == ipam.Gateway && l.Address == r.sub.Gateway {
			row.Note = r.sub.GatewayNote
		}
	}
	if l.Reservation != nil {
		info := showReservation(r.s, r.sub, l)
		row.Reservation = &info
	}
	return row, true
}
