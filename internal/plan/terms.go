package plan

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"berth/internal/ipam"
)

// term is what a document says of a thing besides what it is: of what an owner has, besides whose it is and where. It
// is a key of YAML and a column of CSV.
type term[T any] struct {
	name    string
	aliases []string // of the column
	raw     bool     // any text, with the blanks around it
	flag    bool     // true, or left out
	set     func(*T, string) error
	get     func(*T) string // empty: left out
}

// terms are those of reservations, in the order in which they are written.
var terms = []term[ipam.PlannedReservation]{
	{name: "automatic", flag: true, get: func(r *ipam.PlannedReservation) string { return yes(r.Automatic) },
		set: parsed(parseBool, func(r *ipam.PlannedReservation, b bool) { r.Automatic = b })},
	{name: "replaced", flag: true, get: func(r *ipam.PlannedReservation) string { return yes(r.Replaced) },
		set: parsed(parseBool, func(r *ipam.PlannedReservation, b bool) { r.Replaced = b })},
	{name: "until", get: func(r *ipam.PlannedReservation) string { return untilText(r.Until) },
		set: parsed(parseTime, func(r *ipam.PlannedReservation, t time.Time) { r.Until = t })},
	{name: "force", flag: true, get: func(r *ipam.PlannedReservation) string { return yes(r.Force) },
		set: parsed(parseBool, func(r *ipam.PlannedReservation, b bool) { r.Force = b })},
	{name: "note", aliases: []string{"description"}, raw: true,
		get: func(r *ipam.PlannedReservation) string { return r.Note },
		set: parsed(asIs, func(r *ipam.PlannedReservation, s string) { r.Note = s })},
}

// addressTerms are those of addresses that are taken.
var addressTerms = terms[slices.IndexFunc(terms, func(t term[ipam.PlannedReservation]) bool {
	return t.name == "note"
}):]

// subnetTerms are those of subnets, in the order in which they are written behind the gateway.
var subnetTerms = []term[ipam.PlannedSubnet]{
	{name: "gateway_note", raw: true, get: func(p *ipam.PlannedSubnet) string { return p.GatewayNote },
		set: parsed(asIs, func(p *ipam.PlannedSubnet, s string) { p.GatewayNote = s })},
	{name: "dhcp", flag: true, get: func(p *ipam.PlannedSubnet) string { return yes(p.DHCP) },
		set: parsed(parseBool, func(p *ipam.PlannedSubnet, b bool) { p.DHCP = b || p.FromDHCP() })},
	{name: "dhcp_parent", get: func(p *ipam.PlannedSubnet) string { return p.DHCPParent },
		set: parsed(asIs, func(p *ipam.PlannedSubnet, s string) { p.DHCPParent, p.DHCP = s, p.DHCP || s != "" })},
	{name: "dhcp_id", get: func(p *ipam.PlannedSubnet) string { return string(p.DHCPID) },
		set: parsed(ipam.ParseLANID, func(p *ipam.PlannedSubnet, id ipam.LANID) { p.DHCPID = id })},
	{name: "note", aliases: []string{"description"}, raw: true,
		get: func(p *ipam.PlannedSubnet) string { return p.Note },
		set: parsed(asIs, func(p *ipam.PlannedSubnet, s string) { p.Note = s })},
}

// termNames lists them behind other keys, for errors.
func termNames[T any](of []term[T]) (names string) {
	for _, t := range of {
		names += ", " + t.name
	}
	return names
}

// readTerm reads a key that is one of them, and answers false for another one.
func readTerm[T any](d *document, of []term[T], r *T, key string, v *yaml.Node) bool {
	for _, t := range of {
		if t.name == key && t.raw {
			_ = t.set(r, d.text(v)) // any text will do
			return true
		}
		if t.name == key {
			value(d, v, func(text string) (none struct{}, err error) { return none, t.set(r, text) })
			return true
		}
	}
	return false
}

// terms are what of them is said of r, as further keys of it.
func (w *yamlWriter) terms(r *ipam.PlannedReservation) (keys string) {
	for _, t := range terms {
		switch text := t.get(r); {
		case text == "":
		case t.flag:
			keys += ", " + t.name + ": " + text
		default:
			keys += ", " + t.name + ": " + w.text(text)
		}
	}
	return keys
}

// subnetTerms are what of them is said of p, as further lines of it.
func (w *yamlWriter) subnetTerms(indent string, p *ipam.PlannedSubnet) {
	for _, t := range subnetTerms {
		switch text := t.get(p); {
		case text == "":
		case t.flag:
			w.line("%s%s: %s", indent, t.name, text)
		default:
			w.field(indent+t.name, text)
		}
	}
}

// termColumns are the columns of a table that has them; at finds in a row what they are said of.
func termColumns[R, T any](of []term[T], at func(*R) *T) (columns []column[R]) {
	for _, t := range of {
		columns = append(columns, column[R]{name: t.name, aliases: t.aliases, raw: t.raw,
			set: func(r *R, text string) error { return t.set(at(r), text) },
			get: func(r *R) string { return t.get(at(r)) }})
	}
	return columns
}
