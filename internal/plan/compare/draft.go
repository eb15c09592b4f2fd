package compare

import "berth/internal/ipam"

// phase orders the edits of a part.
type phase int

const (
	goes     phase = iota // what ends or moves
	changes               // what stays and changes
	subnets               // they contain the rest
	comes                 // ranges
	owned                 // what owners get
	excluded              // exclusions, after the reservations in them
	last
	phases
)

// comparison is a comparison in progress: the errors of the document, the differences, and the part being drafted.
type comparison struct {
	ipam.PlanError
	Difference
	opt    Options
	draft  [phases][]Edit
	remade map[string]bool // accounts and elastic ranges that are removed and made again, by kind and name
}

// found notes a difference of a thing: it comes (+), goes (-) or changes (~).
func (c *comparison) found(sign string, of Change, was, is string) {
	of.Sign, of.Was, of.Is = sign, was, is
	c.Changes = append(c.Changes, of)
}

// edit adds an edit to the present part.
func (c *comparison) edit(when phase, line int, e ipam.Edit) {
	c.draft[when] = append(c.draft[when], Edit{e, line})
}

// stays sets a field that the document leaves out to its present value, unless fields not in the document are removed.
func stays[T comparable](c *comparison, key string, field *T, was T, cleared ipam.Cleared) {
	var none T
	if *field == none && !c.opt.Prune && !cleared.Has(key) {
		*field = was
	}
}

// end ends the part of a space.
func (c *comparison) end(space string) {
	var part []Edit
	for i := range c.draft {
		part = append(part, c.draft[i]...)
	}
	c.draft = [phases][]Edit{}
	if len(part) > 0 {
		c.Parts = append(c.Parts, Part{space, part})
	}
}

// field notes the difference of a field, and reports whether there is one. A field that the document leaves out stays,
// unless such fields are removed.
func (c *comparison) field(of Change, name, was, is string, cleared ipam.Cleared) bool {
	if was == is || is == "" && !c.opt.Prune && !cleared.Has(name) {
		return false
	}
	of.Field = name
	c.found("~", of, was, is)
	return true
}
