package view

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// Who tells who has an address, who had it, and what a MAC or a name had, out of the events and the records, the
// earliest first. What events no longer tell is known of leases that last, and of the last one of an address that is
// remembered.
func (s Views) Who(ctx context.Context, f ipam.WhoFilter) ([]ipam.Tenure, error) {
	if err := check(&f); err != nil {
		return nil, err
	}
	return ledger.Merged(s.homes, OrderTenures, func(l *ledger.Ledger) ([]ipam.Tenure, error) {
		return tenures(ctx, l, f)
	})
}

func tenures(ctx context.Context, s *ledger.Ledger, f ipam.WhoFilter) ([]ipam.Tenure, error) {
	h := newHistory(s, f)
	if err := h.readRecords(ctx); err != nil { // first, so that what ends meanwhile is seen to end
		return nil, err
	}
	if err := h.readEvents(ctx); err != nil {
		return nil, err
	}
	return h.tenures(), nil
}

func check(f *ipam.WhoFilter) error {
	given := 0
	for _, is := range []bool{f.Address.IsValid(), f.MAC != (ipam.MAC{}), f.Name != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		return ipam.Refuse(ipam.ErrInvalid, "ask for one of an address, a MAC and a name")
	}
	return nil
}

// chooses tells whether the filter is about whoever this is. A MAC may be an owner, whose name it is then, and a name
// one of the forms of another.
func (h *history) chooses(space string, addr netip.Addr, mac ipam.MAC, name string) bool {
	switch f := &h.f; {
	case f.Space != "" && f.Space != space:
		return false
	case f.Address.IsValid():
		return addr == f.Address
	case f.MAC != (ipam.MAC{}):
		return mac == f.MAC || name == f.MAC.String()
	}
	return ipam.IsForm(h.forms, name)
}

// lasted tells whether the tenure has a part in the time that is asked for.
func lasted(f *ipam.WhoFilter, t *ipam.Tenure) bool {
	return f.At.IsZero() || !t.From.After(f.At) && (t.Until.IsZero() || f.At.Before(t.Until))
}

// readRecords notes the leases, memories, reservations and associations that there are.
func (h *history) readRecords(ctx context.Context) error {
	all := subnets(h.s, h.f.Space, name)
	for i := range all {
		sub := &all[i]
		records := records(ctx, h.s, sub.ID, netip.Addr{})
		if h.f.Address.IsValid() {
			if !sub.CIDR.Contains(h.f.Address) {
				continue
			}
			records = recordAt(ctx, h.s, sub.ID, h.f.Address, netip.Addr{})
		}
		for l, err := range records {
			if err != nil {
				return err
			}
			h.note(sub, l)
		}
	}
	h.readElastics()
	return ctx.Err()
}

// recordOf reads the record of an address; nil where it has none.
func recordOf(ctx context.Context, s *ledger.Ledger, subnet ipam.ID, addr netip.Addr) (*ipam.Lease, error) {
	return ledger.Look(ctx, s, func(c *ledger.Change) (*ipam.Lease, error) { return c.Lease(subnet, addr) })
}

// readEvents goes through all events, a page at a time.
func (h *history) readEvents(ctx context.Context) error {
	for next, more := uint64(0), true; more; {
		var page []ipam.Event
		from := next
		err := h.s.View(ctx, func(tx store.Tx) (err error) {
			page, next, err = h.readPage(tx, from)
			more = next > from
			return err
		})
		if err != nil {
			return err
		}
		for i := range page {
			if err := h.add(ctx, &page[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// readPage reads the events of a page that may bear on what is asked for, and where the next page begins; 0: there is
// none. Of one address there are few among very many.
func (h *history) readPage(tx store.Tx, from uint64) (page []ipam.Event, next uint64, err error) {
	n := 0
	for at, err := range ledger.EventsIn(tx, ledger.EventRange{From: from}) {
		if err != nil {
			return nil, 0, err
		}
		if n++; n > ledger.PageSize {
			return page, at.ID, nil
		}
		if h.oldest.IsZero() {
			h.oldest = at.Time()
		}
		if addr, ok := at.Address(); ok && h.f.Address.IsValid() && addr.IsValid() && addr != h.f.Address {
			continue
		}
		e, err := at.Decode()
		if err != nil {
			return nil, 0, err
		}
		page = append(page, *e)
	}
	return page, 0, nil
}

// tenures are those that the filter chooses, the earliest first.
func (h *history) tenures() []ipam.Tenure {
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
	all = slices.DeleteFunc(all, func(t ipam.Tenure) bool { return !lasted(&h.f, &t) })
	slices.SortFunc(all, OrderTenures)
	return all
}

// OrderTenures is the order in which tenures are listed.
func OrderTenures(a, b ipam.Tenure) int {
	return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Space, b.Space), a.Address.Compare(b.Address),
		cmp.Compare(a.What, b.What))
}
