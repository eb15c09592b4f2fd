package ipam

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"time"
)

// WhoFilter chooses tenures: by exactly one of Address, MAC and Name.
type WhoFilter struct {
	Address netip.Addr
	MAC     MAC       // of an endpoint, or an owner
	Name    string    // of an endpoint, also as it was learnt later, or an owner
	Space   string    // empty: all
	At      time.Time // only who had it then; zero: whenever
}

// What a tenure is of.
const (
	LeaseTenure       = "lease"
	ReservationTenure = "reservation"
)

// Tenure is the time for which somebody had, or owned, an address: from From on and before Until.
type Tenure struct {
	Space   string       `json:"space"`
	Subnet  netip.Prefix `json:"subnet"` // as it was last
	Address netip.Addr   `json:"address"`
	What    string       `json:"what"` // lease or reservation
	Kind    string       `json:"kind,omitempty"`
	Lease   uint64       `json:"lease,omitempty"`
	Name    string       `json:"name,omitempty"` // the endpoint's, or the owner
	MAC     MAC          `json:"mac,omitzero"`
	Host    string       `json:"host,omitempty"`
	From    time.Time    `json:"from"`               // of an Early reservation that has ended: at the latest
	Until   time.Time    `json:"until,omitzero"`     // zero: to this day
	By      string       `json:"by,omitempty"`       // the actor who took or reserved it
	EndedBy string       `json:"ended_by,omitempty"` // the actor who ended it
	Early   bool         `json:"early,omitempty"`    // it began before the events that are kept
}

// Who tells who has an address, who had it, and what a MAC or a name had, out of the events and the records, the earliest
// first. What events no longer tell is known of leases that last, and of the last one of an address that is remembered.
func (s *Service) Who(ctx context.Context, f WhoFilter) ([]Tenure, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	f.Name = canonicalOwner(f.Name)
	h := newHistory(s, f)
	if err := h.readRecords(ctx); err != nil { // first, so that what ends meanwhile is seen to end
		return nil, err
	}
	if err := h.readEvents(ctx); err != nil {
		return nil, err
	}
	return h.tenures(), nil
}

func (f *WhoFilter) check() error {
	given := 0
	for _, is := range []bool{f.Address.IsValid(), f.MAC != (MAC{}), f.Name != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		return &refusal{ErrInvalid, "ask for one of an address, a MAC and a name"}
	}
	return nil
}

// chooses tells whether the filter is about whoever this is. A MAC may be an owner, whose name it is then.
func (f *WhoFilter) chooses(space string, addr netip.Addr, mac MAC, name string) bool {
	switch {
	case f.Space != "" && f.Space != space:
		return false
	case f.Address.IsValid():
		return addr == f.Address
	case f.MAC != (MAC{}):
		return mac == f.MAC || name == f.MAC.String()
	}
	return name == f.Name
}

// lasted tells whether the tenure has a part in the time that is asked for.
func (f *WhoFilter) lasted(t *Tenure) bool {
	return f.At.IsZero() || !t.From.After(f.At) && (t.Until.IsZero() || f.At.Before(t.Until))
}

// readRecords notes the leases, memories and reservations that there are.
func (h *history) readRecords(ctx context.Context) error {
	subnets, err := h.s.Subnets(ctx, h.f.Space)
	if err != nil {
		return err
	}
	for i := range subnets {
		sub := &subnets[i]
		switch {
		case !h.f.Address.IsValid():
			for l, err := range h.s.records(ctx, sub.ID, netip.Addr{}) {
				if err != nil {
					return err
				}
				h.note(sub, l)
			}
		case sub.CIDR.Contains(h.f.Address):
			l, err := h.s.recordOf(ctx, sub.ID, h.f.Address)
			if err != nil {
				return err
			}
			h.note(sub, l)
		}
	}
	return nil
}

// recordOf reads the record of an address; nil where it has none.
func (s *Service) recordOf(ctx context.Context, subnet ID, addr netip.Addr) (l *Lease, err error) {
	err = s.look(ctx, func(c *change) (err error) {
		l, err = c.lease(subnet, addr)
		return err
	})
	return l, err
}

// readEvents goes through all events, a page at a time.
func (h *history) readEvents(ctx context.Context) error {
	for f := (EventFilter{First: pageSize}); ; {
		page, err := h.s.Events(ctx, f)
		if err != nil {
			return err
		}
		for i := range page {
			if err := h.add(ctx, &page[i]); err != nil {
				return err
			}
		}
		if len(page) < pageSize {
			return nil
		}
		f.After = page[pageSize-1].ID
	}
}

// tenures are those that the filter chooses, the earliest first.
func (h *history) tenures() []Tenure {
	all := h.ended
	for k, b := range h.open {
		if known := h.known[k]; known != nil {
			b.Subnet = known.Subnet // which may have another size by now
			delete(h.known, k)
		}
		all = append(all, b.Tenure)
	}
	for _, b := range h.known {
		all = append(all, b.Tenure)
	}
	all = slices.DeleteFunc(all, func(t Tenure) bool { return !h.f.lasted(&t) })
	slices.SortFunc(all, orderTenures)
	return all
}

func orderTenures(a, b Tenure) int {
	return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Space, b.Space), a.Address.Compare(b.Address), cmp.Compare(a.What, b.What))
}
