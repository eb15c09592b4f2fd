package page

import (
	"cmp"
	"math/big"
	"net/netip"
	"time"

	"go4.org/netipx"

	"berth/internal/alloc"
	"berth/internal/ipam"
)

// holder describes the holder, last holder or owner of an address.
type holder struct {
	name, owner, container, kind, host, note string
	mac                                      ipam.MAC
	since, until                             any
	ends                                     time.Time // of the reservation
	// of a DHCP lease
	dhcp, why string
	server    netip.Addr
	expires   time.Time
}

// lanColumns are the columns of a DHCP lease, in the order of holder.lan.
var lanColumns = [...]string{"dhcp_state", "DHCP", "dhcp_server", "-DHCP server", "dhcp_expires", "-Lease ends",
	"dhcp_why", "-Why"}

// lan returns the cells of a DHCP lease. They are empty if there is none.
func (p *Page) lan(h *holder) row {
	return p.row(h.dhcp, h.server, h.expires, h.why)
}

// whoHas returns who has the address of a row, had it last, or owns it.
func (p *Page) whoHas(row *ipam.LayoutRow) (h holder) {
	h.note = row.Note
	if l := row.Lease; l != nil {
		h.name, h.owner, h.host, h.kind = l.Name, l.Owner, l.Host, l.Kind.String()
		h.mac = l.MAC
		h.since, h.until = l.Since, l.QuarantineUntil
		if d := l.DHCP; d != nil {
			h.dhcp, h.server, h.expires, h.why = d.State.String(), d.Server, d.Expires, d.Why
		}
		if row.State == ipam.AddressLeased {
			h.until = time.Time{}
		}
		h.container = p.containerOf(l)
	}
	if r := row.Reservation; r != nil {
		h.owner, h.note, h.ends = r.Owner, cmp.Or(h.note, r.Note), r.Until
		if row.Lease == nil {
			h.kind, h.since = r.Kind.String(), r.Since
		}
	}
	return h
}

func sizeOf(r ipam.Range) *big.Int { return alloc.Size(r.IPRange) }

// stateCell shows a state with its sign, so that nobody needs to distinguish colours.
func stateCell(state ipam.AddressState) cell {
	l := state.Legend()
	return cell{Value: string(state), Text: l.Word, Sign: l.Sign, State: string(state)}
}

func sizeOfPrefix(p netip.Prefix) *big.Int { return alloc.Size(netipx.RangeOfPrefix(p)) }

// containerOf returns the container that has a lease, if the witness knows it.
func (p *Page) containerOf(l *ipam.LeaseInfo) string {
	if p.cfg.SeenBy == nil {
		return ""
	}
	by := p.cfg.SeenBy(l.Space, l.Address, l.ID)
	if by == nil {
		return ""
	}
	return by.Container
}
