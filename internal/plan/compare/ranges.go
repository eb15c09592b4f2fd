package compare

import (
	"slices"
	"strings"

	"berth/internal/ipam"
)

// ranged is a pool, an exclusion or a static band, as a range with a text.
type ranged struct {
	r    ipam.Range
	text string // the name of a pool, the note of an exclusion
	line int
	ipam.Cleared
}

// ranges finds the differences of a network's static bands, pools and exclusions.
func (c *comparison) ranges(n, is *network) {
	c.bands(n, is)
	c.pools(n, is)
	c.exclusions(n, is)
}

// laidOut converts ranges of one kind.
func laidOut[T any](all []T, as func(T) ranged) []ranged {
	out := make([]ranged, len(all))
	for i, one := range all {
		out[i] = as(one)
	}
	return out
}

// lists returns the entry for exactly r, or nil.
func lists(all []ranged, r ipam.Range) *ranged {
	i := slices.IndexFunc(all, func(one ranged) bool { return one.r == r })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// without returns the ranges in all that are not in others.
func without(all, others []ranged) []ranged {
	return slices.DeleteFunc(slices.Clone(all), func(one ranged) bool { return lists(others, one.r) != nil })
}

func spans(all []ranged) (ranges []ipam.Range) {
	for _, one := range all {
		ranges = append(ranges, one.r)
	}
	return ranges
}

func overlaps(all []ranged, r ipam.Range) bool {
	return slices.ContainsFunc(all, func(one ranged) bool { return one.r.Overlaps(r.IPRange) })
}

// ended returns the ranges that go: those that another one will overlap and, with Prune, all that are not wanted.
func (c *comparison) ended(was, wanted []ranged) []ranged {
	return slices.DeleteFunc(without(was, wanted), func(old ranged) bool {
		return c.opt.Adds || !c.opt.Prune && !overlaps(wanted, old.r)
	})
}

// moved notes ranges that go and come. A new range that overlaps exactly one old one has moved.
func (c *comparison) moved(of Change, gone, come []ranged) {
	paired := map[ipam.Range]bool{}
	for _, one := range come {
		var under []ranged
		for _, old := range gone {
			if old.r.Overlaps(one.r.IPRange) && !paired[old.r] {
				under = append(under, old)
			}
		}
		if of.Name, of.Line = "", one.line; len(under) == 1 {
			paired[under[0].r] = true
			c.found("~", of, label(under[0]), label(one))
			continue
		}
		of.Name = one.r.String()
		c.found("+", of, "", one.text)
	}
	of.Line = 0
	for _, old := range gone {
		if of.Name = old.r.String(); !paired[old.r] {
			c.found("-", of, old.text, "")
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
	band := func(b ipam.PlannedBand) ranged { return ranged{r: b.Range, line: b.Line} }
	wanted, was := laidOut(n.Static, band), laidOut(is.Static, band)
	of := Change{Kind: "static band", Network: n.Name}
	gone, come := c.ended(was, wanted), without(wanted, was)
	if c.opt.Adds { // a document adds no band to an existing subnet
		for _, one := range come {
			if slices.ContainsFunc(is.Subnets, func(sub ipam.PlannedSubnet) bool {
				return sub.CIDR.Contains(one.r.From())
			}) {
				of.Line = one.line
				c.found("~", of, "", one.r.String())
			}
		}
	}
	c.moved(of, gone, come)
	stay := spans(without(was, gone))
	set := func(when phase, line int, bands []ipam.Range) {
		all := append([]ipam.Range{}, bands...) // none removes all
		c.edit(when, line, &ipam.ModifyNetwork{Network: n.Name, Static: &all})
	}
	if len(gone) > 0 {
		set(goes, 0, stay) // before a subnet loses them
	}
	if len(come) > 0 {
		set(comes, come[0].line, append(stay, spans(come)...))
	}
}

// pools finds the differences of pools. All ranges of one name are one pool, and the document lists all of them. A
// range without a name is a pool of its own.
func (c *comparison) pools(n, is *network) {
	pool := func(p ipam.PlannedPool) ranged { return ranged{p.Range, p.Name, p.Line, p.Cleared} }
	wanted, was := laidOut(n.Pools, pool), laidOut(is.Pools, pool)
	said := func(text string) bool {
		return text != "" && slices.ContainsFunc(wanted, func(one ranged) bool { return one.text == text })
	}
	gone := slices.DeleteFunc(without(was, wanted), func(old ranged) bool {
		return c.opt.Adds || !c.opt.Prune && !said(old.text) && (old.text != "" || !overlaps(wanted, old.r))
	})
	for _, one := range wanted {
		of := Change{Kind: "pool", Name: one.r.String(), Network: n.Name, Line: one.line}
		if old := lists(was, one.r); old != nil && c.field(of, "name", old.text, one.text, one.Cleared) {
			c.edit(goes, one.line, &ipam.ModifyPool{Network: n.Name, Pool: one.r.String(), Name: one.text})
		}
	}
	for _, old := range gone {
		c.edit(goes, 0, &ipam.RemovePool{Network: n.Name, Pool: old.r.String()})
	}
	come := without(wanted, was)
	for _, one := range come {
		c.edit(comes, one.line, &ipam.AddPool{Network: n.Name, Range: one.r, Name: one.text})
	}
	if !c.opt.Adds {
		c.poolLines(Change{Kind: "pool", Network: n.Name}, was, wanted, gone, come)
	}
}

// poolLines notes the pools that go and come. If a name stays, it notes its ranges together.
func (c *comparison) poolLines(of Change, was, wanted, gone, come []ranged) {
	named := func(all []ranged, name string) string {
		var ranges []string
		for _, one := range all {
			if one.text == name {
				ranges = append(ranges, one.r.String())
			}
		}
		slices.Sort(ranges)
		return strings.Join(ranges, ", ")
	}
	told := map[string]bool{}
	for _, one := range slices.Concat(come, gone) {
		before, after := named(was, one.text), named(wanted, one.text)
		if one.text == "" || told[one.text] || before == "" || after == "" {
			continue
		}
		told[one.text] = true
		pool := of
		pool.Name, pool.Line = one.text, one.line
		c.found("~", pool, before, after)
	}
	rest := func(all []ranged) []ranged {
		return slices.DeleteFunc(slices.Clone(all), func(one ranged) bool { return told[one.text] })
	}
	c.moved(of, rest(gone), rest(come))
}

func (c *comparison) exclusions(n, is *network) {
	exclusion := func(x ipam.PlannedExclusion) ranged { return ranged{x.Range, x.Note, x.Line, x.Cleared} }
	wanted, was := laidOut(n.Exclusions, exclusion), laidOut(is.Exclusions, exclusion)
	gone := c.ended(was, wanted)
	end := func(line int, r ipam.Range) { c.edit(goes, line, &ipam.RemoveExclusion{Network: n.Name, Range: r}) }
	add := func(one ranged) {
		c.edit(excluded, one.line, &ipam.AddExclusion{Network: n.Name, Range: one.r, Note: one.text})
	}
	for _, one := range wanted {
		of := Change{Kind: "exclusion", Name: one.r.String(), Network: n.Name, Line: one.line}
		if old := lists(was, one.r); old != nil && c.field(of, "note", old.text, one.text, one.Cleared) {
			end(one.line, one.r)
			add(one)
		}
	}
	come := without(wanted, was)
	for i := range come {
		come[i] = c.inherits(come[i], gone)
		add(come[i])
	}
	for _, old := range gone {
		end(0, old.r)
	}
	c.moved(Change{Kind: "exclusion", Network: n.Name}, gone, come)
}

// inherits gives a range without a text the note of the range that it replaces, if such fields stay.
func (c *comparison) inherits(one ranged, gone []ranged) ranged {
	i := slices.IndexFunc(gone, func(old ranged) bool { return old.r.Overlaps(one.r.IPRange) })
	if i >= 0 {
		stays(c, "note", &one.text, gone[i].text, one.Cleared)
	}
	return one
}
