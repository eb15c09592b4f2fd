package compare

import (
	"slices"
	"strings"

	"berth/internal/ipam"
)

// ranged is a pool, an exclusion or a static band: a range and what is said of it.
type ranged struct {
	r    ipam.Range
	text string // the name of a pool, the note of an exclusion
	line int
}

// ranges finds what is otherwise of the static bands, the pools and the exclusions of a network.
func (c *comparison) ranges(n, is *network) {
	c.bands(n, is)
	c.pools(n, is)
	c.exclusions(n, is)
}

// lists tells whether one of some ranges is r.
func lists(all []ranged, r ipam.Range) *ranged {
	i := slices.IndexFunc(all, func(one ranged) bool { return one.r == r })
	if i < 0 {
		return nil
	}
	return &all[i]
}

func overlaps(all []ranged, r ipam.Range) bool {
	return slices.ContainsFunc(all, func(one ranged) bool { return one.r.Overlaps(r.IPRange) })
}

// ended are those of some ranges that go: those over which something else is to lie, and with Prune all that are not
// wanted.
func (c *comparison) ended(was, wanted []ranged) []ranged {
	return slices.DeleteFunc(slices.Clone(was), func(old ranged) bool {
		return c.opt.Adds || lists(wanted, old.r) != nil || !c.opt.Prune && !overlaps(wanted, old.r)
	})
}

// moved notes ranges that go and ranges that come: one that lies over a single other one has moved.
func (c *comparison) moved(of Change, gone, come []ranged) {
	paired := map[ipam.Range]bool{}
	for _, one := range come {
		of.Name, of.Line = one.r.String(), one.line
		var under []ranged
		for _, old := range gone {
			if old.r.Overlaps(one.r.IPRange) && !paired[old.r] {
				under = append(under, old)
			}
		}
		if len(under) == 1 {
			paired[under[0].r] = true
			moved := of
			moved.Sign, moved.Name, moved.Was, moved.Is = "~", "", label(under[0]), label(one)
			c.found(moved)
			continue
		}
		of.Sign, of.Is = "+", one.text
		c.found(of)
	}
	for _, old := range gone {
		if !paired[old.r] {
			c.found(Change{Sign: "-", Kind: of.Kind, Name: old.r.String(), Network: of.Network, Was: old.text})
		}
	}
}

func label(one ranged) string {
	if one.text == "" {
		return one.r.String()
	}
	return one.r.String() + " (" + one.text + ")"
}

func (c *comparison) bands(n, is *network) {
	var wanted, was []ranged
	for _, b := range n.static {
		wanted = append(wanted, ranged{r: b.Range, line: b.Line})
	}
	for _, b := range is.static {
		was = append(was, ranged{r: b.Range})
	}
	gone := c.ended(was, wanted)
	if c.opt.Adds {
		c.noBands(n, is, was, wanted)
	}
	come := slices.DeleteFunc(slices.Clone(wanted), func(one ranged) bool { return lists(was, one.r) != nil })
	if len(gone)+len(come) == 0 {
		return
	}
	c.moved(Change{Kind: "static band", Network: n.fields.Name}, gone, come)
	stay := []ipam.Range{}
	for _, old := range was {
		if lists(gone, old.r) == nil {
			stay = append(stay, old.r)
		}
	}
	if len(gone) > 0 { // before a subnet loses them
		left := slices.Clone(stay)
		c.edit(goes, 0, &ipam.ModifyNetwork{Network: n.fields.Name, Static: &left})
	}
	if len(come) > 0 {
		for _, one := range come {
			stay = append(stay, one.r)
		}
		c.edit(comes, come[0].line, &ipam.ModifyNetwork{Network: n.fields.Name, Static: &stay})
	}
}

// noBands notes that a subnet which is there lacks a static band, or has another one: a document adds none.
func (c *comparison) noBands(n, is *network, was, wanted []ranged) {
	for _, one := range wanted {
		if lists(was, one.r) == nil && slices.ContainsFunc(is.subnets, func(sub ipam.PlannedSubnet) bool {
			return sub.CIDR.Contains(one.r.From())
		}) {
			c.found(Change{Sign: "~", Kind: "static band", Network: n.fields.Name, Is: one.r.String(), Line: one.line})
		}
	}
}

// pools finds what is otherwise of the pools. A name is one pool, however many ranges it has: the document says all of
// them. Those without a name are their ranges.
func (c *comparison) pools(n, is *network) {
	var wanted, was []ranged
	for _, p := range n.pools {
		wanted = append(wanted, ranged{p.Range, p.Name, p.Line})
	}
	for _, p := range is.pools {
		was = append(was, ranged{r: p.Range, text: p.Name})
	}
	name := n.fields.Name
	said := func(text string) bool {
		return text != "" && slices.ContainsFunc(wanted, func(one ranged) bool { return one.text == text })
	}
	gone := slices.DeleteFunc(slices.Clone(was), func(old ranged) bool {
		return c.opt.Adds || lists(wanted, old.r) != nil || !c.opt.Prune && !said(old.text) &&
			(old.text != "" || !overlaps(wanted, old.r))
	})
	var come []ranged
	for _, one := range wanted {
		old := lists(was, one.r)
		if old == nil {
			come = append(come, one)
			continue
		}
		if c.field(Change{Kind: "pool", Name: one.r.String(), Network: name, Line: one.line}, "name", old.text,
			one.text) {
			c.edit(goes, one.line, &ipam.ModifyPool{Network: name, Pool: one.r.String(), Name: one.text})
		}
	}
	for _, old := range gone {
		c.edit(goes, 0, &ipam.RemovePool{Network: name, Pool: old.r.String()})
	}
	for _, one := range come {
		c.edit(comes, one.line, &ipam.AddPool{Network: name, Range: one.r, Name: one.text})
	}
	if !c.opt.Adds {
		c.poolLines(name, was, wanted, gone, come)
	}
}

// poolLines notes the pools that go and come: those of one name together, where it has been there and stays.
func (c *comparison) poolLines(network string, was, wanted, gone, come []ranged) {
	named := func(all []ranged, name string) (ranges []string) {
		for _, one := range all {
			if one.text == name {
				ranges = append(ranges, one.r.String())
			}
		}
		slices.Sort(ranges)
		return ranges
	}
	told := map[string]bool{"": true}
	tell := func(one ranged) {
		before, after := named(was, one.text), named(wanted, one.text)
		if told[one.text] || len(before) == 0 || len(after) == 0 {
			return
		}
		told[one.text] = true
		c.found(Change{Sign: "~", Kind: "pool", Name: one.text, Network: network, Line: one.line,
			Was: strings.Join(before, ", "), Is: strings.Join(after, ", ")})
	}
	for _, one := range slices.Concat(come, gone) {
		tell(one)
	}
	rest := func(all []ranged) []ranged {
		return slices.DeleteFunc(slices.Clone(all), func(one ranged) bool {
			return one.text != "" && told[one.text]
		})
	}
	c.moved(Change{Kind: "pool", Network: network}, rest(gone), rest(come))
}

func (c *comparison) exclusions(n, is *network) {
	var wanted, was []ranged
	for _, x := range n.exclusions {
		wanted = append(wanted, ranged{x.Range, x.Note, x.Line})
	}
	for _, x := range is.exclusions {
		was = append(was, ranged{r: x.Range, text: x.Note})
	}
	name := n.fields.Name
	gone := c.ended(was, wanted)
	var come []ranged
	for _, one := range wanted {
		old := lists(was, one.r)
		if old != nil && !c.field(Change{Kind: "exclusion", Name: one.r.String(), Network: name, Line: one.line}, "note",
			old.text, one.text) {
			continue
		}
		if old != nil {
			c.edit(goes, one.line, &ipam.RemoveExclusion{Network: name, Range: one.r})
			c.edit(excluded, one.line, &ipam.AddExclusion{Network: name, Range: one.r, Note: one.text})
			continue
		}
		come = append(come, c.inherits(one, gone))
	}
	for _, old := range gone {
		c.edit(goes, 0, &ipam.RemoveExclusion{Network: name, Range: old.r})
	}
	for _, one := range come {
		c.edit(excluded, one.line, &ipam.AddExclusion{Network: name, Range: one.r, Note: one.text})
	}
	c.moved(Change{Kind: "exclusion", Network: name}, gone, come)
}

// inherits gives a range of which nothing is said the note of the one that it was, where such things stay.
func (c *comparison) inherits(one ranged, gone []ranged) ranged {
	if c.opt.Prune || one.text != "" {
		return one
	}
	for _, old := range gone {
		if old.r.Overlaps(one.r.IPRange) {
			one.text = old.text
			break
		}
	}
	return one
}
