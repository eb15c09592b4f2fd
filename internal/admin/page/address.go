package page

import (
	"net/http"
	"net/netip"
	"slices"
	"time"

	"berth/internal/humantime"
	"berth/internal/ipam"
)

// address shows who has an address, who had it and, if a time is requested, who had it then.
func (p *Page) address(r *http.Request) (*shown, error) {
	q, err := query(r, "space", "at", "from")
	if err != nil {
		return nil, err
	}
	addr, err := netip.ParseAddr(r.PathValue("address"))
	if err != nil || addr.Zone() != "" {
		return nil, ipam.Refuse(ipam.ErrInvalid, "%q is not an address; write one such as 192.0.2.7 or 2001:db8::7",
			r.PathValue("address"))
	}
	addr = addr.Unmap()
	then, err := p.periodOf(q.Get("at"))
	if err != nil {
		return nil, err
	}
	s := &shown{Title: "Address " + addr.String(), File: "address", Still: true}
	if err := p.addressNow(r, s, addr, q.Get("space")); err != nil {
		return nil, err
	}
	if err := p.elasticNow(r, s, addr); err != nil {
		return nil, err
	}
	s.Blocks = append(s.Blocks, block{Ask: &asking{Action: link(rootOf(r), []string{"address", addr.String()}),
		Label: "Who had it at", Name: "at", Value: q.Get("at"), Button: "Show",
		Hint:   "A day such as 2026-11-17, a time such as 2026-11-17 10:00, or how long ago, such as 7d or 1d12h.",
		Hidden: []hidden{{"space", q.Get("space")}}}})
	return s, p.history(r, s, ipam.WhoFilter{Address: addr, Space: q.Get("space")}, then, q.Get("from"))
}

// addressNow shows the current state of an address in each subnet that contains it.
func (p *Page) addressNow(r *http.Request, s *shown, addr netip.Addr, space string) error {
	all, err := p.cfg.Service.Subnets(r.Context(), space)
	if err != nil {
		return err
	}
	root := rootOf(r)
	t := s.table(&table{Name: "addresses", Title: "Now", None: "The address is in no subnet that is planned or in use.",
		Columns: columns(append([]string{"address", "Address", "state", "State", "network", "Network", "subnet", "Subnet",
			"space", "Space", "name", "Name", "owner", "Owner", "container", "Container", "mac", "MAC", "host", "Host", "kind",
			"Kind", "since", "Since", "released", "Given back", "quarantine_until", "Quarantined until",
			"reserved_until", "Reserved until", "pool", "Pool", "note", "Note", "network_id", "-Id of the network"},
			lanColumns[:]...)...)})
	var offers []offered
	for i := range all {
		sub := &all[i]
		if !sub.CIDR.Contains(addr) {
			continue
		}
		one := netip.PrefixFrom(addr, addr.BitLen())
		l, err := p.cfg.Service.Layout(r.Context(), sub.ID, ipam.LayoutFilter{Within: one})
		if err != nil {
			return err
		}
		has := &l.Rows[0]
		who := p.whoHas(has)
		// the release of a container's lease is not offered, because the lease ends with the container
		if has.State != ipam.AddressLeased || who.container == "" {
			offers = append(offers, p.offersFor(root, sub, has)...)
		}
		var released time.Time
		if has.Lease != nil {
			released = has.Lease.Released
		}
		block := netip.PrefixFrom(addr, max(sub.CIDR.Bits(), addr.BitLen()-8)).Masked()
		p.add(t, addr, stateCell(has.State), p.of(sub.Network).to(networkLink(root, sub.NetworkID)),
			p.of(sub.CIDR).to(subnetLink(root, sub.ID, block)), sub.Space, who.name, who.owner,
			who.container, who.mac, who.host, who.kind, who.since, released,
			who.until, who.ends, has.Pool, who.note, sub.NetworkID, p.lan(&who))
	}
	t.Tall = true
	p.offer(r, s, offers...)
	return nil
}

// offersFor returns the forms for an address in its current state.
func (p *Page) offersFor(root string, sub *ipam.SubnetInfo, row *ipam.LayoutRow) []offered {
	addr, id, in := row.Range.From().String(), sub.NetworkID, " in "+sub.Network
	switch row.State {
	case ipam.AddressLeased, ipam.AddressReserved:
		if heldBy(row) == "" || p.releasable(row) != nil {
			return nil
		}
		return []offered{{"Release it" + in, toChange(root, releasing, id, "address", addr)}}
	case ipam.AddressExcluded:
		if sub.Exclusion(row.Range.From()) == nil {
			return nil // the subnet or its network excludes it
		}
		return []offered{{"Remove its exclusion" + in, toChange(root, including, id, "range", addr)}}
	}
	return []offered{{"Reserve it" + in, toChange(root, reserving, id, "address", addr)},
		{"Exclude it" + in, toChange(root, excluding, id, "range", addr)}}
}

// period is a time or a day for which the holder is wanted. The zero period is all time.
type period struct{ from, to time.Time }

func (m period) all() bool { return m.from.IsZero() }

// has reports whether a tenure overlaps the period.
func (m period) has(t *ipam.Tenure) bool {
	if m.all() {
		return true
	}
	return !t.From.After(m.to) && (t.Until.IsZero() || m.from.Before(t.Until))
}

// periodOf reads a time in the page's zone, in the format of the command line. A day is the whole day.
func (p *Page) periodOf(text string) (period, error) {
	if text == "" {
		return period{}, nil
	}
	first, last, err := humantime.Parse(text, p.cfg.Now().In(p.cfg.Zone))
	if err != nil {
		return period{}, ipam.Refuse(ipam.ErrInvalid, `the parameter "at" is %q and %s`, text, err)
	}
	return period{first, last}, nil
}

// history shows past and current holders, the latest first.
func (p *Page) history(r *http.Request, s *shown, f ipam.WhoFilter, then period, from string) error {
	all, err := p.cfg.Service.Who(r.Context(), f)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(t ipam.Tenure) bool { return !then.has(&t) })
	slices.Reverse(all)
	part, next, err := partFrom(r, from, all)
	if err != nil {
		return err
	}
	title, none := "Who had it, the latest first", "No known holder."
	if !then.all() {
		title, none = "Who had it then", "No known holder at that time."
	}
	t := s.table(&table{Name: "tenures", Title: title, Next: next, None: none, Columns: columns("name", "Name", "from",
		"From", "until", "Until", "what", "What", "kind", "-Kind", "mac", "MAC", "host", "Host", "by", "Taken by",
		"ended_by", "-Ended by", "guest", "-Guest", "early",
		"-Began before the known history", "note", "-Note", "subnet", "-Subnet", "space", "-Space", "address",
		"-Address", "lease", "-Lease")})
	root := rootOf(r)
	for i := range part {
		one := &part[i]
		var lease any
		if one.Lease != 0 {
			lease = one.Lease
		}
		p.add(t, one.Name, one.From, one.Until, one.What, one.Kind, one.MAC, one.Host,
			one.By, one.EndedBy, p.of(one.Guest).to(addressLink(root, one.Space, one.Guest)), p.ifTrue(one.Early),
			one.Note, one.Subnet, one.Space, one.Address, lease)
	}
	return p.knownSince(r, s)
}

// knownSince notes how far back the events reach.
func (p *Page) knownSince(r *http.Request, s *shown) error {
	first, err := p.cfg.Service.Events(r.Context(), ipam.EventFilter{First: 1})
	if err != nil || len(first) == 0 {
		return err
	}
	s.note("History starts at " + p.of(first[0].Time).Text + ".")
	return nil
}

// ifTrue returns a cell for true, and an empty one for false.
func (p *Page) ifTrue(is bool) cell {
	if !is {
		return cell{}
	}
	return p.of(true)
}
