package view

import (
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// history follows the tenures that a filter chooses through the events, in order. It keeps only those tenures.
type history struct {
	s      *ledger.Ledger
	f      ipam.WhoFilter
	forms  []string              // of the name in the filter
	oldest time.Time             // time of the kept events
	open   map[tenant]*beginning // begun by the events, and not ended
	known  map[tenant]*beginning // from the records, without those that ended since they were read
	swept  map[tenant]bool       // ended with their subnet; their sweep comes later
	used   map[tenant]*beginning // leases that were headroom before; their first event names no holder
	ended  []ipam.Tenure
}

// tenant identifies a tenure that lasts: a lease by its id, a reservation by its address.
type tenant struct {
	lease uint64
	space string
	addr  netip.Addr
}

// beginning is a tenure that has begun.
type beginning struct {
	ipam.Tenure
	id         uint64  // id of the event that began it
	attachment ipam.ID // through which the address is held
}

func newHistory(s *ledger.Ledger, f ipam.WhoFilter) *history {
	return &history{s: s, f: f, forms: ipam.Forms(f.Name), open: map[tenant]*beginning{},
		known: map[tenant]*beginning{}, swept: map[tenant]bool{},
		used: map[tenant]*beginning{}}
}

// note adds the tenures in the record of an address. They count as Early unless the event of their beginning is kept.
func (h *history) note(sub *ipam.SubnetInfo, l *ipam.Lease) {
	if l == nil {
		return
	}
	t := ipam.Tenure{Space: sub.Space, Network: sub.Network, NetworkID: sub.NetworkID, Subnet: sub.CIDR,
		Address: l.Address, Early: true}
	if l.Kind != 0 && h.chooses(sub.Space, l.Address, l.MAC, l.Name) {
		had := t
		had.What, had.Kind, had.Lease, had.Name, had.MAC, had.Host = ipam.LeaseTenure, l.Kind.String(), l.ID, l.Name,
			l.MAC, l.Host
		had.From, had.Until, had.Note = l.Since, l.Left(), l.Note
		if l.Kind == ipam.Gateway && l.Address == sub.Gateway {
			had.Note = sub.GatewayNote
		}
		h.known[tenant{lease: l.ID}] = &beginning{had, l.ID, l.Attachment}
	}
	if r := l.Reservation; r != nil && h.chooses(sub.Space, l.Address, ipam.MAC{}, r.Owner) {
		t.What, t.Kind, t.Name, t.From = ipam.ReservationTenure, r.Kind.String(), r.Owner, r.Since()
		t.Note = r.Note
		h.known[tenant{space: t.Space, addr: t.Address}] = &beginning{Tenure: t, id: r.ID}
	}
}

// add handles the next event.
func (h *history) add(ctx context.Context, e *ipam.Event) (err error) {
	switch e.Verb {
	case ipam.LeaseTaken, ipam.GatewaySet:
		b := beginningOf(e)
		if b.Lease != e.ID {
			h.used[tenant{lease: b.Lease}] = b
		}
		// the name may be newer than the lease
		if k := (tenant{lease: b.Lease}); h.known[k] != nil || h.choosesEvent(e) {
			h.open[k] = b
		}
	case ipam.LeaseMoved, ipam.LeaseNamed, ipam.LeaseNoted, ipam.GuessedWrong, ipam.LeaseReleased:
		err = h.goOn(ctx, e)
	case ipam.ReservationAdded:
		h.reserve(e)
	case ipam.ReservationModified:
		if b := h.open[tenant{space: e.Space, addr: e.Address}]; b != nil {
			b.Kind, b.Note = kindIn(e.Detail), factsIn(e.After).Note
		}
	case ipam.ReservationRemoved:
		h.unreserve(e)
	case ipam.ElasticAssociated, ipam.ElasticDisassociated:
		h.associate(e)
	case ipam.PoolReleased: // the leases of the pool have their own events, except gateways
		h.endAll(e, func(b *beginning) bool { return b.Kind == ipam.Gateway.String() && b.attachment == e.Attachment })
	case ipam.SubnetModified:
		h.endAll(e, func(b *beginning) bool { return b.Kind == ipam.Gateway.String() && b.isGatewayBefore(e) })
		h.noteGateway(e)
	case ipam.SubnetRemoved:
		h.endAll(e, func(b *beginning) bool { return b.Space == e.Space && e.Subnet.Contains(b.Address) })
	}
	return err
}

func (h *history) choosesEvent(e *ipam.Event) bool {
	return h.chooses(e.Space, e.Address, e.MAC, e.Name)
}

// tenureOf returns a tenure of an event's address that begins with the event.
func tenureOf(e *ipam.Event, what, name string) ipam.Tenure {
	return ipam.Tenure{Space: e.Space, Network: e.Network, NetworkID: e.NetworkID, Subnet: e.Subnet, Address: e.Address,
		What: what, Name: name, From: e.Time}
}

// beginningOf returns the tenure that an event began: that of a lease or of a subnet's gateway.
func beginningOf(e *ipam.Event) *beginning {
	t := tenureOf(e, ipam.LeaseTenure, e.Name)
	t.Kind, t.Lease, t.MAC, t.Host, t.By = kindIn(e.Detail), cmp.Or(e.Lease, e.ID), e.MAC, e.Host, e.Actor
	t.Note = factsIn(e.After).Note
	if e.Verb == ipam.GatewaySet {
		t.Kind = ipam.Gateway.String()
		return &beginning{Tenure: t, id: e.ID} // it belongs to the subnet, not to an attachment
	}
	return &beginning{t, e.ID, e.Attachment}
}

// kindIn reads the kind of a lease or reservation, which is the first word of an event's detail.
func kindIn(detail string) string {
	word, _, _ := strings.Cut(detail, " ")
	if new(ipam.Kind).UnmarshalText([]byte(word)) != nil {
		return ""
	}
	return word
}

// goOn handles an event of a lease that has begun before this event, perhaps before the events that are read.
func (h *history) goOn(ctx context.Context, e *ipam.Event) error {
	k := tenant{lease: e.Lease}
	if h.swept[k] {
		return nil // it has already ended
	}
	if h.open[k] == nil {
		b, err := h.earlier(ctx, k, e)
		if err != nil {
			return err
		}
		if b == nil {
			return nil
		}
		h.open[k] = b
	}
	b := h.open[k]
	if e.Name != "" {
		b.Name = e.Name
	}
	switch e.Verb {
	case ipam.GuessedWrong: // the guess was wrong: that container never had it
		if !h.chooses(b.Space, b.Address, b.MAC, b.Name) {
			delete(h.open, k)
		}
	case ipam.LeaseNoted:
		b.Note = factsIn(e.After).Note
	case ipam.LeaseMoved:
		b.attachment = e.Attachment
	case ipam.LeaseReleased:
		h.end(k, e)
	}
	return nil
}

// earlier returns the beginning of a lease that the filter chooses only because of this event, or whose first event is
// not kept any more. It returns nil if the filter does not choose the event.
func (h *history) earlier(ctx context.Context, k tenant, e *ipam.Event) (b *beginning, err error) {
	if known := h.known[k]; known != nil {
		return known, nil
	}
	if !h.choosesEvent(e) {
		return nil, nil
	}
	if used := h.used[k]; used != nil {
		return used, nil
	}
	began, err := findEvent(ctx, h.s, e.Lease)
	if err != nil {
		return nil, err
	}
	if began != nil && began.Verb != ipam.HeadroomClaimed { // its holder at that time is not known any more
		return beginningOf(began), nil
	}
	t := tenureOf(e, ipam.LeaseTenure, e.Name)
	t.Lease, t.MAC, t.Host, t.From, t.Early = e.Lease, e.MAC, e.Host, ipam.EventTime(e.Lease), true
	if t.From.After(e.Time) { // the ids were ahead of the clock, so the real time is unknown
		t.From = h.oldest
	}
	return &beginning{t, e.Lease, e.Attachment}, nil
}

// reserve begins a reservation. In a dynamic network a reservation has no address, so it is no tenure.
func (h *history) reserve(e *ipam.Event) {
	if e.Address.IsValid() && h.choosesEvent(e) {
		t := tenureOf(e, ipam.ReservationTenure, e.Name)
		t.Kind, t.By, t.Note = kindIn(e.Detail), e.Actor, factsIn(e.After).Note
		h.open[tenant{space: e.Space, addr: e.Address}] = &beginning{Tenure: t, id: e.ID}
	}
}

// unreserve ends a reservation. If its first event is not kept, the time of its beginning is unknown.
func (h *history) unreserve(e *ipam.Event) {
	k := tenant{space: e.Space, addr: e.Address}
	if e.Detail == allocator.SubnetGone && (h.isSwept(k) || h.open[k] != nil) {
		return // it has already ended, and the address may be in another subnet now
	}
	switch known := h.known[k]; {
	case h.open[k] != nil:
	case known != nil && known.id < e.ID:
		h.open[k] = known
	case e.Address.IsValid() && h.choosesEvent(e):
		t := tenureOf(e, ipam.ReservationTenure, e.Name)
		t.From, t.Early = h.oldest, true
		was := factsIn(e.Before)
		if t.Note = was.Note; was.Kind != 0 {
			t.Kind = was.Kind.String()
		}
		h.open[k] = &beginning{Tenure: t}
	default:
		return
	}
	h.end(k, e)
}

// factsIn reads the facts about a reservation in an event, or nothing.
func factsIn(told json.RawMessage) (facts ledger.ReservationFacts) {
	if json.Unmarshal(told, &facts) != nil {
		return ledger.ReservationFacts{}
	}
	return facts
}

// isSwept reports whether a reservation already ended with its subnet. After a crash the space of a sweep is unknown.
func (h *history) isSwept(k tenant) bool {
	if h.swept[k] || k.space != "" {
		return h.swept[k]
	}
	for other := range h.swept {
		if other.addr == k.addr {
			return true
		}
	}
	return false
}

// isGatewayBefore reports whether the tenure is that of the gateway which the subnet had before an event.
func (b *beginning) isGatewayBefore(e *ipam.Event) bool {
	if b.Space != e.Space || !e.Subnet.Contains(b.Address) {
		return false
	}
	var was ipam.SubnetFacts // the fields that differ
	return json.Unmarshal(e.Before, &was) == nil && was.Gateway == b.Address.String()
}

// noteGateway sets the note of a subnet's gateway, if the event changes it.
func (h *history) noteGateway(e *ipam.Event) {
	var was, is ipam.SubnetFacts
	if json.Unmarshal(e.Before, &was) != nil || json.Unmarshal(e.After, &is) != nil ||
		was.GatewayNote == is.GatewayNote {
		return
	}
	for _, b := range h.open {
		if b.Kind == ipam.Gateway.String() && b.attachment == (ipam.ID{}) && b.Space == e.Space &&
			e.Subnet.Contains(b.Address) {
			b.Note = is.GatewayNote
		}
	}
}

// endAll ends the tenures that an event ends without events of their own.
func (h *history) endAll(e *ipam.Event, ends func(*beginning) bool) {
	for k, b := range h.open {
		if ends(b) {
			h.end(k, e)
		}
	}
}

// end ends a tenure with an event.
func (h *history) end(k tenant, e *ipam.Event) {
	b := h.open[k]
	b.Subnet, b.Until, b.EndedBy = e.Subnet, e.Time, e.Actor
	delete(h.open, k)
	if e.Verb == ipam.SubnetRemoved {
		h.swept[k] = true
	}
	if known := h.known[k]; known != nil && known.id < e.ID {
		delete(h.known, k)
	}
	if lasted(&h.f, &b.Tenure) {
		h.ended = append(h.ended, b.Tenure)
	}
}
