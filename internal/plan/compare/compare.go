// Package compare compares the document of a plan with the current plan. It returns the differences, one line each, and
// the edits that remove them. Made in order on the same plan, the edits leave no difference. The package enforces no
// rules: an edit that breaks one is refused when it is made, also in a dry run.
//
// Both sides are an ipam.Plan: the document from internal/plan, the current plan from an export. flat.go sorts each by
// network and kind. network.go, ranges.go, owned.go and elastic.go find the differences of their kind. They match
// networks, subnets, pools, owners with slots, and accounts by name. A draft (draft.go) orders the edits: first
// removals, then changes, then additions.
package compare

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"
)

// Options say how to compare a document with the plan.
type Options struct {
	// Prune removes what is in the plan and not in the document: things and fields. Without it they stay.
	Prune bool
	// Adds only adds, as an import does: each address is an edit of its own, and nothing moves. If the document
	// contradicts the plan anywhere, its edits must not be made. A document that no edits can make returns its
	// Difference together with the error.
	Adds bool
	// Network limits the comparison to one network on both sides. Empty: all networks and the elastic addresses.
	Network string
	Now     time.Time // what has ended by then is ignored
}

// Change is one difference between the document and the plan.
type Change struct {
	Sign    string `json:"sign"` // + - ~
	Kind    string `json:"kind"` // such as network, subnet, pool, reservation
	Name    string `json:"name"` // a name, prefix, range, owner or address; empty for a static band
	Network string `json:"network,omitempty"`
	Field   string `json:"field,omitempty"` // the field; empty: the whole, or what identifies it, such as its address
	Was     string `json:"was,omitempty"`
	Is      string `json:"is,omitempty"`
	Line    int    `json:"line,omitempty"` // of the document
}

// String returns the change in a line: "~ reservation mail of front: 192.0.2.20 -> 192.0.2.21".
func (c Change) String() string {
	var b strings.Builder
	b.WriteString(c.Sign + " " + c.Kind)
	if c.Name != "" {
		b.WriteString(" " + c.Name)
	}
	if c.Network != "" {
		b.WriteString(" of " + c.Network)
	}
	if c.Field != "" {
		b.WriteString(", " + c.Field)
	}
	switch {
	case c.Sign == "~":
		b.WriteString(": " + cmp.Or(c.Was, "none") + " -> " + cmp.Or(c.Is, "none"))
	case c.Was+c.Is != "":
		b.WriteString(": " + c.Was + c.Is)
	}
	return b.String()
}

// Edit is one edit with the line of the document that it comes from.
type Edit struct {
	ipam.Edit
	Line int // 0: nothing in the document
}

// Difference is what differs, with the edits that make both sides equal.
type Difference struct {
	Changes []Change
	Parts   []Part // in order
}

// Part is a list of edits that belong together, such as those of one network. No edit of another part comes between
// them.
type Part struct {
	Space string // of the network; empty: of elastic addresses
	Edits []Edit
}

// Transactions divides the edits into as few lists as possible, in order, of at most most edits. It keeps a part
// together if one list can hold it. With apart no list spans spaces, because a host that shares a store may have them
// in two stores. The space of a list is that of its first edits.
func (d *Difference) Transactions(most int, apart bool) (all []Part) {
	var one Part
	for _, part := range d.Parts {
		if len(one.Edits) > 0 && (apart && one.Space != part.Space || len(one.Edits)+len(part.Edits) > most) {
			all, one = append(all, one), Part{}
		}
		if len(one.Edits) == 0 {
			one.Space = part.Space
		}
		one.Edits = append(one.Edits, part.Edits...)
		for len(one.Edits) > most {
			all = append(all, Part{one.Space, one.Edits[:most:most]})
			one.Edits = one.Edits[most:]
		}
	}
	if len(one.Edits) > 0 {
		all = append(all, one)
	}
	return all
}

// Plans compares a document with the present plan. If no edits can make something in the document, it returns an
// *ipam.PlanError with the lines.
func Plans(document, now *ipam.Plan, opt Options) (*Difference, error) {
	c := &comparison{opt: opt, remade: map[string]bool{}}
	wanted, there := c.document(document, now), map[string]*network{}
	for i := range now.Networks {
		there[now.Networks[i].Name] = flatten(&now.Networks[i], i)
	}
	elastic, hadElastic := elasticOf(document.Elastic), elasticOf(now.Elastic)
	if err := c.Err(); err != nil && !opt.Adds {
		return nil, err
	}
	c.elasticGoes(elastic, hadElastic)
	c.networksGo(wanted, there)
	for _, n := range c.sorted(wanted, there) {
		is := there[n.Name]
		if is == nil {
			is = c.newNetwork(n)
		} else {
			c.network(n, is)
		}
		space := cmp.Or(is.Space, n.Space, ipam.LocalSpace)
		if !opt.Adds {
			c.gateways(n, is)
		}
		c.subnets(n, is)
		c.ranges(n, is)
		c.owned(n, is)
		c.end(space)
	}
	c.elasticComes(elastic, hadElastic)
	if err := c.Err(); err != nil && !opt.Adds {
		return nil, err
	}
	return &c.Difference, c.Err()
}

// sorted returns the document's networks in its order, but those that lose a subnet come first, because another one may
// get it.
func (c *comparison) sorted(wanted, there map[string]*network) []*network {
	all := slices.Collect(maps.Values(wanted))
	gives := func(n *network) int {
		if is := there[n.Name]; is != nil && c.opt.Prune {
			for i := range is.Subnets {
				if !slices.ContainsFunc(n.Subnets, func(sub ipam.PlannedSubnet) bool {
					return sub.CIDR.Overlaps(is.Subnets[i].CIDR)
				}) {
					return 0
				}
			}
		}
		return 1
	}
	slices.SortFunc(all, func(a, b *network) int {
		return cmp.Or(cmp.Compare(gives(a), gives(b)), cmp.Compare(a.at, b.at), cmp.Compare(a.Name, b.Name))
	})
	return all
}
