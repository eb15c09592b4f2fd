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

// Who returns who has or had an address, or which addresses a MAC or a name has or had, the earliest first. It reads
// the events and the records. For leases that last, and for the remembered last lease of an address, the records
// replace events that are not kept any more.
func (s Views) Who(ctx context.Context, f ipam.WhoFilter) ([]ipam.Tenure, error) {
	if err := check(&f); err != nil {
		return nil, err
	}
	return ledger.Merged(s.homes, orderTenures, func(l *ledger.Ledger) ([]ipam.Tenure, error) {
		return tenures(ctx, l, f)
	})
}

func tenures(ctx context.Context, s *ledger.Ledger, f ipam.WhoFilter) ([]ipam.Tenure, error) {
	h := newHistory(s, f)
	if err := h.readRecords(ctx); err != nil { // before the events, so that an end meanwhile is noticed
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
		return ipam.Refuse(ipam.ErrInvalid, "give exactly one of an address, a MAC and a name")
	}
	return nil
}

// chooses reports whether the filter matches this holder. An owner may be a MAC, which is its name then, and a name may
// have several forms.
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

// lasted reports whether the tenure includes the requested time.
func lasted(f *ipam.WhoFilter, t *ipam.Tenure) bool {
	return f.At.IsZero() || !t.From.After(f.At) && (t.Until.IsZero() || f.At.Before(t.Until))
}

// readRecords notes the current leases, memories, reservations and associations.
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

// recordOf reads the record of an address. It returns nil if there is none.
func recordOf(ctx context.Context, s *ledger.Ledger, subnet ipam.ID, addr netip.Addr) (*ipam.Lease, error) {
	return ledger.Look(ctx, s, func(c *ledger.Change) (*ipam.Lease, error) { return c.Lease(subnet, addr) })
}

// readEvents reads all events, page by page.
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

// readPage reads those events of a page that may concern the filter, and where the next page begins, or 0 at the end.
// Only few of very many events concern one address.
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

// tenures returns the tenures that the filter chooses, the earliest first.
func (h *history) tenures() []ipam.Tenure {
	all := h.ended
	for k, b := range h.open {
		if known := h.known[k]; known != nil {
			b.Subnet = known.Subnet // which may have another size now
			delete(h.known, k)
		}
		all = append(all, b.Tenure)
	}
	for _, b := range h.known {
		all = append(all, b.Tenure)
	}
	all = slices.DeleteFunc(all, func(t ipam.Tenure) bool { return !lasted(&h.f, &t) })
	slices.SortFunc(all, orderTenures)
	return all
}

// orderTenures compares tenures by begin, space, address and kind.
func orderTenures(a, b ipam.Tenure) int {
	return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Space, b.Space), a.Address.Compare(b.Address),
		cmp.Compare(a.What, b.What))
}
