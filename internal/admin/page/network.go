package page

import (
	"cmp"
	"net/http"
	"net/netip"
	"strings"

	"berth/internal/ipam"

	"go4.org/netipx"
)

// network shows a network with its whole plan.
func (p *Page) network(r *http.Request) (*shown, error) {
	if _, err := query(r, "from", sortParameter, filterParameter); err != nil {
		return nil, err
	}
	n, err := p.cfg.Service.Network(r.Context(), r.PathValue("network"))
	if err != nil {
		return nil, err
	}
	s := &shown{Title: "Network " + n.Name, File: "network-" + n.Name, Network: n.Name}
	root := rootOf(r)
	t := s.table(&table{Name: "network", One: true, Columns: columns("network", "Network", "space", "Space",
		"type", "Type",
		"tags", "Tags", "sticky", "Sticky", "quarantine", "Quarantine", "elastic", "Elastic", "headroom", "Headroom",
		"probe", "Probed by", "put_back", "Put back", "note", "Note", "mac_prefix", "MAC prefix",
		"former_names", "Former names",
		"static", "For static use",
		"links", "Links",
		"docker", "Docker networks", "planned", "Planned", "created", "Created", "network_id", "Id")})
	p.add(t, n.Name, n.Space, n.Type, n.Tags, n.Sticky, n.Quarantine, n.Elastic,
		unlessZero(p.of(n.Headroom)), n.Probe, string(n.PutBack), n.Note, n.MACPrefix,
		n.FormerNames,
		texts(n.Static, ipam.Range.String),
		texts(n.Links, func(l ipam.Link) string { return l.Host + ": " + l.Mode + " " + l.Link }),
		n.Docker, n.Planned, n.Created, n.ID)
	p.offer(r, s, offered{"Reserve an address", toChange(root, reserving, n.ID)},
		offered{"Exclude a range", toChange(root, excluding, n.ID)},
		offered{"Add a subnet", toChange(root, addingSubnet, n.ID)},
		offered{"Add a pool", toChange(root, addingPool, n.ID)},
		offered{"Remove the network", toChange(root, removing, n.ID)})
	if err := p.subnets(r, s, &n); err != nil {
		return nil, err
	}
	p.ranges(r, s, &n)
	if len(n.OwnerRules) > 0 {
		t := s.table(&table{Name: "owner_rules", Title: "Owner rules", Columns: columns("rule", "Rule")})
		for _, rule := range n.OwnerRules {
			p.add(t, rule.String())
		}
	}
	return s, p.roaming(r, s, &n, root)
}

// texts applies text to each item of a list.
func texts[T any](list []T, text func(T) string) (all []string) {
	for _, item := range list {
		all = append(all, text(item))
	}
	return all
}

// unlessZero returns a cell, or an empty one for 0.
func unlessZero(c cell) cell {
	if c.Text == "0" {
		return cell{}
	}
	return c
}

func (p *Page) subnets(r *http.Request, s *shown, n *ipam.NetworkInfo) error {
	root := rootOf(r)
	t := s.table(&table{Name: "subnets", Title: "Subnets", None: "The network has no subnet. Add one:",
		Begin: "berth subnet add " + n.Name + " 10.1.0.0/24 --pool", Columns: columns(
			"subnet", "Subnet", "used", "Used", "leased", "#Held", "reserved", "#Idle", "quarantined", "#Quarantined",
			"free", "#Free", "excluded", "-#Excluded", "name", "-Name", "note", "-Note", "gateway", "Gateway",
			"gateway_note", "-Gateway's note", "dhcp", "-DHCP", "docker", "-#Docker networks", "subnet_id", "-Id")})
	if n.Use.Pools == 0 && len(n.Subnets) > 0 {
		s.note(addPool(n.Name, n.Subnets[0].CIDR))
	}
	return arrange(r, t, "-used", listed[ipam.SubnetPlan]{n.Subnets,
		func(sub *ipam.SubnetPlan) *ipam.Use { return &sub.Use },
		func(sub *ipam.SubnetPlan) row {
			return p.row(p.of(sub.CIDR).to(subnetLink(root, sub.ID, netip.Prefix{})), usedCell(&sub.Use),
				p.use(&sub.Use), sub.Name, sub.Note, p.of(sub.Gateway).to(addressLink(root, n.Space, sub.Gateway)),
				sub.GatewayNote, sub.DHCP, sub.Docker, sub.ID)
		}})
}

// addPool is the note for a subnet whose pools give no addresses, because a network without a pool looks full.
func addPool(network string, subnet netip.Prefix) string {
	return "No pool gives addresses here. Add one with `berth pool add " + network + " " + subnet.String() + "`."
}

// ranges shows the pools and the exclusions of a network.
func (p *Page) ranges(r *http.Request, s *shown, n *ipam.NetworkInfo) {
	pools := s.table(&table{Name: "pools", Title: "Pools", None: "The network has no pool: Berth gives only " +
		"requested addresses.", Columns: columns("range", "Range", "pool", "Name", "subnet", "-Subnet", "free", "#Free",
		"hour", "Last hour", "day", "Last day", "week",
		"-Last week")})
	closed := &table{Name: "exclusions", Title: "Exclusions", Columns: columns("range", "Range", "note", "Note", "subnet",
		"-Subnet")}
	may := p.mayChange(r)
	if may {
		closed.Columns = append(closed.Columns, columns("change", "Change")...)
	}
	for i := range n.Subnets {
		sub := &n.Subnets[i]
		for _, pool := range sub.Pools {
			name := cmp.Or(pool.Name, span(pool.Start, pool.End))
			size := ipam.Count{Int: sizeOf(ipam.Range{IPRange: netipx.IPRangeFrom(pool.Start, pool.End)})}
			p.add(pools, span(pool.Start, pool.End), pool.Name, sub.CIDR,
				free(pool.Free, pool.Free.TextOf(size)),
				p.charts(n.Space, n.Name, sub.CIDR, name))
		}
		for _, x := range sub.Exclusions {
			cells := p.row(span(x.Start, x.End), x.Note, sub.CIDR)
			if may {
				to := toChange(rootOf(r), including, n.ID, "range", cells[0].Text)
				cells = append(cells, cell{Text: "Remove", Link: to})
			}
			closed.add(cells...)
		}
	}
	if len(closed.Rows) > 0 {
		s.table(closed)
	}
}

// span returns a range in the format of lists and documents: A-B, a CIDR if it is one, or a single address.
func span(from, to netip.Addr) string {
	return ipam.Range{IPRange: netipx.IPRangeFrom(from, to)}.String()
}

// roaming shows the owners of a network whose addresses something else chooses.
func (p *Page) roaming(r *http.Request, s *shown, n *ipam.NetworkInfo, root string) error {
	if n.Type == ipam.Manual.String() {
		return nil
	}
	t := s.table(&table{Name: "reservations", Title: "Reservations", None: "Nothing is reserved.", Columns: columns(
		"owner", "Owner", "address", "Address", "in_use", "In use", "host", "Host", "until", "Until", "note", "Note")})
	for one, err := range p.cfg.Service.Reservations(r.Context(), ipam.AddressFilter{Network: n.ID.String(),
		Limit: perPage}) {
		if err != nil {
			return err
		}
		if !one.Address.IsValid() {
			one.Address = one.Leased
		}
		p.add(t, one.Owner, p.of(one.Address).to(addressLink(root, n.Space, one.Address)), one.InUse, one.Host,
			one.Until, strings.TrimSpace(one.Note))
	}
	return nil
}
