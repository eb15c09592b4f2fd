package page

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"berth/internal/admin/api"
	"berth/internal/alloc"
	"berth/internal/ipam"
)

// What admins can change here, each in two steps: what is asked for, and what would change by it, which is then done as
// it was shown or not at all. The edits are those of the API.
const (
	reserving = "reserve"
	excluding = "exclude"
	releasing = "release"
	creating  = "create"
)

// sealAge is how long what was shown may be agreed to.
const sealAge = time.Hour

// wanted is what somebody wants changed: what the fields of a form say.
type wanted struct {
	what    string
	network ipam.NetworkInfo
	addr    netip.Addr // to reserve, or to release
	owner   string
	span    ipam.Range // to exclude
	create  ipam.CreateNetwork
	note    string

	space    string
	revision uint64 // of the network, as it was when the form was shown
	mark     string // behind what had happened then
	held     string // what is to end by a release, as it was shown

	fields map[string]string // as they were sent
}

// changeFields are the fields of each form that a person fills in.
var changeFields = map[string][]string{
	reserving: {"address", "owner", "note"},
	excluding: {"range", "note"},
	releasing: {"address"},
	creating:  {"name", "subnet", "gateway"},
}

// carried are the fields that lead from one step to the next.
var carried = []string{"network", "space", "revision", "mark", "held"}

// changeViews are the forms. They are for admins: what shows them changes nothing, and is no use to anybody else.
func (p *Page) changeViews() (all []View) {
	for _, what := range []string{reserving, excluding, releasing, creating} {
		path := "/change/" + what
		all = append(all, View{http.MethodGet, path, p.shows(func(r *http.Request) (*shown, error) {
			return p.askChange(r, what)
		}), false}, View{http.MethodPost, path, p.shows(func(r *http.Request) (*shown, error) {
			return p.change(r, what)
		}), false})
	}
	return all
}

// askChange shows the form of the first step.
func (p *Page) askChange(r *http.Request, what string) (*shown, error) {
	if _, err := query(r, append(changeFields[what], "network", "space")...); err != nil {
		return nil, err
	}
	w, err := p.readChange(r, what, r.URL.Query().Get)
	if err != nil && w == nil {
		return nil, err
	}
	return p.changeForm(r, w, nil), nil
}

// change shows what would change, and does it when that was agreed to.
func (p *Page) change(r *http.Request, what string) (*shown, error) {
	if err := p.ownForm(r); err != nil {
		return nil, err
	}
	if err := r.ParseForm(); err != nil {
		return nil, ipam.Refuse(ipam.ErrInvalid, "the form cannot be read: %v", err)
	}
	next := r.PostForm.Get("next")
	if next != "" {
		r.PostForm.Set("address", next)
	}
	w, err := p.readChange(r, what, r.PostForm.Get)
	if next != "" && w != nil {
		return p.changeForm(r, w, nil), nil // what else was typed stays, and may be missing
	}
	if err != nil {
		if w == nil {
			return nil, err
		}
		return p.changeForm(r, w, err), nil
	}
	seal := r.PostForm.Get("seal")
	if seal == "" {
		return p.tryChange(r, w)
	}
	if !p.sealed(r.Context(), w, seal) {
		return nil, ipam.Refuse(ipam.ErrChanged, "this is not what was shown to you, or it was shown too long ago, or by "+
			"another run of the daemon; nothing was changed: look at it once more, and agree to that")
	}
	return p.makeChange(r, w)
}

// ownForm refuses a form of which nobody says where it is from, which each browser does. One of another site does not
// come as far as this.
func (p *Page) ownForm(r *http.Request) error {
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return ipam.Refuse(ipam.ErrForbidden, "it is not said where this form is from, which each browser says; programs "+
			"change things by the API")
	}
	return nil
}

// readChange reads what is wanted. With an error that a person can mend in the form it returns what there is.
func (p *Page) readChange(r *http.Request, what string, field func(string) string) (*wanted, error) {
	w := &wanted{what: what, fields: map[string]string{}}
	for _, name := range append(append([]string{}, changeFields[what]...), carried...) {
		w.fields[name] = field(name)
	}
	w.space, w.mark, w.note = w.fields["space"], w.fields["mark"], w.fields["note"]
	if what == creating {
		return w, w.readCreate()
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
	if what == excluding {
		return w, w.readRange()
	}
	if w.addr, err = netip.ParseAddr(w.fields["address"]); err != nil || w.addr.Zone() != "" {
		return w, ipam.Refuse(ipam.ErrInvalid, "%q is no address; it is one such as 192.0.2.7", w.fields["address"])
	}
	w.addr = w.addr.Unmap()
	if w.owner = w.fields["owner"]; what == reserving && w.owner == "" {
		return w, ipam.Refuse(ipam.ErrInvalid, "say whose the address is to be: the name of a container, or "+
			"project/service/1")
	}
	return w, nil
}

// readCarried reads as of when the form is; one that is shown for the first time is as of now.
func (w *wanted) readCarried(now string) (err error) {
	if text := w.fields["revision"]; text == "" {
		w.revision, w.mark = w.network.Revision, now
	} else if w.revision, err = strconv.ParseUint(text, 10, 64); err != nil || w.revision == 0 {
		return ipam.Refuse(ipam.ErrInvalid, `the field "revision" is %q`, text)
	}
	w.held = w.fields["held"]
	w.fields["revision"], w.fields["mark"] = strconv.FormatUint(w.revision, 10), w.mark
	return nil
}

func (w *wanted) readCreate() error {
	cidr, err := netip.ParsePrefix(w.fields["subnet"])
	if err != nil {
		return ipam.Refuse(ipam.ErrInvalid, "%q is no subnet; it is one such as 10.1.0.0/24", w.fields["subnet"])
	}
	spec := ipam.SubnetSpec{CIDR: cidr, Pool: true}
	if text := w.fields["gateway"]; text != "" {
		if spec.Gateway, err = netip.ParseAddr(text); err != nil {
			return ipam.Refuse(ipam.ErrInvalid, "%q is no address; it is one such as 10.1.0.1", text)
		}
	}
	w.create = ipam.CreateNetwork{Name: w.fields["name"], Subnets: []ipam.SubnetSpec{spec}}
	return nil
}

func (w *wanted) readRange() error {
	span, err := alloc.ParseRange(w.fields["range"])
	if err != nil {
		return ipam.Refuse(ipam.ErrInvalid, "%q is no range; it is one such as 192.0.2.10-192.0.2.19, 192.0.2.10+10 or "+
			"192.0.2.16/28", w.fields["range"])
	}
	w.span = ipam.Range{IPRange: span}
	return nil
}

// seal binds what is shown to who has seen it, and until when he may agree to it.
func (p *Page) seal(ctx context.Context, w *wanted, until time.Time) string {
	mac := hmac.New(sha256.New, p.key)
	fmt.Fprintf(mac, "%q %q %d", w.what, ipam.ActorOf(ctx), until.Unix())
	for _, name := range append(append([]string{}, changeFields[w.what]...), carried...) {
		fmt.Fprintf(mac, " %q", w.fields[name])
	}
	return strconv.FormatInt(until.Unix(), 10) + "-" + hex.EncodeToString(mac.Sum(nil))
}

// sealed tells whether just this was shown to just this user, and lately.
func (p *Page) sealed(ctx context.Context, w *wanted, seal string) bool {
	var until int64
	if _, err := fmt.Sscanf(seal, "%d-", &until); err != nil || p.cfg.Now().Unix() > until {
		return false
	}
	return hmac.Equal([]byte(seal), []byte(p.seal(ctx, w, time.Unix(until, 0))))
}

// newKey is what seals are made with, for one run of the daemon.
func newKey() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it ends the program where it cannot
	return key
}

// edit is the edit that is wanted; nil where a lease is to end, which is the witness's.
func (w *wanted) edit(at *ipam.LayoutRow) ipam.Edit {
	id := w.network.ID.String()
	switch w.what {
	case reserving:
		return &ipam.AddReservation{Network: id, Owner: w.owner, Wishes: []ipam.Wish{{Address: w.addr}},
			WantedTerms: notedTerms(w.note)}
	case excluding:
		return &ipam.AddExclusion{Network: id, Range: w.span, Note: w.note}
	case creating:
		return &w.create
	}
	switch {
	case at.State == ipam.AddressLeased && at.Lease.Kind == ipam.External:
		return &ipam.ReleaseAddress{Network: id, Owner: at.Lease.Name, Address: w.addr}
	case at.State == ipam.AddressReserved && at.Reservation != nil:
		return &ipam.RemoveReservation{Network: id, Owner: at.Reservation.Owner, Address: w.addr}
	}
	return nil
}

// heldBy tells what there is at an address that a release would end; empty: nothing.
func heldBy(at *ipam.LayoutRow) string {
	switch {
	case at.State == ipam.AddressLeased && at.Lease != nil:
		return "lease " + strconv.FormatUint(at.Lease.ID, 10)
	case at.State == ipam.AddressReserved && at.Reservation != nil:
		return "reservation of " + at.Reservation.Owner
	}
	return ""
}

// notedTerms are those of a reservation with a note, or without one.
func notedTerms(note string) (t ipam.WantedTerms) {
	if note != "" {
		t.Note = &note
	}
	return t
}

// standing is what there is at an address of a network.
func (p *Page) standing(ctx context.Context, w *wanted) (*ipam.LayoutRow, error) {
	for i := range w.network.Subnets {
		sub := &w.network.Subnets[i]
		if !sub.CIDR.Contains(w.addr) {
			continue
		}
		l, err := p.cfg.Service.Layout(ctx, sub.ID, ipam.LayoutFilter{Within: netip.PrefixFrom(w.addr, w.addr.BitLen())})
		if err != nil {
			return nil, err
		}
		return &l.Rows[0], nil
	}
	return nil, ipam.Refuse(ipam.ErrNotFound, "%s is in no subnet of network %s", w.addr, w.network.Name)
}

// tryChange shows what would change.
func (p *Page) tryChange(r *http.Request, w *wanted) (*shown, error) {
	var at *ipam.LayoutRow
	if w.what == releasing {
		var err error
		if at, err = p.standing(r.Context(), w); err != nil {
			return p.changeForm(r, w, err), nil
		}
		if w.held = heldBy(at); w.held == "" {
			return p.changeForm(r, w, ipam.Refuse(ipam.ErrNotFound, "%s is %s: nobody has it, and it is reserved for "+
				"nobody", w.addr, at.State)), nil
		}
		w.fields["held"] = w.held
	}
	edit := w.edit(at)
	if edit == nil {
		if p.cfg.Release == nil {
			return p.changeForm(r, w, ipam.Refuse(ipam.ErrInvalid, "%s is a container's, and nobody tells this daemon what "+
				"runs: its address ends with it", w.addr)), nil
		}
		return p.confirmRelease(r, w, at), nil
	}
	out, err := p.cfg.Service.Edit(r.Context(), ipam.EditOptions{DryRun: true, IfMatch: w.revision}, edit)
	if err != nil {
		return p.changeRefused(r, w, err)
	}
	return p.confirm(r, w, &out), nil
}

// makeChange does what was agreed to, and leads to what has become of it.
func (p *Page) makeChange(r *http.Request, w *wanted) (*shown, error) {
	var at *ipam.LayoutRow
	if w.what == releasing {
		var err error
		if at, err = p.standing(r.Context(), w); err != nil {
			return nil, err
		}
		if now := heldBy(at); now != w.held {
			return p.changeRefused(r, w, ipam.Refuse(ipam.ErrChanged, "%s is not held as it was when this was shown "+
				"(there was a %s, and now there is %s); nothing was changed", w.addr, w.held, cmp.Or(now, "nothing")))
		}
	}
	var err error
	var out ipam.Outcome
	if edit := w.edit(at); edit != nil {
		out, err = p.cfg.Service.Edit(r.Context(), ipam.EditOptions{IfMatch: w.revision}, edit)
	} else if p.cfg.Release != nil {
		_, err = p.cfg.Release(r.Context(), ipam.LeaseRelease{Space: w.space, Address: w.addr})
	}
	if err != nil {
		return p.changeRefused(r, w, err)
	}
	id := w.network.ID
	if w.what == creating {
		id = out.Results[0].Network
	}
	s := &shown{To: networkLink(rootOf(r), id)}
	if w.addr.IsValid() {
		s.To = addressLink(rootOf(r), w.space, w.addr)
	}
	return s, nil
}

// changeRefused says why something is not done, and what has happened since the form was shown.
func (p *Page) changeRefused(r *http.Request, w *wanted, refusal error) (*shown, error) {
	if !errors.Is(refusal, ipam.ErrChanged) && !errors.Is(refusal, ipam.ErrInUse) {
		if _, is := ipam.RefusedOf(0, refusal); !is {
			return nil, refusal
		}
		return p.changeForm(r, w, refusal), nil
	}
	s := p.changeForm(r, w, refusal)
	var mark ipam.EventMark
	if mark.UnmarshalText([]byte(w.mark)) != nil {
		return s, nil
	}
	found, err := p.cfg.Service.EventsBehind(r.Context(), mark, perPage, func(e *ipam.Event) bool {
		return e.Network == w.network.Name
	})
	if err != nil {
		return s, nil // what is wrong with the records is no reason to say less
	}
	p.changes(s, "since", "What has changed since this was shown", found.Events)
	return s, nil
}

// statusOf is that of a form that is shown again.
func statusOf(err error) int {
	for _, one := range []struct {
		is     error
		status int
	}{{ipam.ErrInvalid, http.StatusBadRequest}, {ipam.ErrNotFound, http.StatusNotFound},
		{ipam.ErrChanged, http.StatusPreconditionFailed}} {
		if errors.Is(err, one.is) {
			return one.status
		}
	}
	var problem *api.Problem
	if errors.As(err, &problem) {
		return problem.Status
	}
	return http.StatusConflict
}
