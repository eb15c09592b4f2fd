package page

import (
	"cmp"
	"net/http"

	"berth/internal/ipam"
	"berth/internal/shorten"
)

// filled is a form for a change.
type filled struct {
	Action string // a relative link
	Button string
	Fields []field
	Hidden []hidden
	Back   string   // a link that leaves without a change
	Firm   bool     // the form makes the change
	Next   []string // free addresses; a button for each enters it into the form
}

// field is a field for the user.
type field struct {
	Name, Label, Value, Hint string
	Required                 bool
}

// changing is the form of one change.
type changing struct {
	fields []string // that the user fills in
	title  string
	lead   string
	do     string // the button that makes the change
}

// changes has the forms by name.
var changes = map[string]changing{
	reserving: {[]string{"address", "owner", "note"}, "Reserve an address of ",
		"Berth keeps the address for its owner, whether a container runs or not.", "Reserve it"},
	releasing: {[]string{"address"}, "Release an address of ", "The lease or the reservation of the address ends.",
		"Release it"},
	excluding: {[]string{"range", "note"}, "Exclude a range of ", "Berth gives no address of the range automatically.",
		"Exclude it"},
	including: {[]string{"range"}, "Remove an exclusion of ",
		"Berth can lease its addresses again if they are in a pool.", "Remove it"},
	creating: {[]string{"name", "subnet", "gateway"}, "Create a network",
		"The whole subnet becomes a pool: containers get its addresses.", "Create it"},
	addingSubnet: {[]string{"subnet", "gateway"}, "Add a subnet to ",
		"The whole subnet becomes a pool: containers get its addresses.", "Add it"},
	addingPool: {[]string{"range", "name"}, "Add a pool to ", "Containers get the addresses of the pool.", "Add it"},
	removing:   {nil, "Remove network ", "Berth also removes its subnets, pools and exclusions.", "Remove it"},
}

// question asks whether to make the change, and names everything that it concerns.
func (w *wanted) question() string {
	in := " in " + w.network.Name
	switch w.what {
	case reserving:
		return "Reserve " + w.addr.String() + in + " for " + w.owner + "?"
	case releasing:
		return "Release " + w.addr.String() + in + w.whose + "?"
	case excluding:
		return "Exclude " + w.span.String() + in + "?"
	case including:
		return "Remove the exclusion of " + w.span.String() + in + "?"
	case creating:
		return "Create network " + w.fields["name"] + " with subnet " + w.subnet.CIDR.String() + "?"
	case addingSubnet:
		return "Add subnet " + w.subnet.CIDR.String() + " to " + w.network.Name + "?"
	case addingPool:
		return "Add pool " + w.span.String() + " to " + w.network.Name + "?"
	}
	return "Remove network " + w.network.Name + "?"
}

// whoseText says who holds or owns an address, for the question about its release.
func (p *Page) whoseText(at *ipam.LayoutRow) string {
	who := p.whoHas(at)
	if at.State == ipam.AddressReserved {
		return ", reserved for " + who.owner
	}
	if holder := cmp.Or(who.container, who.name, who.mac.String()); holder != "" {
		return ", held by " + holder
	}
	return ""
}

// fieldsOf returns the fields of a form with their values.
func fieldsOf(w *wanted) (all []field) {
	for _, name := range changes[w.what].fields {
		f := field{Name: name, Value: shorten.To(w.fields[name], ipam.MaxText),
			Required: name != "note" && name != "gateway" && (name != "name" || w.what == creating)}
		switch name {
		case "address":
			f.Label = "Address"
		case "name":
			if f.Label, f.Hint = "Name", "The name of the pool; optional."; w.what == creating {
				f.Hint = "The name of the network, here and in docker network create."
			}
		case "subnet":
			f.Label, f.Hint = "Subnet", "Such as 10.1.0.0/24 or 2001:db8:1::/64."
		case "gateway":
			f.Label, f.Hint = "Gateway", "Such as 10.1.0.1; optional."
		case "owner":
			f.Label, f.Hint = "Owner", "The name of a container, or project/service/1, or a MAC."
		case "range":
			f.Label, f.Hint = "Range", "Such as 192.0.2.10-192.0.2.19, 192.0.2.10+10, or one address."
		case "note":
			f.Label, f.Hint = "Note", "The purpose; optional."
		}
		all = append(all, f)
	}
	return all
}

// changeForm shows the form of the first step, with an error if it is shown again.
func (p *Page) changeForm(r *http.Request, w *wanted, err error) *shown {
	c := changes[w.what]
	s := &shown{Title: c.title + w.network.Name, Lead: c.lead + " Nothing changes yet.", Still: true, Asks: true}
	if err != nil {
		s.Status = statusOf(err)
		s.alert(refusalText(err))
		w.fields["revision"], w.fields["mark"] = "", "" // the next preview starts from the current state
	}
	s.Blocks = append(s.Blocks, block{Fill: &filled{Action: link(rootOf(r), []string{"change", w.what}),
		Button: "Show what would change", Fields: fieldsOf(w),
		Hidden: hiddenOf(w, "network", "space", "revision", "mark"), Back: w.back(rootOf(r)), Next: p.nextFree(r, w)}})
	return s
}

// back returns the link that leaves a form without a change.
func (w *wanted) back(root string) string {
	switch {
	case w.what == creating:
		return root
	case w.addr.IsValid():
		return addressLink(root, w.space, w.addr)
	}
	return networkLink(root, w.network.ID)
}

// after returns the link to the changed object.
func (w *wanted) after(root string, out *ipam.Outcome) string {
	switch {
	case w.what == removing:
		return root
	case w.what == creating:
		return networkLink(root, out.Results[0].Network)
	}
	return w.back(root)
}

// nextFree returns the addresses that a container would get next.
func (p *Page) nextFree(r *http.Request, w *wanted) (all []string) {
	if w.what != reserving {
		return nil
	}
	found, err := p.cfg.Service.NextFree(r.Context(), w.network.ID.String(), ipam.FreeFilter{})
	if err != nil {
		return nil // the form works without it
	}
	return texts(found, func(one ipam.FreeRange) string { return one.Start.String() })
}

func hiddenOf(w *wanted, names ...string) (all []hidden) {
	for _, name := range names {
		if w.fields[name] != "" {
			all = append(all, hidden{name, w.fields[name]})
		}
	}
	return all
}

// confirm shows the result of a dry run for confirmation.
func (p *Page) confirm(r *http.Request, w *wanted, out *ipam.Outcome) *shown {
	s := &shown{Title: w.question(), Still: true, Asks: true,
		Lead: "Nothing has been changed yet. This would change:"}
	for i := range out.Results {
		for _, warning := range out.Results[i].Warnings {
			s.alert(warning)
		}
	}
	p.changes(s, "changes", "Changes", out.Changes)
	p.agree(r, s, w)
	return s
}

// confirmRelease shows the lease that would end.
func (p *Page) confirmRelease(r *http.Request, w *wanted, at *ipam.LayoutRow) *shown {
	s := &shown{Title: w.question(), Still: true, Asks: true,
		Lead: "Nothing has been changed yet. This lease would end. Berth refuses if a container has the address."}
	who := p.whoHas(at)
	t := s.table(&table{Name: "lease", One: true, Columns: columns("address", "Address", "name", "Name", "owner", "Owner",
		"container", "Container", "mac", "MAC", "host", "Host", "kind", "Kind", "since", "Since", "reserved_until",
		"Reserved until")})
	p.add(t, w.addr, who.name, who.owner, who.container, who.mac, who.host,
		who.kind, who.since, who.ends)
	p.agree(r, s, w)
	return s
}

// agree adds the form that makes the shown change.
func (p *Page) agree(r *http.Request, s *shown, w *wanted) {
	fields := append(hiddenOf(w, w.names()...), hidden{"seal", p.seal(r.Context(), w, p.cfg.Now().Add(sealAge))})
	s.Blocks = append(s.Blocks, block{Fill: &filled{Action: link(rootOf(r), []string{"change", w.what}), Firm: true,
		Button: changes[w.what].do, Hidden: fields, Back: w.back(rootOf(r))}})
}

// changes shows events as a table of changes.
func (p *Page) changes(s *shown, name, title string, events []ipam.Event) {
	t := s.table(&table{Name: name, Title: title, None: "No change of the network.", Columns: columns("verb", "What",
		"address", "Address", "subnet", "-Subnet", "name", "Name", "changed", "Change", "actor", "By", "time", "-When")})
	for i := range events {
		e := &events[i]
		p.add(t, e.Verb, e.Address, e.Subnet, e.Name, e.Changed(), e.Actor,
			e.Time)
	}
}

// offered is a link to a form.
type offered struct{ Text, Link string }

// offer adds links to forms, if the user may make changes.
func (p *Page) offer(r *http.Request, s *shown, all ...offered) {
	if p.mayChange(r) && len(all) > 0 {
		s.Blocks = append(s.Blocks, block{Offers: all})
	}
}

func (p *Page) mayChange(r *http.Request) bool { return p.cfg.MayChange != nil && p.cfg.MayChange(r) }

// toChange returns the link to a form about a network's object.
func toChange(root, what string, network ipam.ID, pairs ...string) string {
	return link(root, []string{"change", what}, append([]string{"network", network.String()}, pairs...)...)
}
