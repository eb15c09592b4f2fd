package compare

import "berth/internal/ipam"

// phase is when an edit is made among those of its part.
type phase int

const (
	goes     phase = iota // what ends, or moves
	changes               // what stays, and is otherwise
	subnets               // which hold the rest
	comes                 // ranges
	owned                 // what owners are to have
	excluded              // exclusions: what is reserved in them is reserved before
	last
	phases
)

// comparison is one that is under way: what is wrong with the document, what was found, and the part that is drafted.
type comparison struct {
	ipam.PlanError
	Difference
	opt    Options
	draft  [phases][]Edit
	remade map[string]bool // the accounts and elastic ranges that are removed to be made anew, by kind and name
}

// found notes what is otherwise of a thing: it comes (+), goes (-) or changes (~).
func (c *comparison) found(sign string, of Change, was, is string) {
	of.Sign, of.Was, of.Is = sign, was, is
	c.Changes = append(c.Changes, of)
}

// edit notes an edit of the part that is drafted.
func (c *comparison) edit(when phase, line int, e ipam.Edit) {
	c.draft[when] = append(c.draft[when], Edit{e, line})
}

// end ends the part, which is of a space.
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

// field notes a field that is otherwise, and answers whether it is. One of which the document says nothing stays,
// unless what it does not say goes.
func (c *comparison) field(of Change, name, was, is string) bool {
	if was == is || is == "" && !c.opt.Prune {
		return false
	}
	of.Field = name
	c.found("~", of, was, is)
	return true
}
