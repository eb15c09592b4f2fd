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

// Options say how a document is held against the plan.
type Options struct {
	// Prune has what is in the plan and not in the document go, things and what is said of them alike. Without it they
	// stay.
	Prune bool
	// Adds has what there is stay where it is, as an import does: what comes is an edit for each address, and what
	// is found to be otherwise besides is in the way of all, so that its edits do not matter. A document that no edit
	// can make comes with what else was found.
	Adds bool
	// Network limits it to one network, which is the only one that is looked at on either side; empty: all, and what
	// there is of elastic addresses.
	Network string
	Now     time.Time // what is over by then is passed over
}

// Change is one thing that is otherwise in the document than in the plan.
type Change struct {
	Sign    string `json:"sign"` // + - ~
	Kind    string `json:"kind"` // such as network, subnet, pool, reservation
	Name    string `json:"name"` // how it is called: a name, prefix, range, owner or address; of a static band empty
	Network string `json:"network,omitempty"`
	Field   string `json:"field,omitempty"` // what of it; empty: it as a whole, or what it is by, such as its address
	Was     string `json:"was,omitempty"`
	Is      string `json:"is,omitempty"`
	Line    int    `json:"line,omitempty"` // of the document
}

// String is the change in a line: "~ reservation mail of front: 192.0.2.20 -> 192.0.2.21".
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

// Edit is one edit with the line of the document that it comes of.
type Edit struct {
	ipam.Edit
	Line int // 0: of nothing in the document
}

// Difference is what is otherwise, and what makes it the same.
type Difference struct {
	Changes []Change
	Parts   []Part // in order
}

// Part is edits that belong together, those of one network for one: none of another part comes between them.
type Part struct {
	Space string // of the network; empty: of elastic addresses
	Edits []Edit
}

// Transactions are the edits in parts of at most so many, in order, as few as there can be. Where one holds what
// belongs together, that is in one. Apart says that none spans spaces, which a host that shares a store with others
// may have in two stores; the space of one is that of its edits then, and else that of the first of them.
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

// Plans holds a document against the plan that there is. What the document says that no edit can make is an
// *ipam.PlanError, with the line of each thing.
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

// sorted are the networks of the document in its order, but those of which a subnet goes first: what one gives up
// another may be given.
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
		return cmp.Or(cmp.Compare(gives(a), gives(b)), cmp.Compare(a.at, b.at))
	})
	return all
}
