package plan

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/internal/alloc"
	"berth/internal/ipam"
)

// The tables. Columns have NetBox's names where it has the same thing: its prefixes are subnets, its ip-ranges pools or
// exclusions, its ip-addresses addresses or reservations. Its tables are exported with the titles that its pages show
// and imported under other names, so both are taken.

// netBoxOnly are the columns of NetBox that say nothing to Berth.
var netBoxOnly = []string{"id", "url", "status", "tenant", "tenant_group", "role", "site", "scope", "scope_type",
	"scope_id", "vlan",
	"vlan_group", "vlan_site", "vlan_id", "children", "depth", "prefix_(flat)", "utilization", "mark_utilized",
	"marked_utilized",
	"mark_populated", "marked_populated", "size", "description", "comments", "tags", "contacts", "created",
	"last_updated", "nat_(inside)", "nat_(outside)",
	"assigned", "fhrp_group", "is_primary", "is_oob"}

// whereColumns are the columns that say to which network a row belongs.
func whereColumns[T any](at func(*T) *where) []column[T] {
	return []column[T]{
		{name: "network", set: func(r *T, s string) error { at(r).network = s; return nil },
			get: func(r *T) string { return at(r).network }},
		{name: "space", aliases: []string{"vrf"},
			set: func(r *T, s string) error { at(r).space = spaceOf(s); return nil }},
	}
}

// spaceOf is the space for a VRF of NetBox, which is shown with its route distinguisher, or as Global where there is
// none.
func spaceOf(text string) string {
	if text == "Global" {
		return ""
	}
	name, _, _ := strings.Cut(text, " (")
	return name
}

// parsed makes the setter of a column out of a parser.
func parsed[T, V any](parse func(string) (V, error), set func(*T, V)) func(*T, string) error {
	return func(row *T, text string) error {
		v, err := parse(text)
		if err == nil {
			set(row, v)
		}
		return err
	}
}

func asIs(text string) (string, error) { return text, nil }

// parseHost reads an address, which NetBox writes with the length of its prefix.
func parseHost(text string) (netip.Addr, error) {
	if address, length, ok := strings.Cut(text, "/"); ok {
		if p, err := netip.ParsePrefix(text); err == nil && strings.HasSuffix(text, "/"+strconv.Itoa(p.Bits())) {
			return alloc.ParseAddr(address)
		}
		return netip.Addr{}, fmt.Errorf("%q is no length of a prefix; write the address alone", length)
	}
	return alloc.ParseAddr(text)
}

func yes(b bool) string {
	if b {
		return "true"
	}
	return ""
}

var networkSheet = sheet[ipam.PlannedNetwork]{
	columns: []column[ipam.PlannedNetwork]{
		{name: "name", aliases: []string{"network"},
			set: parsed(asIs, func(n *ipam.PlannedNetwork, s string) { n.Name = s }),
			get: func(n *ipam.PlannedNetwork) string { return n.Name }},
		{name: "space", aliases: []string{"vrf"},
			set: func(n *ipam.PlannedNetwork, s string) error { n.Space = spaceOf(s); return nil },
			get: func(n *ipam.PlannedNetwork) string { return n.Space }},
		{name: "mac_prefix", set: parsed(asIs, func(n *ipam.PlannedNetwork, s string) { n.MACPrefix = s }),
			get: func(n *ipam.PlannedNetwork) string { return n.MACPrefix }},
		{name: "sticky", set: parsed(parseBool, func(n *ipam.PlannedNetwork, b bool) { n.Sticky = &b }),
			get: func(n *ipam.PlannedNetwork) string { return stickyText(n.Sticky) }},
		{name: "quarantine", set: parsed(parseDuration,
			func(n *ipam.PlannedNetwork, d *ipam.Duration) { n.Quarantine = d }),
			get: func(n *ipam.PlannedNetwork) string { return quarantineText(n.Quarantine) }},
		{name: "headroom", set: parsed(parseNumber, func(n *ipam.PlannedNetwork, count int) { n.Headroom = count }),
			get: func(n *ipam.PlannedNetwork) string { return countText(n.Headroom) }},
		{name: "elastic", set: parsed(parseElastic, func(n *ipam.PlannedNetwork, s string) { n.Elastic = s }),
			get: func(n *ipam.PlannedNetwork) string { return n.Elastic }},
		{name: "probe", set: parsed(asIs, func(n *ipam.PlannedNetwork, s string) { n.Probe = s }),
			get: func(n *ipam.PlannedNetwork) string { return n.Probe }},
		{name: "put_back", set: parsed(parsePutBack, func(n *ipam.PlannedNetwork, s string) { n.PutBack = s }),
			get: func(n *ipam.PlannedNetwork) string { return n.PutBack }},
		{name: "type", set: parsed(parseType, func(n *ipam.PlannedNetwork, s string) { n.Type = s }),
			get: func(n *ipam.PlannedNetwork) string { return n.Type }},
		{name: "owner_rules", set: parsed(parseRules,
			func(n *ipam.PlannedNetwork, r []ipam.OwnerRule) { n.OwnerRules = r }),
			get: func(n *ipam.PlannedNetwork) string { return formatRules(n.OwnerRules) }},
		{name: "tags", raw: true,
			set: parsed(parseTags, func(n *ipam.PlannedNetwork, t map[string]string) { n.Tags = t }),
			get: func(n *ipam.PlannedNetwork) string { return formatTags(n.Tags) }},
		{name: "links", set: parsed(parseLinks, func(n *ipam.PlannedNetwork, l []ipam.Link) { n.Links = l }),
			get: func(n *ipam.PlannedNetwork) string { return formatLinks(n.Links) }},
	},
	needs: [][]string{{"name"}},
	row:   func(line int) ipam.PlannedNetwork { return ipam.PlannedNetwork{Line: line} },
	check: func(n *ipam.PlannedNetwork) error {
		if n.Name == "" {
			return errors.New("the network has no name")
		}
		return nil
	},
	add: func(n, row *ipam.PlannedNetwork) {
		space := n.Space
		*n = *row
		n.Space = cmp.Or(n.Space, space)
	},
	of: func(n *ipam.PlannedNetwork) []ipam.PlannedNetwork { return []ipam.PlannedNetwork{*n} },
}

func stickyText(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}

func quarantineText(d *ipam.Duration) string {
	if d == nil {
		return ""
	}
	return formatDuration(*d)
}

// countText leaves out nothing at all.
func countText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func untilText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return formatTime(t)
}

type subnetRow struct {
	where
	ipam.PlannedSubnet
	pool bool
}

var subnetSheet = sheet[subnetRow]{
	columns: slices.Concat(whereColumns(func(r *subnetRow) *where { return &r.where }), []column[subnetRow]{
		{name: "prefix", aliases: []string{"cidr", "subnet"},
			set: parsed(alloc.ParsePrefix, func(r *subnetRow, p netip.Prefix) { r.CIDR = p }),
			get: func(r *subnetRow) string { return r.CIDR.String() }},
		{name: "name", set: parsed(asIs, func(r *subnetRow, s string) { r.Name = s }),
			get: func(r *subnetRow) string { return r.Name }},
		{name: "gateway", set: parsed(parseHost, func(r *subnetRow, a netip.Addr) { r.Gateway = a }),
			get: func(r *subnetRow) string { return addrText(r.Gateway) }},
	}, termColumns(subnetTerms, func(r *subnetRow) *ipam.PlannedSubnet { return &r.PlannedSubnet }),
		[]column[subnetRow]{
			{name: "static",
				set: parsed(parseBands, func(r *subnetRow, b []ipam.PlannedBand) { r.Static = b }),
				get: func(r *subnetRow) string { return formatBands(r.Static) }},
			{name: "pool", aliases: []string{"is_pool"},
				set: parsed(parseBool, func(r *subnetRow, b bool) { r.pool = b })},
		}),
	needs: [][]string{{"prefix"}},
	row:   func(line int) subnetRow { return subnetRow{PlannedSubnet: ipam.PlannedSubnet{Line: line}} },
	check: func(r *subnetRow) error {
		if !r.CIDR.IsValid() {
			return errors.New("the subnet has no prefix")
		}
		return nil
	},
	place: func(r *subnetRow) *where { return &r.where },
	add: func(n *ipam.PlannedNetwork, r *subnetRow) {
		for i := range r.Static {
			r.Static[i].Line = r.Line
		}
		if r.pool {
			r.Pools = []ipam.PlannedPool{{Range: wholeOf(r.CIDR), Line: r.Line}}
		}
		n.Subnets = append(n.Subnets, r.PlannedSubnet)
	},
	of: func(n *ipam.PlannedNetwork) []subnetRow {
		var rows []subnetRow
		for _, sub := range n.Subnets {
			rows = append(rows, subnetRow{where: where{network: n.Name}, PlannedSubnet: sub})
		}
		return rows
	},
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// rangeRow is a row of pools or of exclusions.
type rangeRow struct {
	where
	from, to netip.Addr
	whole    ipam.Range // of the column range
	text     string     // name or note
	line     int
}

// rangeColumns are the columns of a table of ranges. text is the one of name or note.
func rangeColumns(text string, aliases ...string) []column[rangeRow] {
	return append(whereColumns(func(r *rangeRow) *where { return &r.where }),
		column[rangeRow]{name: "start_address", aliases: []string{"start"},
			set: parsed(parseHost, func(r *rangeRow, a netip.Addr) { r.from = a }),
			get: func(r *rangeRow) string { return addrText(r.from) }},
		column[rangeRow]{name: "end_address", aliases: []string{"end"},
			set: parsed(parseHost, func(r *rangeRow, a netip.Addr) { r.to = a }),
			get: func(r *rangeRow) string { return addrText(r.to) }},
		column[rangeRow]{name: "range", set: parsed(parseRange, func(r *rangeRow, all ipam.Range) { r.whole = all })},
		column[rangeRow]{name: text, aliases: aliases, raw: text == "note",
			set: parsed(asIs, func(r *rangeRow, s string) { r.text = s }),
			get: func(r *rangeRow) string { return r.text }},
	)
}

var rangeNeeds = [][]string{{"start_address", "range"}}

func newRangeRow(line int) rangeRow { return rangeRow{line: line} }

// checkRange puts the two ends together. An end that is not given is the start.
func checkRange(r *rangeRow) error {
	switch {
	case !r.whole.IsZero() && r.from.IsValid():
		return errors.New("the row has a start and a range; give one of them")
	case !r.whole.IsZero():
		return nil
	case !r.from.IsValid():
		return errors.New("the row has no start")
	case !r.to.IsValid():
		r.to = r.from
	}
	text := r.from.String() + "-" + r.to.String()
	var err error
	r.whole, err = parseRange(text)
	return err
}

var poolSheet = sheet[rangeRow]{
	columns: rangeColumns("name"), needs: rangeNeeds, row: newRangeRow, check: checkRange,
	place: func(r *rangeRow) *where { return &r.where },
	add: func(n *ipam.PlannedNetwork, r *rangeRow) {
		n.Pools = append(n.Pools, ipam.PlannedPool{Range: r.whole, Name: r.text, Line: r.line})
	},
	of: func(n *ipam.PlannedNetwork) (rows []rangeRow) {
		for _, sub := range n.Subnets {
			for _, p := range sub.Pools {
				rows = append(rows, rangeRow{where: where{network: n.Name}, from: p.Range.From(), to: p.Range.To(),
					text: p.Name})
			}
		}
		return rows
	},
}

var exclusionSheet = sheet[rangeRow]{
	columns: rangeColumns("note", "description"), needs: rangeNeeds, row: newRangeRow, check: checkRange,
	place: func(r *rangeRow) *where { return &r.where },
	add: func(n *ipam.PlannedNetwork, r *rangeRow) {
		n.Exclusions = append(n.Exclusions, ipam.PlannedExclusion{Range: r.whole, Note: r.text, Line: r.line})
	},
	of: func(n *ipam.PlannedNetwork) (rows []rangeRow) {
		for _, sub := range n.Subnets {
			for _, x := range sub.Exclusions {
				rows = append(rows, rangeRow{where: where{network: n.Name}, from: x.Range.From(), to: x.Range.To(),
					text: x.Note})
			}
		}
		return rows
	},
}

// ownedRow is a row of reservations or of addresses.
type ownedRow struct {
	where
	ipam.PlannedReservation
	device, dns string // who has it, by NetBox
}

// ownedColumns are the columns of a table of addresses with owners. An owner may also be NetBox's device, virtual
// machine or DNS name; its interfaces are names and not numbers, so they say nothing here.
func ownedColumns() []column[ownedRow] {
	return append(whereColumns(func(r *ownedRow) *where { return &r.where }),
		column[ownedRow]{name: "address", aliases: []string{"ip_address"},
			set: parsed(parseHost, func(r *ownedRow, a netip.Addr) { r.Address = a }),
			get: func(r *ownedRow) string { return addrText(r.Address) }},
		column[ownedRow]{name: "owner", set: parsed(asIs, func(r *ownedRow, s string) { r.Owner = s }),
			get: func(r *ownedRow) string { return r.Owner }},
		column[ownedRow]{name: "interface", set: (*ownedRow).setInterface,
			get: func(r *ownedRow) string { return r.number(r.Interface) }},
		column[ownedRow]{name: "slot",
			set: parsed(parseNumber, func(r *ownedRow, n int) { r.Slot, r.Unplaced = n, false }),
			get: func(r *ownedRow) string { return r.number(r.Slot) }},
		column[ownedRow]{name: "device", aliases: []string{"virtual_machine", "device/vm", "parent"},
			set: parsed(asIs, func(r *ownedRow, s string) { r.device = s })},
		column[ownedRow]{name: "dns_name", set: parsed(asIs, func(r *ownedRow, s string) { r.dns = s })},
	)
}

func (r *ownedRow) setInterface(text string) error {
	n, err := parseNumber(text)
	if err != nil && !strings.ContainsAny(text[:1], "0123456789-") {
		return nil // NetBox's, by name
	}
	r.Interface, r.Unplaced = n, false
	return err
}

// number is empty where the place is the first: a row without one takes the first that is free.
func (r *ownedRow) number(n int) string {
	if r.Interface == 0 && r.Slot == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// said is what the terms of the row are said of.
func (r *ownedRow) said() *ipam.PlannedReservation { return &r.PlannedReservation }

func newOwnedRow(line int) ownedRow {
	return ownedRow{PlannedReservation: ipam.PlannedReservation{Line: line, Unplaced: true}}
}

// nameByAddress gives a row of NetBox's that has neither a device nor a DNS name an owner: NetBox knows addresses
// without one, of which the description alone says what they are for.
func nameByAddress(r *ownedRow) {
	if r.Address.IsValid() && cmp.Or(r.Owner, r.device, r.dns) == "" {
		r.Owner = "ip-" + strings.NewReplacer(".", "-", ":", "-").Replace(r.Address.String())
	}
}

// checkOwned finds the owner.
func checkOwned(r *ownedRow) error {
	r.Owner = cmp.Or(r.Owner, r.device, r.dns)
	switch {
	case r.Owner == "" && r.Address.IsValid():
		return fmt.Errorf("%s has no owner", r.Address)
	case r.Owner == "":
		return errors.New("the row has no owner")
	}
	return nil
}

func checkAddress(r *ownedRow) error {
	if !r.Address.IsValid() {
		return errors.New("the row has no address")
	}
	return checkOwned(r)
}

// ownerNeeds are those of reservations, which have no address where somebody else chooses them.
var ownerNeeds = [][]string{{"owner", "device", "dns_name"}}

var reservationSheet = sheet[ownedRow]{
	columns: append(ownedColumns(), termColumns(terms, (*ownedRow).said)...),
	needs:   ownerNeeds, row: newOwnedRow, name: nameByAddress, check: checkOwned,
	place: func(r *ownedRow) *where { return &r.where },
	add: func(n *ipam.PlannedNetwork, r *ownedRow) {
		n.Reservations = append(n.Reservations, r.PlannedReservation)
	},
	of: func(n *ipam.PlannedNetwork) (rows []ownedRow) {
		for _, r := range n.Reservations {
			rows = append(rows, ownedRow{where: where{network: n.Name}, PlannedReservation: r})
		}
		return rows
	},
}

var addressSheet = sheet[ownedRow]{
	columns: append(ownedColumns(), termColumns(addressTerms, (*ownedRow).said)...),
	needs:   append([][]string{{"address"}}, ownerNeeds...), row: newOwnedRow, name: nameByAddress, check: checkAddress,
	place: func(r *ownedRow) *where { return &r.where },
	add: func(n *ipam.PlannedNetwork, r *ownedRow) {
		n.Addresses = append(n.Addresses, r.Taken())
	},
	of: func(n *ipam.PlannedNetwork) (rows []ownedRow) {
		for _, a := range n.Addresses {
			rows = append(rows, ownedRow{where: where{network: n.Name}, PlannedReservation: a.Reserved()})
		}
		return rows
	},
}
