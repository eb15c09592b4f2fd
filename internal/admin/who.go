package admin

import (
	"net/http"
	"net/netip"
	"net/url"

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
