package admin

import (
	"context"
	"net/http"
	"time"

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

// Who tells who has or had an address, or what a MAC or a name has and had, the earliest first.
func (c *Client) Who(ctx context.Context, f ipam.WhoFilter) ([]ipam.Tenure, error) {
	q := params{"mac": f.MAC.String(), "name": f.Name, "space": f.Space}
	if f.Address.IsValid() {
		q["address"] = f.Address.String()
	}
	if !f.At.IsZero() {
		q["at"] = f.At.UTC().Format(time.RFC3339Nano)
	}
	var list TenureList
	err := c.call(ctx, http.MethodGet, "/v1/who", q, nil, &list)
	return list.Tenures, err
}
