package page

import (
	"bytes"
	"net/http"

	"berth/internal/admin/live"
	"berth/internal/ipam"
)

// The parameters of the request for notifications.
const (
	afterParameter   = "after"
	networkParameter = "network"
)

// freshViews returns the paths that keep an open view up to date, if the browser runs scripts.
func (p *Page) freshViews() []View {
	return []View{
		{http.MethodGet, "/live", p.watch, true},
		{http.MethodGet, "/live.js", p.script, true},
	}
}

// watch notifies a browser when its view may be stale.
func (p *Page) watch(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, afterParameter, networkParameter)
	if err != nil {
		return err
	}
	after := new(ipam.EventMark)
	text := q.Get(afterParameter)
	if last := r.Header.Get("Last-Event-ID"); last != "" { // the browser was disconnected and is back
		text = last
	}
	if text == "" {
		after = nil
	} else if err := after.UnmarshalText([]byte(text)); err != nil {
		return ipam.Refuse(ipam.ErrInvalid, "the parameter %q is %q, which is not a position in the event "+
			"log; reload the page", afterParameter, text)
	}
	protect(w.Header())
	return p.hub.Watch(r.Context(), p.cfg.Ended, w, after, q.Get(networkParameter))
}

func (p *Page) script(w http.ResponseWriter, r *http.Request) error {
	protect(w.Header())
	w.Header().Set("Cache-Control", "private, max-age=86400")
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	return p.send(w, r, http.StatusOK, bytes.NewBuffer(live.Script))
}

// markNow returns the mark up to which a view is current that is made from now on. It is empty if the mark is unknown.
func (p *Page) markNow(r *http.Request) string {
	mark, err := p.cfg.Service.LastEvent(r.Context())
	if err != nil {
		return ""
	}
	text, err := mark.MarshalText()
	if err != nil {
		return ""
	}
	return string(text)
}
