package page

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"

	"berth/internal/alloc"
	"berth/internal/ipam"
)

// wanted is a requested change: the values of a form.
type wanted struct {
	what    string
	network ipam.NetworkInfo
	addr    netip.Addr // to reserve or to release
	owner   string
	span    ipam.Range // of an exclusion or a pool
	subnet  ipam.SubnetSpec
	note    string

	space    string
	revision uint64 // of the network when the form was shown
	mark     string // the event mark when the form was shown
	held     string // what the release would end, as shown
	whose    string // the holder or owner of the address to release, in words

	fields map[string]string // as they were sent
}

// carried are the fields that are passed from one step to the next.
var carried = []string{"network", "space", "revision", "mark", "held"}

// readChange reads a form. With an error that the user can correct in the form, it also returns what it has read.
func (p *Page) readChange(r *http.Request, what string, field func(string) string) (*wanted, error) {
	w := &wanted{what: what, fields: map[string]string{}}
	for _, name := range w.names() {
		w.fields[name] = field(name)
	}
	w.space, w.mark, w.note = w.fields["space"], w.fields["mark"], w.fields["note"]
	if what == creating {
		return w, w.readSubnet()
	}
	n, err := p.cfg.Service.Network(r.Context(), w.fields["network"])
	if err != nil {
		return nil, err
	}
	w.network, w.space = n, n.Space
	w.fields["network"], w.fields["space"] = n.ID.String(), n.Space
	if err := w.readCarried(p.markNow(r)); err != nil {
		return nil, err
	}
	switch what {
	case removing:
		return w, nil
	case addingSubnet:
		return w, w.readSubnet()
	case excluding, including, addingPool:
		return w, w.readRange()
	}
	return w, w.readAddress()
}

func (w *wanted) readAddress() error {
	addr, err := netip.ParseAddr(w.fields["address"])
	if err != nil || addr.Zone() != "" {
		return ipam.Refuse(ipam.ErrInvalid, "%q is not an address; write one such as 192.0.2.7", w.fields["address"])
	}
	w.addr = addr.Unmap()
	if w.owner = w.fields["owner"]; w.what == reserving && w.owner == "" {
		return ipam.Refuse(ipam.ErrInvalid, "name the owner of the address: the name of a container, or "+
			"project/service/1")
	}
	return nil
}

// names returns all fields: the form's own and the carried ones.
func (w *wanted) names() []string { return slices.Concat(changes[w.what].fields, carried) }

// readCarried reads the state when the form was shown. A new form uses the current state.
func (w *wanted) readCarried(now string) (err error) {
	if text := w.fields["revision"]; text == "" {
		w.revision, w.mark = w.network.Revision, now
	} else if w.revision, err = strconv.ParseUint(text, 10, 64); err != nil || w.revision == 0 {
		return ipam.Refuse(ipam.ErrInvalid, `the field "revision" is %q, which is not a revision: open the form again`,
			text)
	}
	w.held = w.fields["held"]
	w.fields["revision"], w.fields["mark"] = strconv.FormatUint(w.revision, 10), w.mark
	return nil
}

// readSubnet reads a new subnet, all of which becomes a pool.
func (w *wanted) readSubnet() error {
	cidr, err := netip.ParsePrefix(w.fields["subnet"])
	if err != nil {
		return ipam.Refuse(ipam.ErrInvalid, "%q is not a subnet; write one such as 10.1.0.0/24", w.fields["subnet"])
	}
	spec := ipam.SubnetSpec{CIDR: cidr, Pool: true}
	if text := w.fields["gateway"]; text != "" {
		if spec.Gateway, err = netip.ParseAddr(text); err != nil {
			return ipam.Refuse(ipam.ErrInvalid, "%q is not an address; write one such as 10.1.0.1", text)
		}
	}
	w.subnet = spec
	return nil
}

func (w *wanted) readRange() error {
	span, err := alloc.ParseRange(w.fields["range"])
	if err != nil {
		return ipam.Refuse(ipam.ErrInvalid, "%v", err)
	}
	w.span = ipam.Range{IPRange: span}
	return nil
}

// edit returns the edit of the change, or nil if the witness must end a lease.
func (w *wanted) edit(at *ipam.LayoutRow) ipam.Edit {
	id := w.network.ID.String()
	switch w.what {
	case reserving:
		return &ipam.AddReservation{Network: id, Owner: w.owner, Wishes: []ipam.Wish{{Address: w.addr}},
			WantedTerms: notedTerms(w.note)}
	case excluding:
		return &ipam.AddExclusion{Network: id, Range: w.span, Note: w.note}
	case including:
		return &ipam.RemoveExclusion{Network: id, Range: w.span}
	case creating:
		return &ipam.CreateNetwork{Name: w.fields["name"], Subnets: []ipam.SubnetSpec{w.subnet}}
	case addingSubnet:
		return &ipam.AddSubnet{Network: id, SubnetSpec: w.subnet}
	case addingPool:
		return &ipam.AddPool{Network: id, Range: w.span, Name: w.fields["name"]}
	case removing:
		return &ipam.RemoveNetwork{Network: id}
	}
	switch {
	case at.State == ipam.AddressLeased && at.Lease.Kind == ipam.External:
		return &ipam.ReleaseAddress{Network: id, Owner: at.Lease.Name, Address: w.addr}
	case at.State == ipam.AddressReserved && at.Reservation != nil:
		return &ipam.RemoveReservation{Network: id, Owner: at.Reservation.Owner, Address: w.addr}
	}
	return nil
}

// heldBy identifies what a release of an address would end; empty: nothing.
func heldBy(at *ipam.LayoutRow) string {
	switch {
	case at.State == ipam.AddressLeased && at.Lease != nil:
		return "lease " + strconv.FormatUint(at.Lease.ID, 10)
	case at.State == ipam.AddressReserved && at.Reservation != nil:
		return "reservation of " + at.Reservation.Owner
	}
	return ""
}

// notedTerms returns the terms of a reservation with or without a note.
func notedTerms(note string) (t ipam.WantedTerms) {
	if note != "" {
		t.Note = &note
	}
	return t
}
