package admin

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// who answers who had an address, or what somebody had. An address that goes from hand to hand may have had very many.
func (s *Server) who(w http.ResponseWriter, r *http.Request) error {
	f, err := s.whoFilter(r)
	if err != nil {
		return err
	}
	control, err := untimed(w)
	if err != nil {
		return err
	}
	all, err := s.cfg.Service.Who(r.Context(), f)
	if err != nil {
		return err
	}
	return replyEach(&paced{w, patient{w, control}}, "tenures", yes(all))
}

func (s *Server) whoFilter(r *http.Request) (f ipam.WhoFilter, err error) {
	q, err := query(r, "address", "mac", "name", "space", "at")
	if err != nil {
		return f, err
	}
	f = ipam.WhoFilter{Name: q.Get("name"), Space: q.Get("space")}
	if f.Address, err = addressOf(q); err != nil {
		return f, err
	}
	if text := q.Get("mac"); text != "" {
		if f.MAC, err = ipam.ParseMAC(text); err != nil {
			return f, invalid(`the parameter "mac" is %q; it is a MAC address such as 02:42:0a:00:00:02`, text)
		}
	}
	if f.At, err = timeOf(q, "at"); err != nil {
		return f, err
	}
	return f, s.knowsSpace(r, f.Space)
}

// find answers at what a word is found, a page of it.
func (s *Server) find(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "q", "exact", "kind", "space", "limit", "after")
	if err != nil {
		return err
	}
	p, err := pageOf(r, q, 5)
	if err != nil {
		return err
	}
	f := ipam.FindFilter{Word: q.Get("q"), Space: q.Get("space")}
	if f.Exact, err = boolOf(q, "exact"); err != nil {
		return err
	}
	if f.Kinds, err = foundKinds(q.Get("kind")); err != nil {
		return err
	}
	if err := s.knowsSpace(r, f.Space); err != nil {
		return err
	}
	if f.After, err = p.foundOf(); err != nil {
		return err
	}
	var list api.FoundList
	list.Found, list.Next, err = take(p, s.cfg.Service.Find(r.Context(), f), func(one *ipam.Found) string {
		m := one.Mark()
		return cursor(strconv.Itoa(m.Group), m.Space, m.Addr.String(), m.What, strconv.Itoa(m.Kind))
	})
	if err != nil {
		return err
	}
	link(w, r, list.Next)
	return reply(w, list)
}

// foundKinds reads the kinds of what is looked for, with commas between them; nil: all.
func foundKinds(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	kinds := strings.Split(text, ",")
	for _, kind := range kinds {
		if !slices.Contains(ipam.FoundKinds(), kind) {
			return nil, invalid(`the parameter "kind" has %q; there are %s`, kind,
				strings.Join(ipam.FoundKinds(), ", "))
		}
	}
	return kinds, nil
}

// foundOf reads a cursor that is the place of what was found.
func (p page) foundOf() (m ipam.FoundMark, err error) {
	if p.after == nil {
		return m, nil
	}
	m.Space, m.What = p.after[1], p.after[3]
	if m.Group, err = strconv.Atoi(p.after[0]); err != nil {
		return m, notNext()
	}
	if m.Kind, err = strconv.Atoi(p.after[4]); err != nil {
		return m, notNext()
	}
	if addr := p.after[2]; addr != (netip.Addr{}).String() {
		if m.Addr, err = netip.ParseAddr(addr); err != nil {
			return m, notNext()
		}
	}
	return m, nil
}

// addressOf reads the parameter address; the zero Addr where it is not given.
func addressOf(q url.Values) (netip.Addr, error) {
	text := q.Get("address")
	if text == "" {
		return netip.Addr{}, nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" || addr.Is4In6() {
		return netip.Addr{}, invalid("the parameter address is %q; it is one address such as 192.0.2.7 or 2001:db8::7",
			text)
	}
	return addr, nil
}
