package page

import (
	"net/http"
	"net/netip"
	"strings"

	"berth/internal/ipam"
)

// subnet shows the addresses of a subnet, or of a part of it, as a map and as a table.
func (p *Page) subnet(r *http.Request) (*shown, error) {
	id, f, err := layoutAsked(r)
	if err != nil {
		return nil, err
	}
	l, err := p.cfg.Service.Layout(r.Context(), id, f)
	if err != nil {
		return nil, err
	}
	name := l.Subnet.Network
	title := "Subnet " + l.Subnet.CIDR.String()
	if l.Within != l.Subnet.CIDR {
		title = "Part " + l.Within.String() + " of " + l.Subnet.CIDR.String()
	}
	s := &shown{Title: title, Network: name,
		File: "subnet-" + strings.NewReplacer("/", "-", ":", "-").Replace(l.Within.String())}
	root := rootOf(r)
	p.subnetFacts(s, &l, name, root)
	p.offer(r, s, offersIn(root, &l)...)
	if !fewOf(l.Within) {
		p.parts(s, &l, root)
		if len(l.Rows) > perPage {
			l.Rows, l.Next = l.Rows[:perPage], l.Rows[perPage].Range.From()
		}
	}
	if p.addresses(r, s, &l, root); fewOf(l.Within) && !f.From.IsValid() {
		s.mapBefore("addresses", cellMap(&l, root))
	}
	return s, nil
}

// offersIn returns the forms for the addresses of a subnet or of a part of it.
func offersIn(root string, l *ipam.Layout) []offered {
	id, within := l.Subnet.NetworkID, l.Within.String()
	all := []offered{{"Reserve an address", toChange(root, reserving, id)},
		{"Exclude a range", toChange(root, excluding, id, "range", within)},
		{"Add a pool", toChange(root, addingPool, id, "range", within)}}
	switch exclusions := l.Subnet.Exclusions; len(exclusions) {
	case 0:
		return all
	case 1:
		within = exclusions[0].Range.String()
	default:
		within = "" // the user enters the range
	}
	return append(all, offered{"Remove an exclusion", toChange(root, including, id, "range", within)})
}

// fewOf reports whether a prefix has few enough addresses to draw each: at most ipam.MaxParts.
func fewOf(p netip.Prefix) bool { return p.Addr().BitLen()-p.Bits() <= 8 }

// layoutAsked reads which part of which subnet is requested.
func layoutAsked(r *http.Request) (id ipam.ID, f ipam.LayoutFilter, err error) {
	q, err := query(r, "part", "from")
	if err != nil {
		return id, f, err
	}
	f.Limit = ipam.MaxParts // a whole map fits on one page
	text := r.PathValue("subnet")
	if id, err = ipam.ParseID(text); err != nil {
		return id, f, ipam.Refuse(ipam.ErrNotFound, "there is no subnet %q", text).Advise(ipam.DoListSubnets)
	}
	if text := q.Get("part"); text != "" {
		if f.Within, err = netip.ParsePrefix(text); err != nil {
			return id, f, ipam.Refuse(ipam.ErrInvalid,
				`the parameter "part" is %q; give a prefix such as 10.1.0.0/24`, text)
		}
	}
	if text := q.Get("from"); text != "" {
		if f.From, err = netip.ParseAddr(text); err != nil {
			return id, f, ipam.Refuse(ipam.ErrInvalid,
				`the parameter "from" is %q; give the first address of the rows`, text)
		}
	}
	return id, f, nil
}

func (p *Page) subnetFacts(s *shown, l *ipam.Layout, network, root string) {
	sub := &l.Subnet
	t := s.table(&table{Name: "subnet", One: true, Columns: columns("subnet", "Subnet", "network", "Network", "space",
		"Space", "part", "Part", "leased", "Held", "quarantined", "Quarantined", "reserved", "Idle", "excluded",
		"Excluded", "free", "Free", "outside", "In no pool", "gateway", "Gateway", "gateway_note", "Gateway's note", "name",
		"Name", "note", "Note", "dhcp", "DHCP", "created", "Created", "subnet_id", "Id", "network_id", "Network's id")})
	var part any
	if l.Within != sub.CIDR {
		part = l.Within
	}
	p.add(t, p.of(sub.CIDR).to(subnetLink(root, sub.ID, netip.Prefix{})), p.of(network).to(networkLink(root,
		sub.NetworkID)), sub.Space, part, counts(&l.Sum), p.of(sub.Gateway).to(addressLink(root, sub.Space, sub.Gateway)),
		sub.GatewayNote, sub.Name, sub.Note, sub.DHCP, sub.Created, sub.ID, sub.NetworkID)
	if len(sub.Pools) == 0 {
		s.note(addPool(network, sub.CIDR))
	}
}

// counts returns the number of addresses in each state.
func counts(n *ipam.StateCounts) (cells row) {
	for _, state := range ipam.AddressStates() {
		cells = append(cells, count(n.Of(state)))
	}
	return cells
}

// parts shows the parts of a subnet that has too many addresses to show each.
func (p *Page) parts(s *shown, l *ipam.Layout, root string) {
	if len(l.Parts) == 0 {
		s.note("There is no map: no address has, or had, a holder or an owner.")
		return
	}
	s.Blocks = append(s.Blocks, block{Map: partMap(l, root)})
	t := s.table(&table{Name: "parts", Title: "Parts", Folded: true, Columns: columns("part", "Part", "leased", "#Held",
		"quarantined", "#Quarantined", "reserved", "#Idle", "excluded", "-#Excluded", "free", "#Free", "outside",
		"-#In no pool")})
	for i := range l.Parts {
		part := &l.Parts[i]
		p.add(t, p.of(part.Prefix).to(subnetLink(root, l.Subnet.ID, part.Prefix)), counts(&part.StateCounts))
	}
}

// addresses shows holders, reservations and free ranges.
func (p *Page) addresses(r *http.Request, s *shown, l *ipam.Layout, root string) {
	t := s.table(&table{Name: "addresses", Title: "Addresses", Columns: columns(append([]string{
		"address", "Address", "state", "State", "addresses", "-#Addresses", "name", "Name", "owner", "Owner",
		"container", "Container", "mac", "MAC", "host", "Host", "kind", "-Kind", "since", "-Since",
		"quarantine_until", "-Quarantined until", "reserved_until", "Reserved until", "pool", "-Pool",
		"note", "-Note"}, lanColumns[:]...)...)})
	if l.Next.IsValid() {
		t.Next = with(r, "from", l.Next.String())
	}
	for i := range l.Rows {
		one := &l.Rows[i]
		who := p.whoHas(one)
		p.add(t, p.of(run(one.Range.From(), one.Range.To())).to(rowLink(l, one, root)), stateCell(one.State),
			count(ipam.Count{Int: sizeOf(one.Range)}), who.name, who.owner, who.container, who.mac,
			who.host, who.kind, who.since, who.until, who.ends, one.Pool,
			who.note, p.lan(&who))
	}
}

// rowLink returns the link to an address, or to the part that contains a range, if that is smaller.
func rowLink(l *ipam.Layout, row *ipam.LayoutRow, root string) string {
	if row.Range.From() == row.Range.To() {
		return addressLink(root, l.Subnet.Space, row.Range.From())
	}
	return ""
}

// run returns the addresses from one to another in the format of the table and of `berth network free`: A-B, or a
// single address. Unlike span, it is not a planned range.
func run(from, to netip.Addr) string {
	if from == to {
		return from.String()
	}
	return from.String() + "-" + to.String()
}
