package admin

import (
	"cmp"
	"net/http"
	"slices"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// export sends the plan network by network: it need not be in memory as a whole here, nor there.
func (s *Server) export(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "network")
	if err != nil {
		return err
	}
	control, err := untimed(w)
	if err != nil {
		return err
	}
	return replyEach(&paced{w, patient{w, control}}, "networks", s.cfg.Service.Export(r.Context(), q.Get("network")))
}

// paced is an answer whose client has time for each piece of it.
type paced struct {
	http.ResponseWriter
	patient patient
}

func (p *paced) Write(b []byte) (int, error) { return p.patient.Write(b) }

// names tells whose which address is, of which names are made. It is refused where some of it cannot be seen: it is
// taken for the whole, and who writes a file of it would lose names.
func (s *Server) names(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	if err := s.cfg.Service.Partial(); err != nil {
		return ipam.Refuse(err, "the names are in this host's own store and in that of the cluster, and the latter cannot "+
			"be asked: %s", err)
	}
	all, err := s.cfg.Service.Names(r.Context())
	if err != nil {
		return err
	}
	byID := func(a, b ipam.NamedRange) int {
		return cmp.Or(a.Range.From().Compare(b.Range.From()), slices.Compare(a.ID[:], b.ID[:]))
	}
	slices.SortFunc(all.Ranges, byID)
	slices.SortFunc(all.Set, func(a, b ipam.NamedAddress) int {
		return cmp.Or(a.Address.Compare(b.Address), slices.Compare(a.In[:], b.In[:]))
	})
	return reply(w, api.Names{Zone: s.cfg.Zone, Ranges: slices.Concat([]ipam.NamedRange{}, all.Ranges),
		Addresses: slices.Concat([]ipam.NamedAddress{}, all.Set)})
}
