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
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// The changes that admins can make. Each has two steps: the form, and a preview of what would change. The change is
// then made exactly as shown, or not at all. The edits are those of the API.
const (
	reserving    = "reserve"
	releasing    = "release"
	excluding    = "exclude"
	including    = "end-exclusion"
	creating     = "create"
	addingSubnet = "add-subnet"
	addingPool   = "add-pool"
	removing     = "remove"
)

// sealAge is how long a preview can be confirmed.
const sealAge = time.Hour

// changeViews returns the forms. They are for admins only; showing a form changes nothing, but others cannot use it.
func (p *Page) changeViews() (all []View) {
	for _, what := range slices.Sorted(maps.Keys(changes)) {
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
	if _, err := query(r, append(slices.Clone(changes[what].fields), "network", "space")...); err != nil {
		return nil, err
	}
	w, err := p.readChange(r, what, r.URL.Query().Get)
	if err != nil && w == nil {
		return nil, err
	}
	return p.changeForm(r, w, nil), nil
}

// change shows the preview, and makes the change if the preview was confirmed.
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
		return p.changeForm(r, w, nil), nil // the other fields stay as typed, and may be empty
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
		return nil, ipam.Refuse(ipam.ErrChanged, "the preview that you confirmed is too old, differs from the form, "+
			"or is from before a restart of the daemon; nothing was changed: review the change again and confirm")
	}
	return p.makeChange(r, w)
}

// ownForm refuses a form without the origin that each browser sends. A form of another site is refused earlier.
func (p *Page) ownForm(r *http.Request) error {
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return ipam.Refuse(ipam.ErrForbidden, "the request has neither an Origin nor a Sec-Fetch-Site header, which "+
			"every browser sends; programs must use the API")
	}
	return nil
}

// seal binds a preview to its user and to the time until which it can be confirmed.
func (p *Page) seal(ctx context.Context, w *wanted, until time.Time) string {
	mac := hmac.New(sha256.New, p.key)
	fmt.Fprintf(mac, "%q %q %d", w.what, ipam.ActorOf(ctx), until.Unix())
	for _, name := range w.names() {
		fmt.Fprintf(mac, " %q", w.fields[name])
	}
	return strconv.FormatInt(until.Unix(), 10) + "-" + hex.EncodeToString(mac.Sum(nil))
}

// sealed reports whether exactly this preview was recently shown to this user.
func (p *Page) sealed(ctx context.Context, w *wanted, seal string) bool {
	var until int64
	if _, err := fmt.Sscanf(seal, "%d-", &until); err != nil || p.cfg.Now().Unix() > until {
		return false
	}
	return hmac.Equal([]byte(seal), []byte(p.seal(ctx, w, time.Unix(until, 0))))
}

// newKey returns the key for seals. It is new with each run of the daemon.
func newKey() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // ends the program if it fails
	return key
}

// standing returns the current state of the address.
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

// tryChange shows the preview.
func (p *Page) tryChange(r *http.Request, w *wanted) (*shown, error) {
	var at *ipam.LayoutRow
	if w.what == releasing {
		var err error
		if at, err = p.standing(r.Context(), w); err != nil {
			return p.changeForm(r, w, err), nil
		}
		if w.held = heldBy(at); w.held == "" {
			return p.changeForm(r, w, ipam.Refuse(ipam.ErrNotFound, "%s is %s: it has no holder and no "+
				"reservation", w.addr, at.State)), nil
		}
		if err := p.releasable(at); err != nil {
			return p.changeForm(r, w, err), nil
		}
		w.fields["held"], w.whose = w.held, p.whoseText(at)
	}
	edit := w.edit(at)
	if edit == nil {
		release := ipam.LeaseRelease{Space: w.space, Address: w.addr, DryRun: true}
		if _, err := p.cfg.Release(r.Context(), release); err != nil {
			return p.changeRefused(r, w, err)
		}
		return p.confirmRelease(r, w, at), nil
	}
	out, err := p.cfg.Service.Edit(r.Context(), ipam.EditOptions{DryRun: true, IfMatch: w.revision}, edit)
	if err != nil {
		return p.changeRefused(r, w, err)
	}
	return p.confirm(r, w, &out), nil
}

// releasable refuses a release that no form can make.
func (p *Page) releasable(at *ipam.LayoutRow) error {
	l := at.Lease
	switch {
	case at.State != ipam.AddressLeased || l.Kind == ipam.External:
		return nil
	case l.Kind == ipam.Gateway:
		return ipam.Refuse(ipam.ErrInvalid, "%s is a gateway, and cannot be released while its subnet or a Docker "+
			"network uses it", l.Address)
	case l.Kind == ipam.Headroom:
		return ipam.Refuse(ipam.ErrInvalid, "%s is headroom of host %s, which keeps it for its next containers",
			l.Address, l.Host)
	case p.cfg.Release == nil:
		return ipam.Refuse(ipam.ErrInvalid, "%s belongs to a container, and this daemon does not know which "+
			"containers run: Berth releases the address when the container ends", l.Address)
	}
	return nil
}

// makeChange makes the confirmed change and redirects to the result.
func (p *Page) makeChange(r *http.Request, w *wanted) (*shown, error) {
	var at *ipam.LayoutRow
	if w.what == releasing {
		var err error
		if at, err = p.standing(r.Context(), w); err != nil {
			return nil, err
		}
		if now := heldBy(at); now != w.held {
			return p.changeRefused(r, w, ipam.Refuse(ipam.ErrChanged, "the holder of %s has changed since you saw "+
				"this page (before: %s; now: %s); nothing was changed", w.addr, w.held, cmp.Or(now, "nothing")))
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
	return &shown{To: w.after(rootOf(r), &out)}, nil
}

// changeRefused shows why a change was refused, and what has happened since the form was shown.
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
		return s, nil // a failed read of the events does not hide the refusal
	}
	p.changes(s, "since", "What has changed since this form was shown", found.Events)
	return s, nil
}

// statusOf returns the HTTP status of a form that is shown again.
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
