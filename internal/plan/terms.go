package plan

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"berth/internal/ipam"
)

// term is what a document says of what an owner has, besides whose it is and where: a key of YAML and a column of CSV.
type term struct {
	name    string
	aliases []string // of the column
	raw     bool     // any text, with the blanks around it
	flag    bool     // true, or left out
	set     func(*ipam.PlannedReservation, string) error
	get     func(*ipam.PlannedReservation) string // empty: left out
}

// terms are those of reservations, in the order in which they are written.
var terms = []term{
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
var addressTerms = terms[slices.IndexFunc(terms, func(t term) bool { return t.name == "note" }):]

// termNames lists them behind other keys, for errors.
func termNames(of []term) (names string) {
	for _, t := range of {
		names += ", " + t.name
	}
	return names
}

// term reads a key that is one of them, and answers false for another one.
func (d *document) term(of []term, r *ipam.PlannedReservation, key string, v *yaml.Node) bool {
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

// termColumns are the columns of a table that has them.
func termColumns(of []term) (columns []column[ownedRow]) {
	for _, t := range of {
		columns = append(columns, column[ownedRow]{name: t.name, aliases: t.aliases, raw: t.raw,
			set: func(r *ownedRow, text string) error { return t.set(&r.PlannedReservation, text) },
			get: func(r *ownedRow) string { return t.get(&r.PlannedReservation) }})
	}
	return columns
}
