package admin

import (
	"context"
	"iter"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// who returns the holders of an address, or the addresses of a holder. There may be very many.
func (s *Server) who(ctx context.Context, f ipam.WhoFilter) (iter.Seq2[ipam.Tenure, error], error) {
	if err := s.knowsSpace(ctx, f.Space); err != nil {
		return nil, err
	}
	all, err := s.cfg.Service.Who(ctx, f)
	return yes(all), err
}

// find returns a page of what a word matches.
func (s *Server) find(ctx context.Context, req api.FindRequest) (list api.FoundList, err error) {
	for _, kind := range req.Kinds {
		if !slices.Contains(ipam.FoundKinds(), kind) {
			return list, invalid(`the parameter "kind" has %q; the kinds are %s`, kind,
				strings.Join(ipam.FoundKinds(), ", "))
		}
	}
	if err := s.knowsSpace(ctx, req.Space); err != nil {
		return list, err
	}
	f := req.FindFilter
	if f.After, err = foundAt(req.Cursor); err != nil {
		return list, err
	}
	list.Found, list.Next, err = take(req.Most, s.cfg.Service.Find(ctx, f), func(one *ipam.Found) string {
		m := one.Mark()
		return cursor(strconv.Itoa(m.Group), m.Space, m.Addr.String(), m.What, strconv.Itoa(m.Kind))
	})
	return list, err
}

// foundAt reads a cursor that is the place of a match.
func foundAt(after string) (m ipam.FoundMark, err error) {
	parts, err := part(after, 5)
	if parts == nil {
		return m, err
	}
	m.Space, m.What = parts[1], parts[3]
	if m.Group, err = strconv.Atoi(parts[0]); err != nil {
		return m, notNext()
	}
	if m.Kind, err = strconv.Atoi(parts[4]); err != nil {
		return m, notNext()
	}
	if addr := parts[2]; addr != (netip.Addr{}).String() {
		if m.Addr, err = netip.ParseAddr(addr); err != nil {
			return m, notNext()
		}
	}
	return m, nil
}
