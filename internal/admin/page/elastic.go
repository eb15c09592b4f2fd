package page

import (
	"errors"
	"net/http"
	"net/netip"

	"berth/internal/ipam"
)

// elastic shows the ranges of elastic addresses, and the addresses that are not free.
func (p *Page) elastic(r *http.Request) (*shown, error) {
	q, err := query(r, "account", "from")
	if err != nil {
		return nil, err
	}
	var behind netip.Addr
	if text := q.Get("from"); text != "" {
		if behind, err = netip.ParseAddr(text); err != nil {
			return nil, ipam.Refuse(ipam.ErrInvalid,
				`the parameter "from" is %q; give the address before the first row`, text)
		}
	}
	s := &shown{Title: "Elastic addresses", File: "elastic", Here: "elastic"}
	ranges, err := p.cfg.Service.ElasticRanges(r.Context())
	if err != nil {
		return nil, err
	}
	t := s.table(&table{Name: "ranges", Title: "Ranges", None: "There is no range of elastic addresses, " +
		"which are public addresses that move from container to container. Add a range:",
		Begin: "berth elastic range add 203.0.113.0/28", Columns: columns(
			"range", "Range", "host", "Host", "announce", "Announced at", "allocated", "#Allocated", "associated",
			"#Associated", "id", "-Id")})
	for i := range ranges {
		one := &ranges[i]
		p.add(t, one.Range.String(), one.Host, one.Announce, one.Allocated, one.Associated,
			one.ID)
	}
	all, err := p.cfg.Service.Elastics(r.Context(), q.Get("account"), behind, perPage+1)
	if err != nil {
		return nil, err
	}
	p.elastics(r, s, all, true)
	return s, nil
}

// elasticNow shows the state of an elastic address, if the address is one.
func (p *Page) elasticNow(r *http.Request, s *shown, addr netip.Addr) error {
	info, err := p.cfg.Service.Elastic(r.Context(), addr)
	if errors.Is(err, ipam.ErrNotFound) || errors.Is(err, ipam.ErrInvalid) {
		return nil
	}
	if err != nil {
		return err
	}
	p.elastics(r, s, []ipam.ElasticInfo{info}, false)
	return nil
}

func (p *Page) elastics(r *http.Request, s *shown, all []ipam.ElasticInfo, listed bool) {
	t := s.table(&table{Name: "elastic", Title: "Elastic addresses",
		None:  "No account has an elastic address yet. Allocate one:",
		Begin: "berth elastic allocate", Tall: !listed,
		Columns: columns("address", "Address", "state", "State", "account", "Account", "instance", "Leads to", "guest",
			"Guest", "network", "Network", "host", "Host", "applied", "In force", "kind", "-Kind", "egress_only",
			"-Outgoing only", "release_on", "-Released on", "allocated", "-Allocated", "id", "-Id")})
	if len(all) > perPage {
		all = all[:perPage]
		t.Next = with(r, "from", all[perPage-1].Address.String())
	}
	root := rootOf(r)
	for i := range all {
		e := &all[i]
		var guest, egress, applied any
		if e.Associated {
			guest, egress = e.Guest, e.EgressOnly
			applied = "not yet"
		}
		if a := e.Applied; e.Associated && a != nil {
			if applied = "on " + a.Host; a.Error != "" {
				applied = "not on " + a.Host + ": " + a.Error
			}
		}
		p.add(t, p.of(e.Address).to(addressLink(root, "", e.Address)), string(e.State), e.Account,
			e.Instance, p.of(guest).to(addressLink(root, "", e.Guest)), e.Network, e.Host, applied,
			e.Kind, egress, e.ReleaseOn, e.Allocated, e.ID)
	}
}
